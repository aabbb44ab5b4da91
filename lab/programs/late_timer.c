/*
 * A timer that comes late because it was asked to: the main thread ticks every few milliseconds,
 * and once the tick is set far too late. The kernel fires it exactly when told.
 *
 * Not done by a large timer slack: any other timer on the CPU, a profiler's for one, would let it
 * fire early, and the hang would not be sure.
 */
#include "lab.h"
#include <poll.h>
#include <semaphore.h>

enum timer { SLEEP, TIMERFD, POLL };

static enum timer timer;
static int timer_fd, silent_pipe[2];
static sem_t scheduler_may_start;
static int next_tick_ms;

/* Sets the tick that main waits for. */
static void *schedule(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&scheduler_may_start);
		struct itimerspec when = {.it_value =
					      lab_timespec((uint64_t)next_tick_ms * 1000000)};
		LAB_TRY(timerfd_settime(timer_fd, 0, &when, NULL));
	}
	return NULL;
}

LAB_NAMED void wait_for_tick(int ms)
{
	uint64_t ticks;
	struct pollfd silence = {.fd = silent_pipe[0], .events = POLLIN};
	switch (timer) {
	case SLEEP:
		LAB_SLEEP_US(ms * UINT64_C(1000));
		break;
	case TIMERFD:
		next_tick_ms = ms;
		sem_post(&scheduler_may_start);
		LAB_TRY(read(timer_fd, &ticks, sizeof(ticks)));
		break;
	case POLL:
		LAB_TRY(poll(&silence, 1, ms));
		break;
	}
}

LAB_NAMED void act_on_tick(void)
{
	LAB_COMPUTE_US(200);
}

static void turn(int ms)
{
	wait_for_tick(ms);
	act_on_tick();
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "late_timer");
	int hang_ms = lab_hang_ms();
	timer = (enum timer)LAB_PICK("timer", "sleep", "timerfd", "poll");
	if (timer == TIMERFD) {
		timer_fd = LAB_TRY(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
		sem_init(&scheduler_may_start, 0, 0);
		lab_thread(schedule, NULL, "scheduler");
	}
	LAB_TRY(pipe(silent_pipe));
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
