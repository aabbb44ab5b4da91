/*
 * A wake that never comes: `holder` takes a mutex and goes to sleep for good, and the main thread
 * wants it. A watchdog ends the program while it still hangs.
 */
#include "lab.h"
#include <semaphore.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t holder_may_start, holder_has_lock, watchdog_may_start;
static int hold_ms, hang_ms;
static uint64_t hang_from;

LAB_NAMED void sleep_under_lock(int ms)
{
	LAB_SLEEP_US(ms * UINT64_C(1000));
}

static void *hold(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&holder_may_start);
		pthread_mutex_lock(&lock);
		sem_post(&holder_has_lock);
		sleep_under_lock(hold_ms);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void *watch(void *unused)
{
	(void)unused;
	sem_wait(&watchdog_may_start);
	LAB_SLEEP_US(hang_ms * UINT64_C(1000));
	lab_print_hang(hang_from);
	exit(0);
}

LAB_NAMED void take_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

static void turn(int ms)
{
	hold_ms = ms;
	sem_post(&holder_may_start);
	sem_wait(&holder_has_lock);
	take_lock();
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "wakeless");
	hang_ms = lab_hang_ms();
	sem_init(&holder_may_start, 0, 0);
	sem_init(&holder_has_lock, 0, 0);
	sem_init(&watchdog_may_start, 0, 0);
	lab_thread(hold, NULL, "holder");
	lab_thread(watch, NULL, "watchdog");
	lab_decoys();

	lab_turns(turn);
	hang_from = lab_now_ns();
	sem_post(&watchdog_may_start);
	turn(3600 * 1000);
	lab_exit(1, "the lock was let go");
}
