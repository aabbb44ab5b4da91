/*
 * Two waits that look alike from inside libc: each turn, the main thread wants two mutexes one
 * after the other, and `keeper` has first the one, then the other. It keeps one of them for long.
 */
#include "lab.h"
#include <semaphore.h>

static pthread_mutex_t settings = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;
static sem_t keeper_may_start, keeper_has_settings, keeper_has_journal;
static enum lab_ending ending;
static bool journal_is_slow;
static int work_ms;

LAB_NAMED void save_settings(int ms)
{
	if (ending == LAB_COMPUTES)
		LAB_COMPUTE_US(ms * 1000);
	else
		LAB_SLEEP_US(ms * UINT64_C(1000));
}

LAB_NAMED void write_journal(int ms)
{
	if (ending == LAB_COMPUTES)
		LAB_COMPUTE_US(ms * 1000);
	else
		LAB_SLEEP_US(ms * UINT64_C(1000));
}

static void *keep(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&keeper_may_start);
		pthread_mutex_lock(&settings);
		sem_post(&keeper_has_settings);
		save_settings(journal_is_slow ? 1 : work_ms);
		pthread_mutex_unlock(&settings);

		pthread_mutex_lock(&journal);
		sem_post(&keeper_has_journal);
		write_journal(journal_is_slow ? work_ms : 1);
		pthread_mutex_unlock(&journal);
	}
	return NULL;
}

LAB_NAMED void lock_settings(void)
{
	pthread_mutex_lock(&settings);
	pthread_mutex_unlock(&settings);
}

LAB_NAMED void lock_journal(void)
{
	pthread_mutex_lock(&journal);
	pthread_mutex_unlock(&journal);
}

static void turn(int ms)
{
	work_ms = ms;
	sem_post(&keeper_may_start);
	sem_wait(&keeper_has_settings);
	lock_settings();
	sem_wait(&keeper_has_journal);
	lock_journal();
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "two_locks");
	int hang_ms = lab_hang_ms();
	journal_is_slow = LAB_PICK("slow", "settings", "journal") == 1;
	ending = lab_ending();
	sem_init(&keeper_may_start, 0, 0);
	sem_init(&keeper_has_settings, 0, 0);
	sem_init(&keeper_has_journal, 0, 0);
	lab_thread(keep, NULL, "keeper");
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
