/*
 * Starvation by priority: the main thread wants to compute, but a realtime thread on the same CPU
 * computes instead. The two never speak to each other by any call.
 */
#include "hog.h"
#include <sys/mman.h>

LAB_NAMED void compute_in_turn(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

/* 60 ms: more than the kernel's fair server gives the starved in the time of the hang. */
static void hang(int ms)
{
	atomic_store(hog_ms, ms);
	compute_in_turn(60);
}

static void turn(int ms)
{
	compute_in_turn(ms);
	LAB_SLEEP_US(1000);
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "starve_prio");
	/* Realtime threads together get 950 ms of each second: a longer hog would be throttled. */
	int hang_ms = lab_choose("hang_ms", 600, 900);
	bool process = LAB_PICK("hog", "thread", "process") == 1;
	if (!hog_is_allowed())
		lab_exit(LAB_CANNOT_RUN, "SCHED_FIFO is not allowed: run as root");
	hog_cpu = hog_first_cpu();
	/* Shared with a hog that is a process of its own. */
	hog_ms =
	    mmap(NULL, sizeof(*hog_ms), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (hog_ms == MAP_FAILED)
		lab_exit(1, "mmap: %s", strerror(errno));
	lab_decoys();
	if (process)
		lab_process(hog, NULL, "hog");
	else
		lab_thread(hog, NULL, "hog");
	hog_pin_to_cpu();

	lab_turns(turn);
	lab_hang(hang, hang_ms);
	lab_turns(turn);
	return 0;
}
