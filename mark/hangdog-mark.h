/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Marks: points and regions that a program names, for hangdog to record. There is no library to
 * link. Linux, GCC or Clang; C11, or C++11 and later. Link with -pthread.
 *
 *     #include "hangdog-mark.h"
 *
 *     hangdog_point(5);                                       // by code, 0 to 16383
 *     hangdog_begin(HANGDOG_NAME("decode"), frame, bytes);    // by name, with up to 4 integers
 *     hangdog_end(HANGDOG_NAME("decode"), frame);
 *
 * A region ends with the last begin of the same code on the same thread. Where regions overlap, or
 * end on other threads, they pair by the first argument too, or by the code alone:
 *
 *     hangdog_begin(hangdog_by_argument(HANGDOG_NAME("download")), id);
 *     hangdog_begin(hangdog_by_code(HANGDOG_NAME("startup")));
 *
 * and any mark can have a colour: hangdog_point(hangdog_coloured(5, HANGDOG_RED)).
 *
 * While nobody records, a mark costs a test of one word. While somebody does, it goes to a ring of
 * 4 MiB in memory that thread and recorder share. docs/MARKS.md describes the memory.
 */
#ifndef HANGDOG_MARK_H
#define HANGDOG_MARK_H

#ifndef _GNU_SOURCE
#error "hangdog-mark.h needs _GNU_SOURCE: compile with -D_GNU_SOURCE"
#endif

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a mark is called: a code, or a name's number, with colour and pairing in its upper bits. */
typedef uint32_t hangdog_code;

/* Colours; 0 leaves the choice to whoever draws. */
enum hangdog_colour {
	HANGDOG_BLUE = 1,
	HANGDOG_GREEN = 2,
	HANGDOG_PURPLE = 3,
	HANGDOG_ORANGE = 4,
	HANGDOG_RED = 5,
};

/* The memory that is shared, as docs/MARKS.md describes it. */

#define HANGDOG_MARK_FILE "hangdog-marks"
#define HANGDOG_MARK_MAGIC UINT64_C(0x736b72616d676468) /* "hdgmarks" */
#define HANGDOG_MARK_VERSION 1
#define HANGDOG_MARK_RINGS 256
#define HANGDOG_MARK_RECORDS 65536
#define HANGDOG_MARK_NAMES 1024
#define HANGDOG_MARK_NAME_LENGTH 60
#define HANGDOG_MARK_FIRST_NAME 16384
/* For so long a new program takes it that it is recorded: until a recorder has found it. In units
 * of its clock: 0.2 s, or some 0.2 s of any time stamp counter. */
#define HANGDOG_MARK_GRACE_NS 200000000
#define HANGDOG_MARK_GRACE_TICKS 500000000

struct hangdog_mark_record {
	uint64_t sequence; /* the record's number in its ring, from 1; written last */
	uint64_t time;	   /* by the area's clock */
	uint32_t tid;	   /* as the program's pid namespace has it */
	uint32_t code;	   /* below 16384 a code, otherwise 16384 + the name's place */
	uint8_t kind;	   /* enum hangdog_mark_kind */
	uint8_t pairing;   /* 0 code and thread, 1 code and first argument, 2 code */
	uint8_t colour;	   /* enum hangdog_colour, 0 none */
	uint8_t reserved[5];
	int64_t arguments[4];
};

enum hangdog_mark_clock { HANGDOG_MARK_MONOTONIC = 0, HANGDOG_MARK_TSC = 1 };

enum hangdog_mark_kind { HANGDOG_MARK_POINT = 0, HANGDOG_MARK_BEGIN = 1, HANGDOG_MARK_END = 2 };

struct hangdog_mark_ring {
	uint64_t begun; /* records begun so far: raised before a record is written */
	uint64_t done;	/* records written so far: raised after */
	uint32_t owner; /* tid of the thread that has the ring; 0 none */
	uint32_t reserved[11];
};

struct hangdog_mark_name {
	uint32_t length; /* 0 until the text is there */
	char text[HANGDOG_MARK_NAME_LENGTH];
};

struct hangdog_mark_area {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;	  /* as the program's pid namespace has it */
	uint32_t rings;	  /* how many */
	uint32_t records; /* of each ring; a power of two */
	uint32_t names;	  /* how many there is room for */
	uint32_t clock;	  /* enum hangdog_mark_clock: CLOCK_MONOTONIC in ns, or the CPU's counter */
	uint32_t reserved0[8];
	uint64_t recorded_until; /* by that clock; 0 while nobody records */
	uint64_t reserved1[7];
	uint64_t unplaced; /* marks of threads that found no free ring */
	uint64_t reserved2[7];
	uint32_t name_count;
	uint8_t reserved3[3900];
	struct hangdog_mark_ring ring[HANGDOG_MARK_RINGS];
	struct hangdog_mark_name name[HANGDOG_MARK_NAMES];
	struct hangdog_mark_record record[HANGDOG_MARK_RINGS][HANGDOG_MARK_RECORDS];
};

/* One of each in a program, in however many files and libraries this header is. */

struct hangdog_mark_thread {
	struct hangdog_mark_area *area;
	struct hangdog_mark_ring *ring;
	struct hangdog_mark_record *records;
	uint32_t tid;
};

#define HANGDOG_MARK_ONE __attribute__((weak))

HANGDOG_MARK_ONE struct hangdog_mark_area *hangdog_mark_area_1;
HANGDOG_MARK_ONE __thread struct hangdog_mark_thread hangdog_mark_thread_1;
HANGDOG_MARK_ONE pthread_mutex_t hangdog_mark_lock_1 = PTHREAD_MUTEX_INITIALIZER;
HANGDOG_MARK_ONE pthread_key_t hangdog_mark_key_1;
HANGDOG_MARK_ONE int hangdog_mark_is_set_up_1;
/* Stands for the shared memory where that cannot be had: nobody records. */
HANGDOG_MARK_ONE uint64_t hangdog_mark_nowhere_1[1024];

static inline uint64_t hangdog_mark_now(uint32_t clock)
{
	struct timespec now;
#ifdef __x86_64__
	if (__builtin_expect(clock == HANGDOG_MARK_TSC, 1))
		return __builtin_ia32_rdtsc();
#endif
	(void)clock;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The CPU's counter is read in half the time, and serves where the kernel itself goes by it. */
static inline uint32_t hangdog_mark_clock(void)
{
	uint32_t clock = HANGDOG_MARK_MONOTONIC;
#ifdef __x86_64__
	char name[4] = {0};
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, name, 4) == 4 && memcmp(name, "tsc\n", 4) == 0)
			clock = HANGDOG_MARK_TSC;
		close(fd);
	}
#endif
	return clock;
}

/* A thread ends: its ring may be another's. */
static inline void hangdog_mark_leave(void *ring)
{
	hangdog_mark_thread_1.ring = 0;
	__atomic_store_n(&((struct hangdog_mark_ring *)ring)->owner, 0, __ATOMIC_RELEASE);
}

/* The shared memory, made anew; null if that cannot be. */
static inline struct hangdog_mark_area *hangdog_mark_make(void)
{
	struct hangdog_mark_area *area;
	struct rlimit limit;
	void *place;
	int fd;

	/* A larger file would end the program with SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < sizeof *area)
		return 0;
	/* MFD_CLOEXEC | MFD_ALLOW_SEALING */
	fd = (int)syscall(SYS_memfd_create, HANGDOG_MARK_FILE, 3u);
	if (fd < 0)
		return 0;
	place = MAP_FAILED;
	/* F_ADD_SEALS: F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW. The recorder insists on it. */
	if (ftruncate(fd, sizeof *area) == 0 && fcntl(fd, 1033, 1 | 2 | 4) == 0)
		place = mmap(0, sizeof *area, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
			     fd, 0);
	if (place == MAP_FAILED) {
		close(fd);
		return 0;
	}
	madvise(place, sizeof *area, MADV_DONTDUMP);
	area = (struct hangdog_mark_area *)place;
	area->version = HANGDOG_MARK_VERSION;
	area->pid = (uint32_t)getpid();
	area->rings = HANGDOG_MARK_RINGS;
	area->records = HANGDOG_MARK_RECORDS;
	area->names = HANGDOG_MARK_NAMES;
	area->clock = hangdog_mark_clock();
	area->recorded_until = hangdog_mark_now(area->clock) +
			       (area->clock ? HANGDOG_MARK_GRACE_TICKS : HANGDOG_MARK_GRACE_NS);
	__atomic_store_n(&area->magic, HANGDOG_MARK_MAGIC, __ATOMIC_RELEASE);
	/* The kernel tells recorders of executable mappings: this is how one that runs hears of us.
	 */
	place = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	if (place != MAP_FAILED)
		munmap(place, 4096);
	close(fd);
	return area;
}

/* Of the child: what it inherited is its parent's. */
static inline void hangdog_mark_forked(void)
{
	struct hangdog_mark_area *old = hangdog_mark_area_1, *area;

	pthread_mutex_unlock(&hangdog_mark_lock_1);
	if (!old || (void *)old == (void *)hangdog_mark_nowhere_1)
		return;
	area = hangdog_mark_make();
	if (area) {
		/* Numbers of names that the program keeps stay true. */
		memcpy(area->name, old->name, sizeof area->name);
		area->name_count = old->name_count;
	}
	hangdog_mark_thread_1.ring = 0;
	hangdog_mark_area_1 = area ? area : (struct hangdog_mark_area *)hangdog_mark_nowhere_1;
	munmap(old, sizeof *old);
}

static inline void hangdog_mark_before_fork(void)
{
	pthread_mutex_lock(&hangdog_mark_lock_1);
}

static inline void hangdog_mark_after_fork(void)
{
	pthread_mutex_unlock(&hangdog_mark_lock_1);
}

__attribute__((noinline, unused)) static struct hangdog_mark_area *hangdog_mark_start(void)
{
	struct hangdog_mark_area *area;

	pthread_mutex_lock(&hangdog_mark_lock_1);
	area = hangdog_mark_area_1;
	if (!area) {
		if (!hangdog_mark_is_set_up_1 &&
		    pthread_key_create(&hangdog_mark_key_1, hangdog_mark_leave) == 0) {
			pthread_atfork(hangdog_mark_before_fork, hangdog_mark_after_fork,
				       hangdog_mark_forked);
			hangdog_mark_is_set_up_1 = 1;
		}
		if (hangdog_mark_is_set_up_1)
			area = hangdog_mark_make();
		if (!area)
			area = (struct hangdog_mark_area *)hangdog_mark_nowhere_1;
		__atomic_store_n(&hangdog_mark_area_1, area, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&hangdog_mark_lock_1);
	return area;
}

static inline struct hangdog_mark_area *hangdog_mark_place(void)
{
	struct hangdog_mark_area *area = __atomic_load_n(&hangdog_mark_area_1, __ATOMIC_ACQUIRE);
	return __builtin_expect(area != 0, 1) ? area : hangdog_mark_start();
}

/* A ring for the calling thread; 0 if all are taken. */
__attribute__((noinline, unused)) static int hangdog_mark_join(struct hangdog_mark_area *area)
{
	struct hangdog_mark_thread *self = &hangdog_mark_thread_1;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);

	for (unsigned at = 0; at < HANGDOG_MARK_RINGS; at++) {
		uint32_t none = 0;
		if (!__atomic_compare_exchange_n(&area->ring[at].owner, &none, tid, 0,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		self->area = area;
		self->records = area->record[at];
		self->tid = tid;
		self->ring = &area->ring[at];
		pthread_setspecific(hangdog_mark_key_1, self->ring);
		return 1;
	}
	return 0;
}

__attribute__((noinline, unused)) static void hangdog_mark_write(struct hangdog_mark_area *area,
								 uint64_t until, unsigned kind,
								 hangdog_code code, int64_t a,
								 int64_t b, int64_t c, int64_t d)
{
	struct hangdog_mark_thread *self = &hangdog_mark_thread_1;
	uint64_t now = hangdog_mark_now(area->clock), number;
	struct hangdog_mark_record *record;

	if (now >= until) {
		/* Whoever recorded has not said for a while that they still do. */
		__atomic_compare_exchange_n(&area->recorded_until, &until, 0, 0, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
		return;
	}
	if ((!self->ring || self->area != area) && !hangdog_mark_join(area)) {
		__atomic_fetch_add(&area->unplaced, 1, __ATOMIC_RELAXED);
		return;
	}
	/* A signal's handler may come between any two of these, and marks too. */
	number = self->ring->begun;
	__atomic_store_n(&self->ring->begun, number + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	record = &self->records[number % HANGDOG_MARK_RECORDS];
	record->time = now;
	record->tid = self->tid;
	record->code = code & 0xffffff;
	record->kind = (uint8_t)kind;
	record->pairing = (code >> 24) & 3;
	record->colour = (uint8_t)(code >> 26);
	record->arguments[0] = a;
	record->arguments[1] = b;
	record->arguments[2] = c;
	record->arguments[3] = d;
	__atomic_store_n(&record->sequence, number + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&self->ring->done, self->ring->begun, __ATOMIC_RELEASE);
}

static inline void hangdog_mark(unsigned kind, hangdog_code code, int64_t a, int64_t b, int64_t c,
				int64_t d)
{
	struct hangdog_mark_area *area = hangdog_mark_place();
	uint64_t until = __atomic_load_n(&area->recorded_until, __ATOMIC_RELAXED);

	if (__builtin_expect(until != 0, 0))
		hangdog_mark_write(area, until, kind, code, a, b, c, d);
}

/* The number of a name, which is the same in all of the program. Names of more than 60 bytes are
 * cut. Those that there is no room for share the last number. */
__attribute__((unused)) static hangdog_code hangdog_name(const char *name)
{
	struct hangdog_mark_area *area = hangdog_mark_place();
	size_t length = strlen(name);
	uint32_t at;

	if ((void *)area == (void *)hangdog_mark_nowhere_1)
		return HANGDOG_MARK_FIRST_NAME;
	if (length > HANGDOG_MARK_NAME_LENGTH)
		length = HANGDOG_MARK_NAME_LENGTH;
	pthread_mutex_lock(&hangdog_mark_lock_1);
	for (at = 0; at < area->name_count; at++)
		if (area->name[at].length == length &&
		    memcmp(area->name[at].text, name, length) == 0)
			break;
	if (at == area->name_count && at < HANGDOG_MARK_NAMES) {
		if (at == HANGDOG_MARK_NAMES - 1) {
			name = "(more names)";
			length = strlen(name);
		}
		memcpy(area->name[at].text, name, length);
		__atomic_store_n(&area->name[at].length, (uint32_t)length, __ATOMIC_RELEASE);
		__atomic_store_n(&area->name_count, at + 1, __ATOMIC_RELEASE);
	} else if (at == HANGDOG_MARK_NAMES) {
		at--;
	}
	pthread_mutex_unlock(&hangdog_mark_lock_1);
	return HANGDOG_MARK_FIRST_NAME + at;
}

/* The same, worked out once at each place; `name` is to be the same every time. */
#define HANGDOG_NAME(name)                                                                         \
	(__extension__({                                                                           \
		static hangdog_code hangdog_known;                                                 \
		hangdog_code hangdog_number = __atomic_load_n(&hangdog_known, __ATOMIC_RELAXED);   \
		if (__builtin_expect(hangdog_number == 0, 0)) {                                    \
			hangdog_number = hangdog_name(name);                                       \
			__atomic_store_n(&hangdog_known, hangdog_number, __ATOMIC_RELAXED);        \
		}                                                                                  \
		hangdog_number;                                                                    \
	}))

/* A region pairs by its code and its first argument, on whatever threads it begins and ends. */
static inline hangdog_code hangdog_by_argument(hangdog_code code)
{
	return code | 1u << 24;
}

/* A region pairs by its code alone, on whatever threads it begins and ends. */
static inline hangdog_code hangdog_by_code(hangdog_code code)
{
	return code | 2u << 24;
}

static inline hangdog_code hangdog_coloured(hangdog_code code, enum hangdog_colour colour)
{
	return code | (uint32_t)colour << 26;
}

#ifdef __cplusplus
}

static inline void hangdog_point(hangdog_code code, int64_t a = 0, int64_t b = 0, int64_t c = 0,
				 int64_t d = 0)
{
	hangdog_mark(HANGDOG_MARK_POINT, code, a, b, c, d);
}

static inline void hangdog_begin(hangdog_code code, int64_t a = 0, int64_t b = 0, int64_t c = 0,
				 int64_t d = 0)
{
	hangdog_mark(HANGDOG_MARK_BEGIN, code, a, b, c, d);
}

static inline void hangdog_end(hangdog_code code, int64_t a = 0, int64_t b = 0, int64_t c = 0,
			       int64_t d = 0)
{
	hangdog_mark(HANGDOG_MARK_END, code, a, b, c, d);
}
#else
/* The code and up to four integers; those that are left out are 0. */
#define HANGDOG_MARK_5(kind, code, a, b, c, d, ...)                                                \
	hangdog_mark(kind, code, (int64_t)(a), (int64_t)(b), (int64_t)(c), (int64_t)(d))
#define hangdog_point(...) HANGDOG_MARK_5(HANGDOG_MARK_POINT, __VA_ARGS__, 0, 0, 0, 0, 0)
#define hangdog_begin(...) HANGDOG_MARK_5(HANGDOG_MARK_BEGIN, __VA_ARGS__, 0, 0, 0, 0, 0)
#define hangdog_end(...) HANGDOG_MARK_5(HANGDOG_MARK_END, __VA_ARGS__, 0, 0, 0, 0, 0)
#endif

#endif
