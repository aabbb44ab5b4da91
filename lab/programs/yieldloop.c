/*
 * A poll loop on a flag: the main thread yields, or naps for microseconds, until another thread
 * sets a variable. No call tells anybody who will set it.
 */
#include "lab.h"
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

enum poll { YIELD, NAP };

static enum lab_ending ending;
static enum poll poll;
static int nap_us;
static int work_ms;
static sem_t worker_may_start;
static atomic_bool flag;

LAB_NAMED void compute_before_flag(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

static void *serve(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&worker_may_start);
		if (ending == LAB_COMPUTES)
			compute_before_flag(work_ms);
		else
			LAB_SLEEP_US(work_ms * UINT64_C(1000));
		atomic_store(&flag, true);
	}
	return NULL;
}

LAB_NAMED void give_way(void)
{
	if (poll == YIELD)
		sched_yield();
	else
		usleep((useconds_t)nap_us);
}

LAB_NAMED void wait_for_flag(void)
{
	while (!atomic_exchange(&flag, false))
		give_way();
}

static void turn(int ms)
{
	work_ms = ms;
	sem_post(&worker_may_start);
	wait_for_flag();
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "yieldloop");
	int hang_ms = lab_hang_ms();
	ending = lab_ending();
	poll = (enum poll)LAB_PICK("poll", "yield", "nap");
	nap_us = lab_choose("nap_us", 50, 200);
	sem_init(&worker_may_start, 0, 0);
	lab_thread(serve, NULL, "worker");
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
