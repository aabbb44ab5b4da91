/*
 * Programs that page for a planted reason: `cases NAME ARGUMENT...`. Each prints what it did as one
 * line of JSON when it is done: from when to when, on CLOCK_MONOTONIC, and how many faults the
 * kernel counted for it in that time (getrusage). What must be found is known from how it is built.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define SETTLE_US 1500000

#define TRY(what)                                                                                  \
	({                                                                                         \
		__auto_type result_ = (what);                                                      \
		if (result_ == (__typeof__(result_))-1) {                                          \
			fprintf(stderr, "%s: %s\n", #what, strerror(errno));                       \
			exit(1);                                                                   \
		}                                                                                  \
		result_;                                                                           \
	})

static volatile unsigned char sink;

struct phase {
	uint64_t from;
	struct rusage before;
};

static uint64_t now_ns(void)
{
	struct timespec now;
	TRY(clock_gettime(CLOCK_MONOTONIC, &now));
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct phase begin(void)
{
	struct phase phase;
	/* The pages of this program's own text and stack that are needed below are there from now
	 * on. */
	TRY(getrusage(RUSAGE_SELF, &phase.before));
	phase.from = now_ns();
	TRY(getrusage(RUSAGE_SELF, &phase.before));
	return phase;
}

/* What was done since `phase` began; `more` is more of the same JSON. */
static void end(const struct phase *phase, const char *more)
{
	struct rusage after;
	TRY(getrusage(RUSAGE_SELF, &after));
	printf("{\"pid\": %d, \"from\": %" PRIu64 ", \"to\": %" PRIu64
	       ", \"major\": %ld, \"minor\": %ld%s}\n",
	       getpid(), phase->from, now_ns(), after.ru_majflt - phase->before.ru_majflt,
	       after.ru_minflt - phase->before.ru_minflt, more);
	fflush(stdout);
}

static size_t number(const char *text)
{
	return strtoul(text, NULL, 10);
}

struct file {
	int fd;
	size_t pages;
	unsigned char *at;
};

/* A file of which nothing is in memory, mapped. */
static struct file map_cold(const char *path, int protection, int flags)
{
	struct file file = {.fd = TRY(open(path, O_RDWR | O_CLOEXEC))};
	struct stat stat;
	TRY(fstat(file.fd, &stat));
	TRY(fsync(file.fd));
	posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
	file.pages = (size_t)stat.st_size / PAGE;
	file.at = TRY(mmap(NULL, (size_t)stat.st_size, protection, flags, file.fd, 0));
	return file;
}

static size_t resident(const struct file *file)
{
	unsigned char *there = calloc(file->pages, 1);
	size_t count = 0;
	TRY(mincore(file->at, file->pages * PAGE, there));
	for (size_t page = 0; page < file->pages; page++)
		count += there[page] & 1;
	free(there);
	return count;
}

/* Every page of a mapped file from its end to its beginning, and no page beside it is read. */
static void backwards(char **arguments)
{
	struct file file = map_cold(arguments[0], PROT_READ, MAP_SHARED);
	TRY(madvise(file.at, file.pages * PAGE, MADV_RANDOM));
	struct phase phase = begin();
	for (size_t page = file.pages; page-- > 0;)
		sink = file.at[page * PAGE];
	end(&phase, "");
}

/* One page of every so many is written into a private mapping: what is read around it is not used.
 */
static void ahead(char **arguments)
{
	struct file file = map_cold(arguments[0], PROT_READ | PROT_WRITE, MAP_PRIVATE);
	size_t step = number(arguments[1]), touched = 0;
	char more[128];
	struct phase phase = begin();
	for (size_t page = step / 2; page < file.pages; page += step, touched++)
		file.at[page * PAGE] = 1;
	snprintf(more, sizeof(more), ", \"touched\": %zu, \"resident\": %zu", touched,
		 resident(&file));
	end(&phase, more);
}

/* The heap, so many pages of it, by brk; each page has been written to. */
static unsigned char *make_heap(size_t pages)
{
	uintptr_t at = (uintptr_t)sbrk((intptr_t)(pages * PAGE + PAGE));
	unsigned char *heap = (unsigned char *)((at + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
	for (size_t page = 0; page < pages; page++)
		/* Half of it random: zram is not to make it go away. */
		for (size_t byte = 0; byte < PAGE / 2; byte += 4)
			*(uint32_t *)(heap + page * PAGE + byte) = (uint32_t)random();
	return heap;
}

static void read_all(const unsigned char *memory, size_t pages)
{
	for (size_t page = 0; page < pages; page++)
		sink = memory[page * PAGE];
}

/* A heap that is larger than its control group, read from its beginning to its end several times.
 */
static void heap(char **arguments)
{
	size_t pages = number(arguments[0]), rounds = number(arguments[1]);
	unsigned char *heap = make_heap(pages);
	struct phase phase = begin();
	for (size_t round = 0; round < rounds; round++)
		read_all(heap, pages);
	end(&phase, "");
}

/* Two processes that hand a byte to and fro, each of which reads its whole heap when it has it. */
static void handshake(char **arguments)
{
	size_t pages = number(arguments[0]), rounds = number(arguments[1]);
	int to_child[2], to_parent[2];
	char byte = 0;
	TRY(pipe(to_child));
	TRY(pipe(to_parent));
	bool is_child = TRY(fork()) == 0;
	int in = is_child ? to_child[0] : to_parent[0], out = is_child ? to_parent[1] : to_child[1];
	unsigned char *heap = make_heap(pages);
	/* Both heaps are there. */
	TRY(write(out, &byte, 1));
	TRY(read(in, &byte, 1));
	struct phase phase = begin();
	for (size_t round = 0; round < rounds; round++) {
		if (is_child || round > 0)
			TRY(read(in, &byte, 1));
		read_all(heap, pages);
		TRY(write(out, &byte, 1));
	}
	if (!is_child)
		TRY(read(in, &byte, 1));
	end(&phase, "");
	if (!is_child)
		TRY(wait(NULL));
}

/* A mapped file that is in memory; then another process of the group wants so much memory that the
 * file's pages go; then the file is read again. */
static void neighbour(char **arguments)
{
	struct file file = map_cold(arguments[0], PROT_READ, MAP_SHARED);
	size_t wanted = number(arguments[1]);
	TRY(madvise(file.at, file.pages * PAGE, MADV_RANDOM));
	read_all(file.at, file.pages);
	int child = TRY(fork());
	if (child == 0) {
		make_heap(wanted);
		_exit(0);
	}
	TRY(waitpid(child, NULL, 0));
	size_t there = resident(&file);
	char more[128];
	snprintf(more, sizeof(more), ", \"neighbour\": %d, \"gone\": %zu", child,
		 file.pages - there);
	struct phase phase = begin();
	read_all(file.at, file.pages);
	end(&phase, more);
}

/* Functions of a library, every so many of which are called. The others lie between them. */
static void scattered(char **arguments);

/* A page that is written to while the device still writes it: many pages before it are written
 * first. */
static void writeback(char **arguments)
{
	struct file file = map_cold(arguments[0], PROT_READ | PROT_WRITE, MAP_SHARED);
	for (size_t page = 0; page < file.pages; page++)
		file.at[page * PAGE] = 1;
	TRY(sync_file_range(file.fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	struct phase phase = begin();
	file.at[(file.pages - 1) * PAGE] = 2;
	end(&phase, "");
}

/* Memory that is given back and taken again: faults without number, and no page comes from
 * anywhere. */
static void storm(char **arguments)
{
	size_t pages = number(arguments[0]), rounds = number(arguments[1]);
	unsigned char *memory = TRY(
	    mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	struct phase phase = begin();
	for (size_t round = 0; round < rounds; round++) {
		for (size_t page = 0; page < pages; page++)
			memory[page * PAGE] = 1;
		TRY(madvise(memory, pages * PAGE, MADV_DONTNEED));
	}
	end(&phase, "");
}

#include "scattered.h"

static void scattered(char **arguments)
{
	call_hot(arguments[0]);
}

static const struct {
	const char *name;
	void (*run)(char **arguments);
	int arguments;
} all[] = {
    {"backwards", backwards, 1}, {"ahead", ahead, 2},	      {"heap", heap, 2},
    {"handshake", handshake, 2}, {"neighbour", neighbour, 2}, {"scattered", scattered, 1},
    {"writeback", writeback, 1}, {"storm", storm, 2},
};

int main(int count, char **arguments)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (count == all[i].arguments + 2 && strcmp(arguments[1], all[i].name) == 0) {
			/* Whoever records has work to do at first, which is not to be in the way.
			 */
			TRY(usleep(SETTLE_US));
			all[i].run(arguments + 2);
			return 0;
		}
	fprintf(stderr, "usage: %s CASE ARGUMENT...\n", *arguments);
	return 2;
}
