/*
 * Ways to wait for a thread of the same process through memory alone: nobody is woken, and the
 * scheduler sees no more than a thread that is busy. The request goes by a semaphore, so that a
 * node without work does not poll; the answer is a word that the one that waits looks at.
 */
#include "compose.h"
#include <sched.h>

#define SLOTS 8
#define NAP_US 100

static int slots[MAX_DEPTH + 1][SLOTS];

static void memory_open(struct link *link)
{
	sem_init(&link->semaphores[0], 0, 0);
	sem_init(&link->semaphores[1], 0, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
	__asm__ volatile("pause");
#else
	__asm__ volatile("yield");
#endif
}

/* Between two looks; `variant` and `polls` say how. */
static void rest(const struct link *link)
{
	if (link->variant)
		usleep(NAP_US);
	else if (link->polls)
		sched_yield();
	else
		for (int i = 0; i < 100; i++)
			relax();
}

/* ---- A queue of one producer and one consumer: the consumer looks at its head. ---- */

static void queue_request(struct link *link)
{
	sem_post(&link->semaphores[0]);
}

LAB_NAMED bool queue_await(struct link *link, uint64_t until_ns)
{
	(void)until_ns;
	while (atomic_load(&link->words[1]) == (unsigned)link->state)
		rest(link);
	if (slots[link->index][link->state % SLOTS] != link->state)
		lab_exit(1, "the queue has another value");
	link->state++;
	return true;
}

static void queue_accept(struct link *link)
{
	sem_wait(&link->semaphores[0]);
}

static void queue_answer(struct link *link)
{
	unsigned head = atomic_load(&link->words[1]);
	slots[link->index][head % SLOTS] = (int)head;
	atomic_store(&link->words[1], head + 1);
}

const struct link_kind queue_link = {
    .name = "queue",
    .open = memory_open,
    .request = queue_request,
    .await = queue_await,
    .accept = queue_accept,
    .answer = queue_answer,
};

/* ---- A spin lock, which is looked at until it is free, and then tried. ---- */

static void hand_over(struct link *link)
{
	sem_post(&link->semaphores[0]);
	sem_wait(&link->semaphores[1]);
}

LAB_NAMED void take_spin_lock(struct link *link)
{
	do
		while (atomic_load(&link->words[1]) != 0)
			rest(link);
	while (atomic_exchange(&link->words[1], 1) != 0);
}

static bool spin_await(struct link *link, uint64_t until_ns)
{
	(void)until_ns;
	take_spin_lock(link);
	atomic_store(&link->words[1], 0);
	return true;
}

static void spin_accept(struct link *link)
{
	sem_wait(&link->semaphores[0]);
	take_spin_lock(link);
	sem_post(&link->semaphores[1]);
}

static void spin_answer(struct link *link)
{
	atomic_store(&link->words[1], 0);
}

const struct link_kind spin_link = {
    .name = "spinlock",
    .open = memory_open,
    .request = hand_over,
    .await = spin_await,
    .accept = spin_accept,
    .answer = spin_answer,
};

/* ---- A sequence lock: odd while its writer is at it. ---- */

LAB_NAMED bool sequence_await(struct link *link, uint64_t until_ns)
{
	(void)until_ns;
	while (atomic_load(&link->words[1]) % 2 != 0)
		rest(link);
	return true;
}

static void sequence_accept(struct link *link)
{
	sem_wait(&link->semaphores[0]);
	atomic_fetch_add(&link->words[1], 1);
	sem_post(&link->semaphores[1]);
}

static void sequence_answer(struct link *link)
{
	atomic_fetch_add(&link->words[1], 1);
}

const struct link_kind sequence_link = {
    .name = "seqlock",
    .open = memory_open,
    .request = hand_over,
    .await = sequence_await,
    .accept = sequence_accept,
    .answer = sequence_answer,
};
