/*
 * A computation at the bottom of a deep recursion, or all the way down: `descend` is on the stack
 * a hundred times.
 */
#include "lab.h"
#include <semaphore.h>

enum where { BOTTOM, EVERYWHERE };

static enum where where;
static sem_t worker_may_start, worker_is_done;
static int work_ms, levels;

LAB_NAMED void work_at_the_bottom(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

LAB_NAMED int descend(int level)
{
	if (where == EVERYWHERE)
		LAB_COMPUTE_US(work_ms * 1000 / levels);
	if (level == levels) {
		if (where == BOTTOM)
			work_at_the_bottom(work_ms);
		return level;
	}
	int deepest = descend(level + 1);
	/* Something is left to do: no loop can be made of it. */
	__asm__ volatile("" : "+r"(deepest));
	return deepest;
}

LAB_NAMED void walk_tree(void)
{
	int deepest = descend(1);
	__asm__ volatile("" : "+r"(deepest));
}

static void *serve(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&worker_may_start);
		walk_tree();
		sem_post(&worker_is_done);
	}
	return NULL;
}

LAB_NAMED void wait_for_worker(void)
{
	LAB_TRY(sem_wait(&worker_is_done));
}

static void turn(int ms)
{
	work_ms = ms;
	sem_post(&worker_may_start);
	wait_for_worker();
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "deep");
	int hang_ms = lab_hang_ms();
	levels = lab_choose("levels", 90, 110);
	if (levels < 1)
		lab_exit(2, "levels are at least 1");
	where = (enum where)LAB_PICK("where", "bottom", "everywhere");
	sem_init(&worker_may_start, 0, 0);
	sem_init(&worker_is_done, 0, 0);
	lab_thread(serve, NULL, "worker");
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
