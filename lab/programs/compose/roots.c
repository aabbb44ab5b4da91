/*
 * Ways to spend the time at the end of the chain. In ordinary turns the root does the same for
 * milliseconds.
 */
#include "compose.h"
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/statfs.h>

#define PAGE 4096
#define FILE_PAGES 24576

static int data_file;
static char *direct_buffer;
static volatile char *mapped;
static sem_t setter_may_start;
static atomic_bool flag;

/* ---- Computes, sleeps ---- */

LAB_NAMED void compute_result(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

LAB_NAMED void sleep_on_the_job(int ms)
{
	LAB_SLEEP_US(ms * UINT64_C(1000));
}

/* ---- Polls a flag that a thread sets when it has slept ---- */

static void *set_flag(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&setter_may_start);
		LAB_SLEEP_US(shared->work_ms * UINT64_C(1000));
		atomic_store(&flag, true);
	}
	return NULL;
}

LAB_NAMED void give_way(void)
{
	if (plan.naps)
		usleep((useconds_t)plan.nap_us);
	else
		sched_yield();
}

LAB_NAMED void wait_for_flag(void)
{
	sem_post(&setter_may_start);
	while (!atomic_exchange(&flag, false))
		give_way();
}

/* ---- Waits for the disk: a file read past the page cache, or through a mapping, page by page ----
 */

static const char *data_path(void)
{
	static char path[PATH_MAX + 16];
	char program[PATH_MAX];
	ssize_t length = LAB_TRY(readlink("/proc/self/exe", program, sizeof(program) - 1));
	program[length] = '\0';
	snprintf(path, sizeof(path), "%s/compose.data", dirname(program));
	return path;
}

/* Makes the file that all runs read, unless it is there. */
static bool make_data(void)
{
	const char *path = data_path();
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file >= 0) {
		bool whole = lseek(file, 0, SEEK_END) == (off_t)FILE_PAGES * PAGE;
		close(file);
		if (whole)
			return true;
	}
	char name[PATH_MAX + 32];
	snprintf(name, sizeof(name), "%s.%d", path, getpid());
	file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file < 0)
		return false;
	char *page = malloc(PAGE);
	bool written = page != NULL;
	for (int i = 0; written && i < FILE_PAGES; i++) {
		memset(page, i, PAGE);
		written = write(file, page, PAGE) == PAGE;
	}
	free(page);
	written = fsync(file) == 0 && written;
	close(file);
	if (!written || rename(name, path) != 0) {
		unlink(name);
		return false;
	}
	return true;
}

static bool has_a_disk(void)
{
	char path[PATH_MAX + 16];
	snprintf(path, sizeof(path), "%s", data_path());
	struct statfs fs;
	if (statfs(dirname(path), &fs) != 0 || fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		return false;
	return make_data();
}

static void open_direct(void)
{
	data_file = LAB_TRY(open(data_path(), O_RDONLY | O_DIRECT | O_CLOEXEC));
	direct_buffer =
	    mmap(NULL, plan.chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (direct_buffer == MAP_FAILED)
		lab_exit(1, "mmap: %s", strerror(errno));
	memset(direct_buffer, 1, plan.chunk);
}

LAB_NAMED void read_past_cache(void)
{
	LAB_TRY(pread(data_file, direct_buffer, plan.chunk, 0));
}

static void forget_pages(void)
{
	LAB_TRY(madvise((void *)mapped, (size_t)FILE_PAGES * PAGE, MADV_DONTNEED));
	posix_fadvise(data_file, 0, 0, POSIX_FADV_DONTNEED);
}

static void open_mapped(void)
{
	data_file = LAB_TRY(open(data_path(), O_RDONLY | O_CLOEXEC));
	void *all = mmap(NULL, (size_t)FILE_PAGES * PAGE, PROT_READ, MAP_SHARED, data_file, 0);
	if (all == MAP_FAILED)
		lab_exit(1, "mmap: %s", strerror(errno));
	/* No reading ahead: each page is waited for. */
	LAB_TRY(madvise(all, (size_t)FILE_PAGES * PAGE, MADV_RANDOM));
	mapped = all;
	forget_pages();
}

/* Goes through all pages in a scattered order; the step has no divisor in common with their count.
 */
LAB_NAMED void touch_pages(int ms)
{
	static unsigned at;
	uint64_t until = lab_now_ns() + (uint64_t)ms * 1000000;
	for (unsigned touched = 1; lab_now_ns() < until; touched++) {
		at = (at + 7919) % FILE_PAGES;
		(void)mapped[(size_t)at * PAGE];
		if (touched % FILE_PAGES == 0)
			forget_pages();
	}
}

/* ---- All of them ---- */

bool root_can(enum root root)
{
	switch (root) {
	case ROOT_HOGGED:
		return realtime_is_allowed();
	case ROOT_QUOTA:
		return quota_is_allowed();
	case ROOT_DISK:
	case ROOT_PAGES:
		return has_a_disk();
	default:
		return true;
	}
}

void root_open(void)
{
	switch (plan.root) {
	case ROOT_DISK:
		open_direct();
		break;
	case ROOT_PAGES:
		open_mapped();
		break;
	case ROOT_YIELDS:
		sem_init(&setter_may_start, 0, 0);
		break;
	case ROOT_HOGGED:
	case ROOT_QUOTA:
		starve_open();
		break;
	case ROOT_LOCK_KNOT:
	case ROOT_REQUEST_KNOT:
		knot_open();
		break;
	default:
		break;
	}
}

void root_start_helpers(void)
{
	if (plan.root == ROOT_YIELDS)
		lab_thread(set_flag, NULL, "setter");
	starve_start();
	if (plan.root == ROOT_LOCK_KNOT || plan.root == ROOT_REQUEST_KNOT)
		knot_start();
}

void root_work(void)
{
	bool hanging = shared->hanging;
	int ms = shared->work_ms;
	uint64_t until = lab_now_ns() + (uint64_t)ms * 1000000;
	switch (plan.root) {
	case ROOT_COMPUTES:
		/* Where it is given up it goes on until then, however long that takes by the CPU's
		 * time: on a busy machine there would be a second hang otherwise. */
		if (hanging && plan.is_given_up)
			while (shared->hanging)
				compute_result(20);
		else
			compute_result(ms);
		break;
	case ROOT_SLEEPS:
		sleep_on_the_job(ms);
		break;
	case ROOT_DISK:
		do
			read_past_cache();
		while (lab_now_ns() < until);
		break;
	case ROOT_YIELDS:
		wait_for_flag();
		break;
	case ROOT_PAGES:
		touch_pages(ms);
		break;
	case ROOT_HOGGED:
		hogged_work(hanging, ms);
		break;
	case ROOT_QUOTA:
		quota_work(hanging, ms);
		break;
	case ROOT_LOCK_KNOT:
	case ROOT_REQUEST_KNOT:
		knot_work(hanging, ms);
		break;
	}
}

const char *root_function(void)
{
	switch (plan.root) {
	case ROOT_COMPUTES:
		return "compute_result";
	case ROOT_SLEEPS:
		return plan.forgets ? NULL : "sleep_on_the_job";
	case ROOT_DISK:
		return "read_past_cache";
	case ROOT_YIELDS:
		return "wait_for_flag";
	case ROOT_PAGES:
		return "touch_pages";
	case ROOT_HOGGED:
		return "hog_the_cpu";
	case ROOT_QUOTA:
		return "compute_under_quota";
	default:
		return NULL;
	}
}
