/*
 * Ways to be kept off the CPU: by a realtime thread on the same CPU that nothing ties to the chain,
 * or by a cgroup's quota.
 */
#include "compose.h"
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <sys/stat.h>

static int cpu;

static void pin_to_cpu(void)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	LAB_TRY(sched_setaffinity(0, sizeof(one), &one));
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

/* ---- A realtime hog ---- */

bool realtime_is_allowed(void)
{
	struct sched_param priority = {.sched_priority = 50}, normal = {0};
	return sched_setscheduler(0, SCHED_FIFO, &priority) == 0 &&
	       sched_setscheduler(0, SCHED_OTHER, &normal) == 0;
}

LAB_NAMED void hog_the_cpu(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

/* Starts by its own clock, so that no wake says who let it loose. */
static void *hog(void *unused)
{
	(void)unused;
	pin_to_cpu();
	struct sched_param priority = {.sched_priority = 50};
	LAB_TRY(sched_setscheduler(0, SCHED_FIFO, &priority));
	for (;;) {
		LAB_SLEEP_US(1000);
		int ms = atomic_exchange(&shared->hog_ms, 0);
		if (ms != 0)
			hog_the_cpu(ms);
	}
	return NULL;
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
		pin_to_cpu();
	pinned = true;
	if (hanging)
		atomic_store(&shared->hog_ms, ms);
	compute_under_hog(hanging ? 60 : ms);
}

/* ---- A quota: where a version of cgroups is mounted, and how it takes one ---- */

static const struct hierarchy {
	const char *mount, *must_exist;
	bool v2;
} hierarchies[] = {
    {"/sys/fs/cgroup/cpu", "cgroup.procs", false},
    {"/sys/fs/cgroup/cpu,cpuacct", "cgroup.procs", false},
    {"/sys/fs/cgroup", "cgroup.controllers", true},
};

#define PERIOD_MS 100

static char group[PATH_MAX / 2], home[PATH_MAX / 2];

__attribute__((format(printf, 3, 4))) static bool
write_file(const char *directory, const char *name, const char *format, ...)
{
	char path[PATH_MAX], text[64];
	va_list args;
	va_start(args, format);
	int length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	int file = open(path, O_WRONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	bool written = write(file, text, (size_t)length) == length;
	close(file);
	return written;
}

static bool find_home(const struct hierarchy *hierarchy)
{
	char line[PATH_MAX / 4];
	FILE *groups = fopen("/proc/self/cgroup", "re");
	if (groups == NULL)
		return false;
	bool found = false;
	while (!found && fgets(line, sizeof(line), groups) != NULL) {
		char *controllers = strchr(line, ':') + 1;
		char *path = strchr(controllers, ':');
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		found = hierarchy->v2 ? *controllers == '\0'
				      : strcmp(controllers, "cpu") == 0 ||
					    strcmp(controllers, "cpu,cpuacct") == 0;
		if (found)
			snprintf(home, sizeof(home), "%s%s", hierarchy->mount, path);
	}
	fclose(groups);
	return found;
}

static bool set_quota(const struct hierarchy *hierarchy)
{
	int quota_us = plan.quota_percent * PERIOD_MS * 10;
	if (!hierarchy->v2)
		return write_file(group, "cpu.cfs_period_us", "%d", PERIOD_MS * 1000) &&
		       write_file(group, "cpu.cfs_quota_us", "%d", quota_us);
	return write_file(group, "cpu.max", "%d %d", quota_us, PERIOD_MS * 1000);
}

static bool make_group(void)
{
	for (size_t i = 0; i < LAB_COUNT(hierarchies); i++) {
		const struct hierarchy *hierarchy = &hierarchies[i];
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s/%s", hierarchy->mount, hierarchy->must_exist);
		if (access(path, F_OK) != 0 || !find_home(hierarchy))
			continue;
		if (hierarchy->v2)
			write_file(hierarchy->mount, "cgroup.subtree_control", "+cpu");
		snprintf(group, sizeof(group), "%s/hangdog-compose-%d", hierarchy->mount, getpid());
		if (mkdir(group, 0755) != 0)
			continue;
		if (set_quota(hierarchy))
			return true;
		rmdir(group);
	}
	return false;
}

bool quota_is_allowed(void)
{
	if (!make_group())
		return false;
	rmdir(group);
	return true;
}

/* Removes the group when the program has ended in whatever way: the pipe's other end closes. */
static void leave_janitor(void)
{
	int alive[2];
	LAB_TRY(pipe2(alive, O_CLOEXEC));
	fflush(stdout);
	if (LAB_TRY(fork()) != 0) {
		close(alive[0]);
		return;
	}
	prctl(PR_SET_NAME, "janitor");
	setsid();
	close(alive[1]);
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	for (char byte; read(alive[0], &byte, 1) > 0;)
		;
	for (int i = 0; i < 100 && rmdir(group) != 0 && errno == EBUSY; i++)
		LAB_SLEEP_US(20000);
	_exit(0);
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
	if (!write_file(group, "cgroup.procs", "%d", getpid()))
		lab_exit(1, "cannot move to %s: %s", group, strerror(errno));
	compute_under_quota(ms * plan.quota_percent / 100);
	write_file(home, "cgroup.procs", "%d", getpid());
}

void starve_open(void)
{
	cpu = first_cpu();
	if (plan.root == ROOT_QUOTA) {
		if (!make_group())
			lab_exit(LAB_CANNOT_RUN, "no cgroup with a CPU quota can be made");
		leave_janitor();
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
