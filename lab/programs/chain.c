/*
 * A chain of condition variables: the main thread waits for link1, which waits for link2, and so
 * on; the last link alone does anything.
 */
#include "lab.h"

#define MAX_DEPTH 6

/* Between a thread and the link behind it; `answered` follows `asked`. */
static struct hop {
	struct lab_monitor monitor;
	int asked, answered;
} hops[MAX_DEPTH + 1];

static int depth;
static enum lab_ending ending;
static int work_ms;

LAB_NAMED void crunch_numbers(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

LAB_NAMED void sleep_at_the_end(int ms)
{
	LAB_SLEEP_US(ms * UINT64_C(1000));
}

LAB_NAMED void ask_and_wait(struct hop *hop)
{
	pthread_mutex_lock(&hop->monitor.lock);
	hop->asked++;
	pthread_cond_broadcast(&hop->monitor.changed);
	while (hop->answered != hop->asked)
		pthread_cond_wait(&hop->monitor.changed, &hop->monitor.lock);
	pthread_mutex_unlock(&hop->monitor.lock);
}

static void *serve_link(void *arg)
{
	struct hop *hop = arg;
	for (;;) {
		pthread_mutex_lock(&hop->monitor.lock);
		while (hop->answered == hop->asked)
			pthread_cond_wait(&hop->monitor.changed, &hop->monitor.lock);
		pthread_mutex_unlock(&hop->monitor.lock);

		if (hop != &hops[depth])
			ask_and_wait(hop + 1);
		else if (ending == LAB_COMPUTES)
			crunch_numbers(work_ms);
		else
			sleep_at_the_end(work_ms);

		pthread_mutex_lock(&hop->monitor.lock);
		hop->answered++;
		pthread_cond_broadcast(&hop->monitor.changed);
		pthread_mutex_unlock(&hop->monitor.lock);
	}
	return NULL;
}

static void turn(int ms)
{
	work_ms = ms;
	ask_and_wait(&hops[1]);
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "chain");
	int hang_ms = lab_hang_ms();
	depth = lab_choose("depth", 1, MAX_DEPTH);
	ending = lab_ending();
	if (depth < 1 || depth > MAX_DEPTH)
		lab_exit(2, "depth is 1 to %d", MAX_DEPTH);
	for (int i = 1; i <= depth; i++) {
		pthread_mutex_init(&hops[i].monitor.lock, NULL);
		pthread_cond_init(&hops[i].monitor.changed, NULL);
		lab_thread(serve_link, &hops[i], "link%d", i);
	}
	lab_spurious_wakes(&hops[1].monitor);
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
