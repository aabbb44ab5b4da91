/* A process whose threads wait for each other or for one of them, for good. `threads PATTERN` makes
 * one pattern; its threads go by the names below. */
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MOST 3

static pthread_mutex_t locks[MOST] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
				      PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t all_hold;
static int event;

static void name(const char *name)
{
	prctl(PR_SET_NAME, name);
}

static void for_good(void)
{
	for (;;)
		pause();
}

static pthread_t start(void *(*work)(void *), long number)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, (void *)number);
	return thread;
}

/* One of `members` threads that take a lock each, and then the next one's. */
static long members;

static void *take_two(void *number)
{
	static const char *const names[MOST] = {"first", "second", "third"};
	long own = (long)number;

	name(names[own]);
	pthread_mutex_lock(&locks[own]);
	pthread_barrier_wait(&all_hold);
	pthread_mutex_lock(&locks[(own + 1) % members]);
	return NULL;
}

/* Two threads take two locks in opposite orders; the main thread joins the first. */
static void abba(void)
{
	members = 2;
	pthread_barrier_init(&all_hold, NULL, 2);
	pthread_t first = start(take_two, 0);
	start(take_two, 1);
	pthread_join(first, NULL);
}

/* The main thread is one of three in a circle. */
static void cycle(void)
{
	members = 3;
	pthread_barrier_init(&all_hold, NULL, 3);
	start(take_two, 1);
	start(take_two, 2);
	take_two(0);
}

static void __attribute__((noinline)) add_entry(void)
{
	pthread_mutex_lock(&locks[0]);
}

/* The main thread takes a lock that it holds. */
static void twice(void)
{
	pthread_mutex_lock(&locks[0]);
	add_entry();
}

/* Takes its own lock, then the next one's, which is held; the last one sleeps. */
static void *take_next(void *number)
{
	static const char *const names[MOST] = {"first", "second", "third"};
	long own = (long)number;

	name(names[own]);
	pthread_mutex_lock(&locks[own]);
	pthread_barrier_wait(&all_hold);
	if (own + 1 < MOST)
		pthread_mutex_lock(&locks[own + 1]);
	else
		for_good();
	return NULL;
}

/* The main thread joins the first of three, each of which waits for the next one's lock. */
static void chain(void)
{
	pthread_barrier_init(&all_hold, NULL, MOST);
	pthread_t first = start(take_next, 0);
	start(take_next, 1);
	start(take_next, 2);
	pthread_join(first, NULL);
}

static void *write_table(void *unused)
{
	(void)unused;
	name("writer");
	pthread_rwlock_wrlock(&table);
	pthread_barrier_wait(&all_hold);
	for_good();
	return NULL;
}

/* The main thread wants to read what another one keeps locked for writing. */
static void rwlock(void)
{
	pthread_barrier_init(&all_hold, NULL, 2);
	start(write_table, 0);
	pthread_barrier_wait(&all_hold);
	pthread_rwlock_rdlock(&table);
}

static void *sleep_instead(void *unused)
{
	(void)unused;
	name("worker");
	for_good();
	pthread_cond_signal(&filled);
	eventfd_write(event, 1);
	return NULL;
}

/* The main thread waits to be signalled by a worker that sleeps. */
static void condition(void)
{
	start(sleep_instead, 0);
	pthread_mutex_lock(&locks[0]);
	for (;;)
		pthread_cond_wait(&filled, &locks[0]);
}

/* The main thread joins a thread that sleeps. */
static void join(void)
{
	pthread_join(start(sleep_instead, 0), NULL);
}

/* The main thread polls an eventfd that a worker should write, which sleeps. */
static void event_poll(void)
{
	event = eventfd(0, 0);
	int poll = epoll_create1(0);
	struct epoll_event wanted = {.events = EPOLLIN};
	epoll_ctl(poll, EPOLL_CTL_ADD, event, &wanted);
	start(sleep_instead, 0);
	for (;;)
		epoll_wait(poll, &wanted, 1, -1);
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		void (*make)(void);
	} patterns[] = {
	    {"abba", abba},	{"cycle", cycle},	  {"twice", twice}, {"chain", chain},
	    {"rwlock", rwlock}, {"condition", condition}, {"join", join},   {"event", event_poll},
	};

	for (size_t i = 0; count == 2 && i < sizeof(patterns) / sizeof(*patterns); i++)
		if (!strcmp(words[1], patterns[i].name))
			patterns[i].make();
	return 2;
}
