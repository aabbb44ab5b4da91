/*
 * A cgroup with a CPU quota, in whichever version of cgroups is mounted, for a program that moves
 * into it and out again.
 */
#ifndef CGROUP_H
#define CGROUP_H

#include "lab.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

/* Where a version of cgroups is mounted, and how it takes a quota. */
static const struct cgroup_hierarchy {
	const char *mount, *must_exist;
	bool v2;
} cgroup_hierarchies[] = {
    {"/sys/fs/cgroup/cpu", "cgroup.procs", false},
    {"/sys/fs/cgroup/cpu,cpuacct", "cgroup.procs", false},
    {"/sys/fs/cgroup", "cgroup.controllers", true},
};

/* The group, and the one that this process is in otherwise. */
static char cgroup[PATH_MAX / 2], cgroup_home[PATH_MAX / 2];

__attribute__((format(printf, 3, 4))) static inline bool
cgroup_write(const char *directory, const char *name, const char *format, ...)
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

static inline bool cgroup_find_home(const struct cgroup_hierarchy *hierarchy)
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
			snprintf(cgroup_home, sizeof(cgroup_home), "%s%s", hierarchy->mount, path);
	}
	fclose(groups);
	return found;
}

static inline bool cgroup_set_quota(const struct cgroup_hierarchy *hierarchy, int quota_us,
				    int period_us)
{
	if (!hierarchy->v2)
		return cgroup_write(cgroup, "cpu.cfs_period_us", "%d", period_us) &&
		       cgroup_write(cgroup, "cpu.cfs_quota_us", "%d", quota_us);
	return cgroup_write(cgroup, "cpu.max", "%d %d", quota_us, period_us);
}

/* Makes the group; false where the machine does not allow it. */
static inline bool cgroup_make(int quota_us, int period_us)
{
	for (size_t i = 0; i < LAB_COUNT(cgroup_hierarchies); i++) {
		const struct cgroup_hierarchy *hierarchy = &cgroup_hierarchies[i];
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s/%s", hierarchy->mount, hierarchy->must_exist);
		if (access(path, F_OK) != 0 || !cgroup_find_home(hierarchy))
			continue;
		if (hierarchy->v2)
			cgroup_write(hierarchy->mount, "cgroup.subtree_control", "+cpu");
		snprintf(cgroup, sizeof(cgroup), "%s/hangdog-lab-%d", hierarchy->mount, getpid());
		if (mkdir(cgroup, 0755) != 0)
			continue;
		if (cgroup_set_quota(hierarchy, quota_us, period_us))
			return true;
		rmdir(cgroup);
	}
	return false;
}

/*
 * Removes the group when the program has ended in whatever way: the pipe's other end closes, and
 * soon after nobody is left in the group.
 */
static inline void cgroup_leave_janitor(void)
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
	for (int i = 0; i < 100 && rmdir(cgroup) != 0 && errno == EBUSY; i++)
		LAB_SLEEP_US(20000);
	_exit(0);
}

/* Moves this process to the group, or home. */
static inline void cgroup_move_to(const char *directory)
{
	if (!cgroup_write(directory, "cgroup.procs", "%d", getpid()))
		lab_exit(1, "cannot move to %s: %s", directory, strerror(errno));
}

#endif
