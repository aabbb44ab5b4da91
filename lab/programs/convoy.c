/*
 * A convoy at one mutex: `holder` computes under it for long; when it unlocks, the lock passes
 * through several threads that keep it for microseconds, and the last of those wakes the main
 * thread. Who woke it is innocent.
 */
#include "lab.h"
#include <semaphore.h>

#define MAX_PASSERS 5

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t holder_may_start, holder_has_lock, passers_may_start[MAX_PASSERS];
static int passers;
static int work_ms;

LAB_NAMED void compute_under_lock(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

static void *hold(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&holder_may_start);
		pthread_mutex_lock(&lock);
		sem_post(&holder_has_lock);
		compute_under_lock(work_ms);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

LAB_NAMED void pass_through_lock(void)
{
	pthread_mutex_lock(&lock);
	LAB_COMPUTE_US(50);
	pthread_mutex_unlock(&lock);
}

static void *pass(void *arg)
{
	sem_t *may_start = arg;
	for (;;) {
		sem_wait(may_start);
		pass_through_lock();
	}
	return NULL;
}

/* The main thread comes last: whoever waits at a futex is woken in the order of arrival. */
static void turn(int ms)
{
	work_ms = ms;
	sem_post(&holder_may_start);
	sem_wait(&holder_has_lock);
	for (int i = 0; i < passers; i++) {
		sem_post(&passers_may_start[i]);
		LAB_SLEEP_US(150);
	}
	pass_through_lock();
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "convoy");
	int hang_ms = lab_hang_ms();
	passers = lab_choose("passers", 2, MAX_PASSERS);
	if (passers > MAX_PASSERS)
		lab_exit(2, "passers are at most %d", MAX_PASSERS);
	sem_init(&holder_may_start, 0, 0);
	sem_init(&holder_has_lock, 0, 0);
	lab_thread(hold, NULL, "holder");
	for (int i = 0; i < passers; i++) {
		sem_init(&passers_may_start[i], 0, 0);
		lab_thread(pass, &passers_may_start[i], "passer%d", i + 1);
	}
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
