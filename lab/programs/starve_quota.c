/*
 * Starvation by quota: for one turn the program sits in a cgroup that may use a small part of a
 * CPU. Nobody else uses it; the CPUs are idle.
 */
#include "lab.h"
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

/* Where a version of cgroups is mounted, and how it takes a quota. */
static const struct hierarchy {
	const char *mount, *must_exist;
	bool v2;
} hierarchies[] = {
    {"/sys/fs/cgroup/cpu", "cgroup.procs", false},
    {"/sys/fs/cgroup/cpu,cpuacct", "cgroup.procs", false},
    {"/sys/fs/cgroup", "cgroup.controllers", true},
};

static char group[PATH_MAX / 2], home[PATH_MAX / 2];
static int quota_ms, period_ms;

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

static void move_to(const char *directory)
{
	if (!write_file(directory, "cgroup.procs", "%d", getpid()))
		lab_exit(1, "cannot move to %s: %s", directory, strerror(errno));
}

/* The group that this process is in, to go back to. */
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
	if (!hierarchy->v2)
		return write_file(group, "cpu.cfs_period_us", "%d", period_ms * 1000) &&
		       write_file(group, "cpu.cfs_quota_us", "%d", quota_ms * 1000);
	return write_file(group, "cpu.max", "%d %d", quota_ms * 1000, period_ms * 1000);
}

/*
 * Removes the group when the program has ended in whatever way: the pipe's other end closes, and
 * soon after nobody is left in the group.
 */
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

static void make_group(void)
{
	for (size_t i = 0; i < LAB_COUNT(hierarchies); i++) {
		const struct hierarchy *hierarchy = &hierarchies[i];
		char path[PATH_MAX];
		snprintf(path, sizeof(path), "%s/%s", hierarchy->mount, hierarchy->must_exist);
		if (access(path, F_OK) != 0 || !find_home(hierarchy))
			continue;
		if (hierarchy->v2)
			write_file(hierarchy->mount, "cgroup.subtree_control", "+cpu");
		snprintf(group, sizeof(group), "%s/hangdog-lab-%d", hierarchy->mount, getpid());
		if (mkdir(group, 0755) != 0)
			continue;
		if (set_quota(hierarchy))
			return;
		rmdir(group);
	}
	lab_exit(LAB_CANNOT_RUN, "no cgroup with a CPU quota can be made: run as root where the "
				 "cpu controller is");
}

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
	make_group();
	leave_janitor();

	lab_turns(turn);
	/* Outside the hang: a move between groups waits for the kernel for a while of its own. */
	move_to(group);
	lab_hang(hang, hang_ms);
	move_to(home);
	lab_turns(turn);
	return 0;
}
