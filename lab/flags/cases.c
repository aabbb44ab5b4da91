/*
 * Threads that hand over by memory alone, one case a run: cases CASE DELAY_MS.
 *
 * The main thread polls; "setter" lets it go on after the delay; "decoy" writes other variables all
 * along. A line of JSON tells what is so by construction: who polls, what, and who ends it.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAMED __attribute__((noinline, noclone))

static int delay_ms;
static volatile int decoy_counter;

static volatile int plain_flag;
static atomic_int atomic_flag_word;
static volatile unsigned bits;
#define READY_BIT 0x40u
static volatile sig_atomic_t busy = 1;
static volatile int *heap_flag;
static atomic_int *shared_flag;
static volatile int loaded;
static volatile int enabled = 1;
static atomic_uint head;
static unsigned tail;
static volatile int queue[16];
static atomic_uint sequence;
static volatile int guarded;

static void sleep_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	while (nanosleep(&t, &t))
		;
}

NAMED static void sleep_before_set(void)
{
	sleep_ms(delay_ms);
}

static void *decoy(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "decoy");
	for (;;) {
		decoy_counter++;
		sleep_ms(1);
	}
	return NULL;
}

/* The writers. */
static void set_plain(void)
{
	plain_flag = 1;
}
static void set_atomic(void)
{
	atomic_store_explicit(&atomic_flag_word, 1, memory_order_release);
}
static void set_bit(void)
{
	__atomic_or_fetch(&bits, READY_BIT, __ATOMIC_RELEASE);
}
static void set_heap(void)
{
	*heap_flag = 1;
}
static void set_loaded(void)
{
	loaded = 1;
}
static void set_head(void)
{
	queue[0] = 42;
	atomic_fetch_add(&head, 1);
}
static void end_sequence(void)
{
	guarded = 7;
	atomic_fetch_add(&sequence, 1);
}
static void send_signal(void)
{
	kill(getpid(), SIGUSR1);
}

static void on_signal(int number)
{
	(void)number;
	busy = 0;
}

static void (*set)(void);

/* When the wait ended, by the clock that traces have. */
static void tell_set(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("{\"set_ns\": %lld}\n", now.tv_sec * 1000000000LL + now.tv_nsec);
	fflush(stdout);
}

static void *setter(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "setter");
	sleep_before_set();
	set();
	tell_set();
	for (;;)
		pause();
	return NULL;
}

/* Other bits of the same word change. */
static void *toggler(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "toggler");
	for (;;) {
		__atomic_xor_fetch(&bits, 1u, __ATOMIC_RELAXED);
		sleep_ms(3);
	}
	return NULL;
}

/* The polls. */
NAMED static void spin_pause(void)
{
	while (!plain_flag)
		__builtin_ia32_pause();
}
NAMED static void spin_plain(void)
{
	while (plain_flag == 0)
		;
}
NAMED static void poll_yield(void)
{
	while (!plain_flag)
		sched_yield();
}
NAMED static void poll_nanosleep(void)
{
	struct timespec nap = {0, 2000000};

	while (!plain_flag)
		nanosleep(&nap, NULL);
}
NAMED static void poll_usleep(void)
{
	while (!plain_flag)
		usleep(1500);
}
/* For sanity.py: a nap under way when stepping ends. */
NAMED static void poll_slowly(void)
{
	while (!plain_flag)
		usleep(400000);
}
NAMED static void poll_atomic(void)
{
	while (atomic_load_explicit(&atomic_flag_word, memory_order_acquire) != 1)
		usleep(1000);
}
NAMED static void poll_bit(void)
{
	while (!(__atomic_load_n(&bits, __ATOMIC_ACQUIRE) & READY_BIT))
		usleep(1000);
}
NAMED static void poll_busy(void)
{
	while (busy)
		usleep(2000);
}
NAMED static void poll_heap(volatile int *flag)
{
	while (!*flag)
		usleep(1000);
}
NAMED static void poll_shared(void)
{
	while (!atomic_load(shared_flag))
		usleep(1000);
}
NAMED static void poll_two(void)
{
	while (!(enabled && loaded))
		usleep(1000);
}
NAMED static void poll_head(void)
{
	while (atomic_load_explicit(&head, memory_order_acquire) == tail)
		usleep(500);
	tail++;
}
NAMED static int read_seqlock(void)
{
	unsigned begin;
	int value;

	do {
		while ((begin = atomic_load_explicit(&sequence, memory_order_acquire)) & 1)
			sched_yield();
		value = guarded;
	} while (atomic_load_explicit(&sequence, memory_order_acquire) != begin);
	return value;
}

/* For sanity.py: begins anew, with its variables at the same addresses where it is linked so. */
static void on_exec(int number)
{
	(void)number;
	execl("/proc/self/exe", "again", "nobody", "0", NULL);
}

/* For sanity.py: a child writes its own copy. */
static void fork_writer(void)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		plain_flag = 0;
		sleep_ms(5);
	}
}

static void start(void *(*thread)(void *))
{
	pthread_t id;

	pthread_create(&id, NULL, thread, NULL);
}

/* `writer` is null where nobody ends it. */
static void tell(const char *symbol, volatile void *address, int size, const char *writer,
		 int writer_pid)
{
	printf("{\"pid\": %d, \"tid\": %d, \"waiter\": \"cases\", \"symbol\": ", getpid(),
	       (int)syscall(SYS_gettid));
	printf(symbol ? "\"%s\"" : "null", symbol);
	printf(", \"address\": \"%p\", \"size\": %d, \"writer\": ", (void *)address, size);
	printf(writer ? "\"%s\"" : "null", writer);
	printf(", \"writer_pid\": %d}\n", writer_pid);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *name = argc > 2 ? argv[1] : "";
	void (*poll)(void) = NULL;

	if (argc < 3) {
		fprintf(stderr, "usage: cases CASE DELAY_MS\n");
		return 2;
	}
	delay_ms = atoi(argv[2]);
	start(decoy);
	const char *writer = "setter";
	const char *symbol = "plain_flag";
	volatile void *address = &plain_flag;
	int size = 4, writer_pid = getpid();

	set = set_plain;
	if (!strcmp(name, "spin_pause")) {
		poll = spin_pause;
	} else if (!strcmp(name, "volatile_int")) {
		poll = spin_plain;
	} else if (!strcmp(name, "sched_yield")) {
		poll = poll_yield;
	} else if (!strcmp(name, "nanosleep")) {
		poll = poll_nanosleep;
	} else if (!strcmp(name, "usleep")) {
		poll = poll_usleep;
	} else if (!strcmp(name, "c11_atomic")) {
		poll = poll_atomic, set = set_atomic;
		symbol = "atomic_flag_word", address = (volatile void *)&atomic_flag_word;
	} else if (!strcmp(name, "bit")) {
		poll = poll_bit, set = set_bit, symbol = "bits", address = &bits;
		start(toggler);
	} else if (!strcmp(name, "signal_handler")) {
		struct sigaction action = {.sa_handler = on_signal};

		sigaction(SIGUSR1, &action, NULL);
		poll = poll_busy, set = send_signal, symbol = "busy", address = &busy;
	} else if (!strcmp(name, "heap")) {
		volatile int *cells = malloc(4096);

		memset((void *)cells, 0, 4096);
		heap_flag = cells + 100 + getpid() % 100;
		set = set_heap, symbol = NULL, address = heap_flag;
	} else if (!strcmp(name, "shared_memory")) {
		shared_flag =
		    mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		int pid = fork();

		if (!pid) {
			prctl(PR_SET_NAME, "setter");
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			sleep_before_set();
			atomic_store(shared_flag, 1);
			tell_set();
			for (;;)
				pause();
		}
		poll = poll_shared, symbol = NULL, address = (volatile void *)shared_flag;
		writer_pid = pid;
	} else if (!strcmp(name, "two_flags")) {
		poll = poll_two, set = set_loaded, symbol = "loaded", address = &loaded;
	} else if (!strcmp(name, "queue_head")) {
		poll = poll_head, set = set_head, symbol = "head", address = (volatile void *)&head;
	} else if (!strcmp(name, "seqlock")) {
		atomic_store(&sequence, 1);
		set = end_sequence, symbol = "sequence", address = (volatile void *)&sequence;
	} else if (!strcmp(name, "nobody")) {
		poll = poll_usleep, writer = NULL;
	} else if (!strcmp(name, "exec")) {
		signal(SIGUSR2, on_exec);
		poll = poll_usleep, writer = NULL;
	} else if (!strcmp(name, "slow")) {
		poll = poll_slowly, writer = NULL;
	} else if (!strcmp(name, "fork")) {
		poll = poll_usleep, writer = NULL;
	} else {
		fprintf(stderr, "cases: there is no case %s\n", name);
		return 2;
	}
	tell(symbol, address, size, writer, writer_pid);
	if (writer && writer_pid == getpid())
		start(setter);
	if (!strcmp(name, "fork"))
		fork_writer();
	if (!strcmp(name, "heap"))
		poll_heap(heap_flag);
	else if (!strcmp(name, "seqlock"))
		read_seqlock();
	else
		poll();
	/* What it does afterwards is no poll. */
	for (;;)
		pause();
}
