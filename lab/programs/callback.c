/*
 * A computation in a function that the program does not call itself: libc calls it, as the
 * comparator of a sort or of a search, or the kernel, as the handler of a signal.
 */
#include "lab.h"
#include <semaphore.h>

#define RECORDS 64

enum through { QSORT, BSEARCH, SIGNAL };

static enum through through;
static sem_t worker_may_start, worker_is_done;
static int work_ms;
static int records[RECORDS];

/* Each comparison is dear. */
LAB_NAMED int compare_records(const void *one, const void *other)
{
	LAB_COMPUTE_US(100);
	return *(const int *)one - *(const int *)other;
}

LAB_NAMED void sort_records(int ms)
{
	uint64_t until = lab_clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)ms * 1000000;
	for (uint64_t turn = 0; lab_clock_ns(CLOCK_THREAD_CPUTIME_ID) < until; turn++) {
		/* Few at a time, so that ordinary turns are short. */
		for (int i = 0; i < RECORDS; i++)
			records[i] = (int)(lab_mix(turn + (uint64_t)i) % 1000);
		qsort(records, 8, sizeof(records[0]), compare_records);
	}
}

LAB_NAMED void find_records(int ms)
{
	uint64_t until = lab_clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)ms * 1000000;
	for (int i = 0; i < RECORDS; i++)
		records[i] = 2 * i;
	for (int wanted = 1; lab_clock_ns(CLOCK_THREAD_CPUTIME_ID) < until; wanted += 2)
		bsearch(&wanted, records, RECORDS, sizeof(records[0]), compare_records);
}

LAB_NAMED void on_signal(int number)
{
	(void)number;
	LAB_COMPUTE_US(work_ms * 1000);
}

LAB_NAMED void raise_signal(void)
{
	LAB_TRY(raise(SIGUSR1));
}

static void *serve(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&worker_may_start);
		switch (through) {
		case QSORT:
			sort_records(work_ms);
			break;
		case BSEARCH:
			find_records(work_ms);
			break;
		case SIGNAL:
			raise_signal();
			break;
		}
		sem_post(&worker_is_done);
	}
	return NULL;
}

LAB_NAMED void wait_for_worker(void)
{
	LAB_TRY(sem_wait(&worker_is_done));
}

static void turn(int ms)
{
	work_ms = ms;
	sem_post(&worker_may_start);
	wait_for_worker();
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "callback");
	int hang_ms = lab_hang_ms();
	through = (enum through)LAB_PICK("through", "qsort", "bsearch", "signal");
	sem_init(&worker_may_start, 0, 0);
	sem_init(&worker_is_done, 0, 0);
	LAB_TRY(signal(SIGUSR1, on_signal));
	lab_thread(serve, NULL, "worker");
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
