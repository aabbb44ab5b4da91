/*
 * Starvation by quota: for one turn the program sits in a cgroup that may use a small part of a
 * CPU. Nobody else uses it; the CPUs are idle.
 */
#include "cgroup.h"

static int quota_ms, period_ms;

LAB_NAMED void compute_in_turn(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

static void turn(int ms)
{
	compute_in_turn(ms);
	LAB_SLEEP_US(1000);
}

static void hang(int ms)
{
	compute_in_turn(ms * quota_ms / period_ms);
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "starve_quota");
	int hang_ms = lab_choose("hang_ms", 1000, 1500);
	period_ms = LAB_PICK("period", "100ms", "200ms") == 0 ? 100 : 200;
	quota_ms = lab_choose("quota_percent", 8, 15) * period_ms / 100;
	/* Before the group is: decoys and janitor stay out of it. */
	lab_decoys_of(true);
	if (!cgroup_make(quota_ms * 1000, period_ms * 1000))
		lab_exit(LAB_CANNOT_RUN, "no cgroup with a CPU quota can be made: run as root "
					 "where the cpu controller is");
	cgroup_leave_janitor();

	lab_turns(turn);
	/* Outside the hang: a move between groups waits for the kernel for a while of its own. */
	cgroup_move_to(cgroup);
	lab_hang(hang, hang_ms);
	cgroup_move_to(cgroup_home);
	lab_turns(turn);
	return 0;
}
