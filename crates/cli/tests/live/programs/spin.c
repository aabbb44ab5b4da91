// Computes for MILLISECONDS of CPU time in spin_here, then sleeps once, three calls deep.
// Prints its CPU time, ms.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static long cpu_ms(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

__attribute__((noinline)) static void spin_here(void)
{
	for (unsigned long i = 0; i < 20000000; i++)
		sink += i;
}

__attribute__((noinline)) static void wait_here(void)
{
	usleep(20000);
	sink++;
}

__attribute__((noinline)) static void wait_outer(void)
{
	wait_here();
	sink++;
}

__attribute__((noinline)) static void wait_outermost(void)
{
	wait_outer();
	sink++;
}

int main(int argc, char **argv)
{
	long wanted = argc > 1 ? atol(argv[1]) : 300;

	while (cpu_ms() < wanted)
		spin_here();
	wait_outermost();
	printf("{\"tid\": %d, \"cpu_ms\": %ld}\n", getpid(), cpu_ms());
	return 0;
}
