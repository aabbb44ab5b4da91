/*
 * Ways to be kept off the CPU: by a realtime thread on the same CPU that nothing ties to the chain,
 * or by a cgroup's quota.
 */
#include "../cgroup.h"
#include "../hog.h"
#include "compose.h"

#define PERIOD_MS 100

/* ---- A realtime hog ---- */

bool realtime_is_allowed(void)
{
	return hog_is_allowed();
}

LAB_NAMED void compute_under_hog(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

/* 60 ms: more than the kernel's fair server gives the starved in the time of the hang. */
void hogged_work(bool hanging, int ms)
{
	/* The thread may be new in each turn. */
	static _Thread_local bool pinned;
	if (!pinned)
		hog_pin_to_cpu();
	pinned = true;
	if (hanging)
		atomic_store(hog_ms, ms);
	compute_under_hog(hanging ? 60 : ms);
}

/* ---- A quota ---- */

static bool make_group(void)
{
	return cgroup_make(plan.quota_percent * PERIOD_MS * 10, PERIOD_MS * 1000);
}

bool quota_is_allowed(void)
{
	if (!make_group())
		return false;
	rmdir(cgroup);
	return true;
}

LAB_NAMED void compute_under_quota(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

/* The root is a process of its own: nobody else is throttled. It moves as the turn begins, which
 * the kernel does within milliseconds. */
void quota_work(bool hanging, int ms)
{
	if (!hanging) {
		compute_under_quota(ms);
		return;
	}
	cgroup_move_to(cgroup);
	compute_under_quota(ms * plan.quota_percent / 100);
	cgroup_move_to(cgroup_home);
}

void starve_open(void)
{
	hog_cpu = hog_first_cpu();
	hog_ms = &shared->hog_ms;
	if (plan.root == ROOT_QUOTA) {
		if (!make_group())
			lab_exit(LAB_CANNOT_RUN, "no cgroup with a CPU quota can be made");
		cgroup_leave_janitor();
		return;
	}
	if (plan.hog_is_process)
		lab_process(hog, NULL, "hog");
}

void starve_start(void)
{
	if (plan.root == ROOT_HOGGED && !plan.hog_is_process)
		lab_thread(hog, NULL, "hog");
}
