/*
 * A realtime thread that takes a CPU from others for a while, and is never tied to them by any
 * call.
 */
#ifndef HOG_H
#define HOG_H

#include "lab.h"
#include <sched.h>
#include <stdatomic.h>

/* For how long it is to take the CPU next; in memory that all processes share. */
static atomic_int *hog_ms;
static int hog_cpu;

static inline void hog_pin_to_cpu(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(hog_cpu, &one);
	LAB_TRY(sched_setaffinity(0, sizeof(one), &one));
}

static inline int hog_first_cpu(void)
{
	cpu_set_t allowed;
	LAB_TRY(sched_getaffinity(0, sizeof(allowed), &allowed));
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &allowed))
			return i;
	lab_exit(1, "no CPU is allowed");
}

static inline bool hog_is_allowed(void)
{
	struct sched_param priority = {.sched_priority = 50}, normal = {0};
	return sched_setscheduler(0, SCHED_FIFO, &priority) == 0 &&
	       sched_setscheduler(0, SCHED_OTHER, &normal) == 0;
}

LAB_NAMED void hog_the_cpu(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

/* A thread's body. Starts by its own clock, so that no wake says who let it loose. */
static inline void *hog(void *unused)
{
	(void)unused;
	hog_pin_to_cpu();
	struct sched_param priority = {.sched_priority = 50};
	LAB_TRY(sched_setscheduler(0, SCHED_FIFO, &priority));
	for (;;) {
		LAB_SLEEP_US(1000);
		int ms = atomic_exchange(hog_ms, 0);
		if (ms != 0)
			hog_the_cpu(ms);
	}
	return NULL;
}

#endif
