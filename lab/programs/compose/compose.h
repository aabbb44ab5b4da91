/*
 * A hang put together by a seed. The victim, node 0, is the main thread. It waits for node 1 over
 * link 1, that for node 2 over link 2, and so on to the last node, the root, which spends the time.
 * Every turn goes all the way, so that ordinary turns show what each node does when nothing is
 * wrong.
 *
 *     compose.c       draws the parameters, says the truth, serves the turns
 *     chain.c         nodes: threads and processes that pass a request on and an answer back
 *     thread_links.c  ways to wait for a thread of the same process
 *     kernel_links.c  ways to wait for a thread or a process through the kernel's objects
 *     memory_links.c  ways to wait for a thread of the same process through memory alone
 *     batch.c         a server that reads the requests of several clients before it answers
 *     roots.c         ways to spend the time
 *     starve.c        ways to be kept off the CPU
 *     knot.c          circular waits
 *     noise.c         threads that have nothing to do with the hang
 */
#ifndef COMPOSE_H
#define COMPOSE_H

#include "../lab.h"
#include <semaphore.h>
#include <stdatomic.h>

#define MAX_DEPTH 6
#define MAX_KNOT 4
#define MAX_HELPERS 3

struct link;

/* How one node waits for the next. Each call is made by one side: request and await by the one that
 * waits, accept and answer by the one waited for. */
struct link_kind {
	const char *name;
	/* Whether the two sides may be processes. */
	bool across;
	/* Whether await can give up. */
	bool timed;
	/* Whether an answer can be left out and nothing remains held. */
	bool forgettable;
	/* Makes the objects, before the first process or thread is started. */
	void (*open)(struct link *link);
	void (*request)(struct link *link);
	/* Gives up at `until_ns` (CLOCK_MONOTONIC; 0: never), and then gives false. */
	bool (*await)(struct link *link, uint64_t until_ns);
	void (*accept)(struct link *link);
	void (*answer)(struct link *link);
	/* Wakes the one that is woken spuriously; NULL where there is no such thing. */
	void (*tickle)(struct link *link);
	/* Starts threads beside the one that waits, in its process; may be NULL. */
	void (*start_helpers)(struct link *link);
};

struct link {
	const struct link_kind *kind;
	int index;
	struct node *waiter, *server;

	/* Drawn; what each means is with its user. */
	bool gives_up, tickled, variant, polls, late_news;
	int helpers;

	/* The objects: each kind uses some. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_rwlock_t rwlock;
	/* Semaphores and words: [0] to the server, [1] to the waiter. */
	sem_t semaphores[2];
	atomic_uint words[2];
	int state;
	pthread_t thread;
	atomic_int waiter_tid;
	pid_t child;
	/* Descriptors of the side that waits and of the side that serves. */
	int ask_to, ask_from, reply_to, reply_from;
	int waiter_file, server_file;
	int guest_replies[MAX_HELPERS][2];
	/* Whether await gave up: an answer is still to come. */
	bool unanswered;
};

struct node {
	int index;
	char name[16];
	/* The node whose thread is the main thread of this node's process. */
	int process;
	/* Started anew in each turn, by the one that waits for it. */
	bool transient;
	struct link *in, *out;
};

enum root {
	ROOT_COMPUTES,
	ROOT_SLEEPS,
	ROOT_DISK,
	ROOT_YIELDS,
	ROOT_PAGES,
	ROOT_HOGGED,
	ROOT_QUOTA,
	ROOT_LOCK_KNOT,
	ROOT_REQUEST_KNOT,
};

struct plan {
	int depth;
	struct node nodes[MAX_DEPTH + 1];
	struct link links[MAX_DEPTH + 1]; /* [0] is not used */
	enum root root;
	int hang_ms;
	/* The link that is through memory alone; 0 for none. */
	int memory_link;
	/* One that waits gives up in the hang. */
	bool is_given_up;
	/* The last node takes its request and never answers. */
	bool forgets;
	int knot, knot_breaker;
	bool naps, hog_is_process;
	int nap_us, quota_percent;
	size_t chunk;
};

/* What all processes see. */
struct shared {
	/* How long the root is to take in this turn. */
	atomic_int work_ms;
	atomic_bool hanging;
	atomic_int hog_ms;
};

extern struct plan plan;
extern struct shared *shared;
extern const struct link_kind *const link_kinds[];
extern const size_t link_kind_count;

/* chain.c */
void chain_open(void);
void chain_start(void);
/* What a node does with a request: the root spends time, others ask the next. */
void node_work(struct node *node);
void *node_serve(void *node);
const char *process_of(const struct node *node);

/* roots.c: `root_work` is done by the last node. */
bool root_can(enum root root);
void root_open(void);
/* In the root's process. */
void root_start_helpers(void);
void root_work(void);
/* How the truth calls the function; NULL where none is. */
const char *root_function(void);

/* starve.c */
bool realtime_is_allowed(void);
bool quota_is_allowed(void);
void starve_open(void);
void starve_start(void);
void hogged_work(bool hanging, int ms);
void quota_work(bool hanging, int ms);

/* knot.c */
void knot_open(void);
void knot_start(void);
void knot_work(bool hanging, int ms);

/* noise.c */
void noise_start(int count);

/* kernel_links.c, for batch.c too */
extern const struct link_kind pipe_link, unix_stream_link, unix_datagram_link, tcp_link,
    eventfd_link, pipe_full_link, flock_link, child_link;
extern const struct link_kind mutex_link, rwlock_link, condition_link, semaphore_link, futex_link,
    join_link, signal_link;
extern const struct link_kind batch_link;
extern const struct link_kind queue_link, spin_link, sequence_link;
/* Whether something can be read before `until_ns` (0: waits for ever). */
bool can_read_until(int fd, uint64_t until_ns);
void put_byte(int fd, char byte);
char get_byte(int fd);

#endif
