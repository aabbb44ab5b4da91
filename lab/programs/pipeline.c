/*
 * A pipeline: each item goes from the main thread through stages joined by pipes and back to the
 * main thread. One stage in the middle is slow. Stages are processes or threads.
 */
#include "lab.h"

#define MAX_STAGES 6

struct item {
	int ms;
};

/* Stage n reads pipes[n - 1] and writes pipes[n]; the main thread reads the last. */
static int pipes[MAX_STAGES + 1][2];
static int stages, slow;
static enum lab_ending ending;

LAB_NAMED void slow_stage(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

LAB_NAMED void sleepy_stage(int ms)
{
	LAB_SLEEP_US(ms * UINT64_C(1000));
}

LAB_NAMED void quick_stage(void)
{
	LAB_COMPUTE_US(50);
}

static void *serve_stage(void *arg)
{
	int number = (int)(intptr_t)arg;
	struct item item;
	while (read(pipes[number - 1][0], &item, sizeof(item)) == sizeof(item)) {
		if (number != slow)
			quick_stage();
		else if (ending == LAB_COMPUTES)
			slow_stage(item.ms);
		else
			sleepy_stage(item.ms);
		LAB_TRY(write(pipes[number][1], &item, sizeof(item)));
	}
	return NULL;
}

static void turn(int ms)
{
	struct item item = {ms};
	LAB_TRY(write(pipes[0][1], &item, sizeof(item)));
	LAB_TRY(read(pipes[stages][0], &item, sizeof(item)));
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "pipeline");
	int hang_ms = lab_hang_ms();
	stages = lab_choose("stages", 3, 4);
	if (stages < 3 || stages > MAX_STAGES)
		lab_exit(2, "stages are 3 to %d", MAX_STAGES);
	slow = lab_choose("slow", 2, stages - 1);
	ending = lab_ending();
	bool processes = LAB_PICK("made_of", "threads", "processes") == 1;
	for (int i = 0; i <= stages; i++)
		LAB_TRY(pipe(pipes[i]));
	for (intptr_t i = 1; i <= stages; i++)
		if (processes)
			lab_process(serve_stage, (void *)i, "stage%d", (int)i);
		else
			lab_thread(serve_stage, (void *)i, "stage%d", (int)i);
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
