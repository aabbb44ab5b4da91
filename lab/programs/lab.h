/*
 * What the programs that hang on purpose share: parameters chosen by a seed, threads and processes
 * with names, turns of which one hangs, and decoys that do nothing to the hang.
 *
 * The victim is always the main thread. It serves ordinary turns, then one that hangs, then
 * ordinary ones again. What it prints is the truth that a diagnosis is compared with:
 *
 *     param KEY=VALUE      a parameter, chosen by the seed or given as --key VALUE
 *     hang FROM TO         the slow turn, CLOCK_MONOTONIC in ns, taken by the victim itself
 *
 * Exit code 77 means that the machine does not allow what the program needs.
 */
#ifndef LAB_H
#define LAB_H

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LAB_CANNOT_RUN 77
#define LAB_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Whoever the truth names keeps a frame of its own: not inlined, cloned, or merged with a function
 * that happens to do the same. */
#define LAB_NAMED __attribute__((noipa)) static

/* ---- Errors ---- */

__attribute__((format(printf, 2, 3), noreturn)) static inline void lab_exit(int code,
									    const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "%s: ", program_invocation_short_name);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(code);
}

/* Ends the program where a call that cannot fail on a healthy machine failed. */
#define LAB_TRY(call)                                                                              \
	({                                                                                         \
		__auto_type result_ = (call);                                                      \
		if (result_ == (__typeof__(result_))-1)                                            \
			lab_exit(1, "%s: %s", #call, strerror(errno));                             \
		result_;                                                                           \
	})

/* ---- Time and work ---- */

static inline uint64_t lab_clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t lab_now_ns(void)
{
	return lab_clock_ns(CLOCK_MONOTONIC);
}

static inline struct timespec lab_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
				 .tv_nsec = (long)(ns % 1000000000)};
}

/* Sleeps. A macro, as LAB_COMPUTE_US is: the function that sleeps is the one that the truth names,
 * not a helper. */
#define LAB_SLEEP_US(us)                                                                           \
	do {                                                                                       \
		struct timespec until_ = lab_timespec(lab_now_ns() + (uint64_t)(us)*1000);         \
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until_, NULL) == EINTR)    \
			;                                                                          \
	} while (0)

/* Computes until this thread has used so much CPU time, however long that takes. */
#define LAB_COMPUTE_US(us)                                                                         \
	do {                                                                                       \
		uint64_t until_ = lab_clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(us)*1000;     \
		uint64_t number_ = until_;                                                         \
		while (lab_clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_)                             \
			for (int i_ = 0; i_ < 20000; i_++) {                                       \
				number_ = number_ * 6364136223846793005 + 1442695040888963407;     \
				__asm__ volatile("" : "+r"(number_));                              \
			}                                                                          \
	} while (0)

/* ---- Parameters ---- */

static struct {
	int argc;
	char **argv;
	bool used[64];
	uint64_t seed;
	uint64_t turn_lengths;
	int turns;
} lab;

/* splitmix64 */
static inline uint64_t lab_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

/* A number of this program, this key and `salt` alone. */
static inline uint64_t lab_dice(const char *key, uint64_t salt)
{
	const char *const words[] = {program_invocation_short_name, key};
	uint64_t state = lab_mix(salt);
	for (size_t i = 0; i < LAB_COUNT(words); i++)
		for (const char *c = words[i]; *c; c++)
			state = lab_mix(state ^ (unsigned char)*c);
	return state;
}

/*
 * One of `count` by the seed. Each parameter depends on its own key, so that giving one leaves the
 * others as they were. Where the choice is small, each run of `count` seeds has every case once,
 * so that a handful of seeds leaves none out.
 */
static inline uint64_t lab_chance(const char *key, uint64_t count)
{
	if (count > 8)
		return lab_dice(key, lab.seed) % count;
	return (lab.seed + lab_dice(key, lab.seed / count) % count) % count;
}

/* What follows `--key`, where underscores of the key are dashes; NULL if it was not given. */
static inline const char *lab_option(const char *key)
{
	for (int i = 1; i + 1 < lab.argc; i += 2) {
		const char *a = lab.argv[i], *b = key;
		if (strncmp(a, "--", 2) != 0)
			continue;
		for (a += 2; *a && (*a == *b || (*a == '-' && *b == '_')); a++)
			b++;
		if (*a == '\0' && *b == '\0') {
			lab.used[i] = true;
			return lab.argv[i + 1];
		}
	}
	return NULL;
}

static inline int lab_number(const char *key, const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);
	if (*text == '\0' || *end != '\0' || number < 0 || number > 1000000000)
		lab_exit(2, "%s needs a number, not '%s'", key, text);
	return (int)number;
}

/* A number from `low` to `high` by the seed, or what the command line says. */
static inline int lab_choose(const char *key, int low, int high)
{
	const char *given = lab_option(key);
	int value =
	    given ? lab_number(key, given) : low + (int)lab_chance(key, (uint64_t)(high - low + 1));
	printf("param %s=%d\n", key, value);
	return value;
}

static inline int lab_pick_of(const char *key, const char *const words[], size_t count)
{
	const char *given = lab_option(key);
	size_t pick = given ? 0 : lab_chance(key, count);
	while (given && strcmp(given, words[pick]) != 0)
		if (++pick == count)
			lab_exit(2, "%s cannot be '%s'", key, given);
	printf("param %s=%s\n", key, words[pick]);
	return (int)pick;
}

/* The index of one of these words, by the seed or the command line. */
#define LAB_PICK(key, ...)                                                                         \
	lab_pick_of(key, (const char *const[]){__VA_ARGS__},                                       \
		    LAB_COUNT(((const char *const[]){__VA_ARGS__})))

/* How the culprit spends the time: most programs leave it to the seed. */
enum lab_ending { LAB_COMPUTES, LAB_SLEEPS };

static inline enum lab_ending lab_ending(void)
{
	return (enum lab_ending)LAB_PICK("ending", "compute", "sleep");
}

static inline int lab_hang_ms(void)
{
	return lab_choose("hang_ms", 600, 1500);
}

/* Reads the command line and names the main thread, and with it the process. */
static inline void lab_begin(int argc, char **argv, const char *name)
{
	lab.argc = argc;
	lab.argv = argv;
	if ((size_t)argc > LAB_COUNT(lab.used) || argc % 2 == 0)
		lab_exit(2, "options come in pairs: --seed N, --key VALUE");
	/* A pipe on stdout must not hold back a line when the program is killed. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	prctl(PR_SET_NAME, name);
	const char *seed = lab_option("seed");
	lab.seed = seed ? (uint64_t)lab_number("seed", seed) : 1;
	lab.turn_lengths = lab_dice("turn lengths", lab.seed);
	lab.turns = lab_choose("turns", 10, 30);
}

/* ---- Threads and processes ---- */

struct lab_start {
	char name[16];
	void *(*body)(void *);
	void *arg;
};

static inline void *lab_named_thread(void *arg)
{
	struct lab_start start = *(struct lab_start *)arg;
	free(arg);
	pthread_setname_np(pthread_self(), start.name);
	return start.body(start.arg);
}

/* Starts a thread that bears its name before it does anything; it lives as long as the process. */
__attribute__((format(printf, 3, 4))) static inline void
lab_thread(void *(*body)(void *), void *arg, const char *name, ...)
{
	struct lab_start *start = malloc(sizeof(*start));
	if (start == NULL)
		lab_exit(1, "out of memory");
	start->body = body;
	start->arg = arg;
	va_list args;
	va_start(args, name);
	vsnprintf(start->name, sizeof(start->name), name, args);
	va_end(args);
	pthread_t thread;
	int error = pthread_create(&thread, NULL, lab_named_thread, start);
	if (error != 0)
		lab_exit(1, "pthread_create: %s", strerror(error));
	pthread_detach(thread);
}

/* Starts a process of that name that dies with the main thread. */
__attribute__((format(printf, 3, 4))) static inline pid_t
lab_process(void *(*body)(void *), void *arg, const char *name, ...)
{
	pid_t parent = getpid();
	fflush(stdout);
	pid_t pid = LAB_TRY(fork());
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	char text[16];
	va_list args;
	va_start(args, name);
	vsnprintf(text, sizeof(text), name, args);
	va_end(args);
	prctl(PR_SET_NAME, text);
	body(arg);
	_exit(0);
}

/* ---- Turns ---- */

/* Serves ordinary turns: each is meant to take 2 to 10 ms. */
static inline void lab_turns(void (*turn)(int ms))
{
	for (int i = 1; i < lab.argc; i += 2)
		if (!lab.used[i])
			lab_exit(2, "there is no option '%s' here", lab.argv[i]);
	for (int i = 0; i < lab.turns; i++) {
		lab.turn_lengths = lab_mix(lab.turn_lengths);
		turn(2 + (int)(lab.turn_lengths % 9));
	}
}

static inline void lab_print_hang(uint64_t from)
{
	uint64_t to = lab_now_ns();
	printf("hang %llu %llu\n", (unsigned long long)from, (unsigned long long)to);
}

/* Serves the turn that hangs. */
static inline void lab_hang(void (*turn)(int ms), int ms)
{
	uint64_t from = lab_now_ns();
	turn(ms);
	lab_print_hang(from);
}

/* ---- Decoys ---- */

/* Computes 3 ms of every 12: busy, never the cause on a machine with two CPUs. */
LAB_NAMED void *burn_for_nothing(void *unused)
{
	(void)unused;
	for (;;) {
		LAB_COMPUTE_US(3000);
		LAB_SLEEP_US(9000);
	}
	return NULL;
}

/* Wakes from timer interrupts. */
static inline void *lab_metronome(void *unused)
{
	(void)unused;
	int timer = LAB_TRY(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	struct itimerspec every = {.it_interval = lab_timespec(4000000),
				   .it_value = lab_timespec(1000000)};
	LAB_TRY(timerfd_settime(timer, 0, &every, NULL));
	for (uint64_t ticks;;)
		LAB_TRY(read(timer, &ticks, sizeof(ticks)));
	return NULL;
}

static inline void *lab_listener(void *arg)
{
	char byte;
	for (;;)
		LAB_TRY(recv((int)(intptr_t)arg, &byte, 1, 0));
	return NULL;
}

/* Wakes from the network's softirq: datagrams over loopback to a thread of its own. */
static inline void *lab_chatter(void *unused)
{
	(void)unused;
	int to = LAB_TRY(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	int from = LAB_TRY(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	LAB_TRY(bind(to, (struct sockaddr *)&address, size));
	LAB_TRY(getsockname(to, (struct sockaddr *)&address, &size));
	lab_thread(lab_listener, (void *)(intptr_t)to, "listener");
	for (;;) {
		LAB_TRY(sendto(from, "", 1, 0, (struct sockaddr *)&address, size));
		LAB_SLEEP_US(3000);
	}
	return NULL;
}

struct lab_monitor {
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

static inline void *lab_ticker(void *arg)
{
	struct lab_monitor *monitor = arg;
	for (;;) {
		LAB_SLEEP_US(5000);
		pthread_mutex_lock(&monitor->lock);
		pthread_cond_broadcast(&monitor->changed);
		pthread_mutex_unlock(&monitor->lock);
	}
	return NULL;
}

/* Wakes that mean nothing: a condition variable is broadcast though nothing changed. */
static inline void lab_spurious_wakes(struct lab_monitor *monitor)
{
	if (lab_choose("ticker", 0, 1))
		lab_thread(lab_ticker, monitor, "ticker");
}

/* Decoys that do without the program's help. Starts none inside the process if `outside`. */
static inline void lab_decoys_of(bool outside)
{
	switch (LAB_PICK("bystander", "none", "thread", "process")) {
	case 0:
		break;
	case 1:
		if (!outside) {
			lab_thread(burn_for_nothing, NULL, "bystander");
			break;
		}
		/* fall through */
	case 2:
		lab_process(burn_for_nothing, NULL, "bystander");
	}
	if (lab_choose("metronome", 0, 1))
		outside ? (void)lab_process(lab_metronome, NULL, "metronome")
			: lab_thread(lab_metronome, NULL, "metronome");
	if (lab_choose("chatter", 0, 1))
		outside ? (void)lab_process(lab_chatter, NULL, "chatter")
			: lab_thread(lab_chatter, NULL, "chatter");
}

static inline void lab_decoys(void)
{
	lab_decoys_of(false);
}

#endif
