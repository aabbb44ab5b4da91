// Two functions call a third in turns, in runs, from stacks and registers that are the same: only
// the stack's memory tells which of them it was.
#include <time.h>

static volatile int calls;

__attribute__((noinline)) static void rest()
{
	struct timespec time = {0, 50000};

	nanosleep(&time, nullptr);
	asm volatile("");
}

__attribute__((noinline)) static void work()
{
	rest();
	asm volatile("");
}

__attribute__((noinline)) static void often()
{
	work();
	asm volatile("nop");
}

__attribute__((noinline)) static void seldom()
{
	work();
	asm volatile("nop; nop");
}

int main()
{
	for (;;) {
		calls = calls + 1;
		if (calls % 16 < 12)
			often();
		else
			seldom();
	}
}
