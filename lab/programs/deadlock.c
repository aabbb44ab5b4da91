/*
 * A deadlock: the main thread and `other` take two mutexes in opposite order. One of the two gives
 * up after a timeout, lets go of what it has, and the wait cycle is undone. In ordinary turns both
 * take them in the same order.
 */
#include "lab.h"
#include <semaphore.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static sem_t other_may_start, other_has_lock;
static int work_ms, patience_ms;
static bool other_turns_round, other_is_impatient;

LAB_NAMED void work_under_both(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

/* Whether the lock was had within the patience. */
LAB_NAMED bool lock_impatiently(pthread_mutex_t *lock)
{
	struct timespec until = lab_timespec(lab_now_ns() + (uint64_t)patience_ms * 1000000);
	return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, &until) == 0;
}

/* Takes both in this order; gives the earlier one back if the later one is not to be had. */
LAB_NAMED void take_both(pthread_mutex_t *earlier, pthread_mutex_t *later, bool impatient,
			 void (*meanwhile)(void))
{
	pthread_mutex_lock(earlier);
	meanwhile();
	if (!impatient)
		pthread_mutex_lock(later);
	if (!impatient || lock_impatiently(later)) {
		work_under_both(work_ms);
		pthread_mutex_unlock(later);
	}
	pthread_mutex_unlock(earlier);
}

static void say_so(void)
{
	sem_post(&other_has_lock);
}

static void *serve(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&other_may_start);
		if (other_turns_round)
			take_both(&second, &first, other_is_impatient, say_so);
		else
			take_both(&first, &second, false, say_so);
	}
	return NULL;
}

static void let_other_take_its_lock(void)
{
	sem_post(&other_may_start);
	sem_wait(&other_has_lock);
}

static void nothing(void)
{
}

static void turn(int ms)
{
	work_ms = ms / 2;
	other_turns_round = false;
	let_other_take_its_lock();
	take_both(&first, &second, false, nothing);
}

static void hang(int ms)
{
	patience_ms = ms;
	work_ms = 1;
	other_turns_round = true;
	take_both(&first, &second, !other_is_impatient, let_other_take_its_lock);
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "deadlock");
	int hang_ms = lab_hang_ms();
	other_is_impatient = LAB_PICK("impatient", "main", "other") == 1;
	sem_init(&other_may_start, 0, 0);
	sem_init(&other_has_lock, 0, 0);
	lab_thread(serve, NULL, "other");
	lab_decoys();

	lab_turns(turn);
	lab_hang(hang, hang_ms);
	lab_turns(turn);
	return 0;
}
