/*
 * A child that the parent waits for: each turn forks one and waits until it has exited.
 */
#include "lab.h"

static enum lab_ending ending;

LAB_NAMED void child_work(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

LAB_NAMED void child_nap(int ms)
{
	LAB_SLEEP_US(ms * UINT64_C(1000));
}

static void *live_as_child(void *arg)
{
	int ms = *(int *)arg;
	if (ending == LAB_COMPUTES)
		child_work(ms);
	else
		child_nap(ms);
	return NULL;
}

static void turn(int ms)
{
	pid_t child = lab_process(live_as_child, &ms, "child");
	LAB_TRY(waitpid(child, NULL, 0));
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "parent");
	int hang_ms = lab_hang_ms();
	ending = lab_ending();
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
