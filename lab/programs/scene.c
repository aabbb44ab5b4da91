/*
 * A C++ library that computes (scene_render.cc): in a function that is inlined into a method, which
 * is what is on the stack.
 */
#include "lab.h"
#include <semaphore.h>

void scene_render(uint64_t cpu_ns);

static sem_t painter_may_start, painter_is_done;
static int work_ms;

static void *paint(void *unused)
{
	(void)unused;
	for (;;) {
		sem_wait(&painter_may_start);
		scene_render((uint64_t)work_ms * 1000000);
		sem_post(&painter_is_done);
	}
	return NULL;
}

LAB_NAMED void wait_for_picture(void)
{
	LAB_TRY(sem_wait(&painter_is_done));
}

static void turn(int ms)
{
	work_ms = ms;
	sem_post(&painter_may_start);
	wait_for_picture();
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "scene");
	int hang_ms = lab_hang_ms();
	sem_init(&painter_may_start, 0, 0);
	sem_init(&painter_is_done, 0, 0);
	lab_thread(paint, NULL, "painter");
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
