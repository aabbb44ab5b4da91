/*
 * What it costs to be watched: uses a flag RATE times a second between pieces of computation, for
 * so many seconds at a time, and prints when that was (CLOCK_MONOTONIC) and the CPU time that a
 * piece took: flag_cost RATE read|write SECONDS.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile int watched_flag;
static volatile uint64_t sink;

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void compute(uint64_t rounds)
{
	uint64_t x = sink;

	for (uint64_t i = 0; i < rounds; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	sink = x;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 2;
	double rate = atof(argv[1]), length = atof(argv[3]);
	int writes = !strcmp(argv[2], "write");
	double begin = seconds(CLOCK_THREAD_CPUTIME_ID);

	compute(50000000);
	double each = (seconds(CLOCK_THREAD_CPUTIME_ID) - begin) / 50000000;
	uint64_t rounds = (uint64_t)(1 / rate / each);

	for (;;) {
		uint64_t pieces = 0;
		double cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
		double start = seconds(CLOCK_MONOTONIC), now;

		do {
			compute(rounds);
			if (writes)
				watched_flag = (int)pieces;
			else
				(void)watched_flag;
			pieces++;
			now = seconds(CLOCK_MONOTONIC);
		} while (now < start + length);
		cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
		printf("%.6f %.6f %.12f\n", start, now, cpu / (double)pieces);
		fflush(stdout);
	}
}
