/*
 * Circular waits. Member 0 is the chain's last node; the others are threads beside it. One member
 * gives up after the length of the hang, and that breaks the wait cycle.
 *
 * Locks: each member holds one and wants the next one's. Requests: each has asked the next and
 * waits for its answer, the last one for that of member 0, which waits itself.
 */
#include "compose.h"

static pthread_mutex_t locks[MAX_KNOT];
static sem_t may_start[MAX_KNOT], has_lock, may_go_on[MAX_KNOT], is_done;
/* Member i asks over asks[i][0]; the next one reads at asks[i][1]. */
static int asks[MAX_KNOT][2];

static uint64_t patience_ends(void)
{
	return lab_now_ns() + (uint64_t)plan.hang_ms * 1000000;
}

LAB_NAMED void compute_in_turn(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

/* ---- Locks ---- */

static bool lock_next(int member)
{
	pthread_mutex_t *next = &locks[(member + 1) % plan.knot];
	struct timespec until = lab_timespec(patience_ends());
	if (member == plan.knot_breaker)
		return pthread_mutex_clocklock(next, CLOCK_MONOTONIC, &until) == 0;
	pthread_mutex_lock(next);
	return true;
}

/* Everybody in the same order. */
static void lock_both_in_order(int member, int ms)
{
	int next = (member + 1) % plan.knot;
	pthread_mutex_t *lower = &locks[member < next ? member : next];
	pthread_mutex_t *higher = &locks[member < next ? next : member];
	pthread_mutex_lock(lower);
	pthread_mutex_lock(higher);
	compute_in_turn(ms);
	pthread_mutex_unlock(higher);
	pthread_mutex_unlock(lower);
}

static void take_part(int member, bool hanging, void (*meanwhile)(int member))
{
	if (!hanging) {
		lock_both_in_order(member, 1);
		return;
	}
	pthread_mutex_lock(&locks[member]);
	meanwhile(member);
	if (lock_next(member))
		pthread_mutex_unlock(&locks[(member + 1) % plan.knot]);
	pthread_mutex_unlock(&locks[member]);
}

static void say_and_wait(int member)
{
	sem_post(&has_lock);
	sem_wait(&may_go_on[member]);
}

static void let_others_lock(int member)
{
	(void)member;
	for (int i = 1; i < plan.knot; i++)
		sem_post(&may_start[i]);
	for (int i = 1; i < plan.knot; i++)
		sem_wait(&has_lock);
	for (int i = 1; i < plan.knot; i++)
		sem_post(&may_go_on[i]);
}

static void *lock_in_turn(void *arg)
{
	int member = (int)(intptr_t)arg;
	for (;;) {
		sem_wait(&may_start[member]);
		take_part(member, shared->hanging, say_and_wait);
		sem_post(&is_done);
	}
	return NULL;
}

static void lock_knot(bool hanging)
{
	if (!hanging)
		for (int i = 1; i < plan.knot; i++)
			sem_post(&may_start[i]);
	take_part(0, hanging, let_others_lock);
	for (int i = 1; i < plan.knot; i++)
		sem_wait(&is_done);
}

/* ---- Requests ---- */

/* Whether the next one answered. */
static bool ask_next(int member)
{
	put_byte(asks[member][0], 'r');
	if (member == plan.knot_breaker && !can_read_until(asks[member][0], patience_ends()))
		return false;
	get_byte(asks[member][0]);
	return true;
}

/* The late answer of the one that was not waited for any longer. */
static void take_late_answer(int member)
{
	get_byte(asks[member][0]);
}

static void *serve_requests(void *arg)
{
	int member = (int)(intptr_t)arg;
	int from = asks[member - 1][1];
	for (;;) {
		get_byte(from);
		bool answered = true;
		if (member < plan.knot - 1 || shared->hanging)
			answered = ask_next(member);
		else
			compute_in_turn(shared->work_ms);
		put_byte(from, 'a');
		if (!answered)
			take_late_answer(member);
	}
	return NULL;
}

static void request_knot(bool hanging)
{
	bool answered = ask_next(0);
	if (!hanging)
		return;
	int from = asks[plan.knot - 1][1];
	get_byte(from);
	put_byte(from, 'a');
	if (!answered)
		take_late_answer(0);
}

/* ---- Both ---- */

void knot_open(void)
{
	sem_init(&has_lock, 0, 0);
	sem_init(&is_done, 0, 0);
	for (int i = 0; i < plan.knot; i++) {
		pthread_mutex_init(&locks[i], NULL);
		sem_init(&may_start[i], 0, 0);
		sem_init(&may_go_on[i], 0, 0);
		LAB_TRY(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, asks[i]));
	}
}

void knot_start(void)
{
	void *(*body)(void *) = plan.root == ROOT_LOCK_KNOT ? lock_in_turn : serve_requests;
	for (intptr_t i = 1; i < plan.knot; i++)
		lab_thread(body, (void *)i, "knot%d", (int)i);
}

void knot_work(bool hanging, int ms)
{
	if (plan.root == ROOT_REQUEST_KNOT) {
		request_knot(hanging);
		return;
	}
	if (!hanging)
		compute_in_turn(ms);
	lock_knot(hanging);
}
