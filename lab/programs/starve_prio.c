/*
 * Starvation by priority: the main thread wants to compute, but a realtime thread on the same CPU
 * computes instead. The two never speak to each other by any call.
 */
#include "lab.h"
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* Shared with a hog that is a process of its own. */
static atomic_int *hog_may_start_ms;
static int cpu;

static void pin_to_cpu(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	LAB_TRY(sched_setaffinity(0, sizeof(one), &one));
}

LAB_NAMED void hog_the_cpu(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

/* Starts by its own clock, so that nothing in the trace says that main let it loose. */
static void *hog(void *unused)
{
	(void)unused;
	pin_to_cpu();
	struct sched_param priority = {.sched_priority = 50};
	LAB_TRY(sched_setscheduler(0, SCHED_FIFO, &priority));
	for (;;) {
		LAB_SLEEP_US(1000);
		int ms = atomic_exchange(hog_may_start_ms, 0);
		if (ms != 0)
			hog_the_cpu(ms);
	}
	return NULL;
}

LAB_NAMED void compute_in_turn(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

/* 60 ms: more than the kernel's fair server gives the starved in the time of the hang. */
static void hang(int ms)
{
	atomic_store(hog_may_start_ms, ms);
	compute_in_turn(60);
}

static void turn(int ms)
{
	compute_in_turn(ms);
	LAB_SLEEP_US(1000);
}

static int first_cpu(void)
{
	cpu_set_t allowed;
	LAB_TRY(sched_getaffinity(0, sizeof(allowed), &allowed));
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &allowed))
			return i;
	lab_exit(1, "no CPU is allowed");
}

static bool realtime_is_allowed(void)
{
	struct sched_param priority = {.sched_priority = 50}, normal = {0};
	return sched_setscheduler(0, SCHED_FIFO, &priority) == 0 &&
	       sched_setscheduler(0, SCHED_OTHER, &normal) == 0;
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "starve_prio");
	/* Realtime threads together get 950 ms of each second: a longer hog would be throttled. */
	int hang_ms = lab_choose("hang_ms", 600, 900);
	bool process = LAB_PICK("hog", "thread", "process") == 1;
	if (!realtime_is_allowed())
		lab_exit(LAB_CANNOT_RUN, "SCHED_FIFO is not allowed: run as root");
	cpu = first_cpu();
	hog_may_start_ms = mmap(NULL, sizeof(*hog_may_start_ms), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (hog_may_start_ms == MAP_FAILED)
		lab_exit(1, "mmap: %s", strerror(errno));
	lab_decoys();
	if (process)
		lab_process(hog, NULL, "hog");
	else
		lab_thread(hog, NULL, "hog");
	pin_to_cpu();

	lab_turns(turn);
	lab_hang(hang, hang_ms);
	lab_turns(turn);
	return 0;
}
