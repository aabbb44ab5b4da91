// A function that goes another way for one of several reasons: its argument, a variable, what strcmp
// returns, what a system call returns, how often a loop goes round. With one argument a second thread
// calls it every 2 ms, and every fifth time otherwise.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int strict;
volatile int sink;

__attribute__((noinline)) void careful(void)
{
	sink++;
}

__attribute__((noinline)) int check(long limit, const char *word, const char *path, int rounds)
{
	int sum = 0;

	for (int i = 0; i < rounds; i++)
		sum += sink;
	if (strict)
		careful();
	if (limit > 10)
		careful();
	if (strcmp(word, "ready") == 0)
		careful();
	if (access(path, R_OK) == 0)
		careful();
	return sum;
}

static void *calls(void *nothing)
{
	for (long turn = 1;; turn++) {
		check(turn % 5 ? 5 : 50, "wait", "/nowhere", 3);
		usleep(2000);
	}
	return nothing;
}

int main(int argc, char **argv)
{
	if (argc == 2) {
		pthread_t other;

		if (pthread_create(&other, 0, calls, 0))
			return 1;
		puts("calling");
		fflush(stdout);
		for (;;)
			pause();
	}
	if (argc != 6)
		return 2;
	strict = atoi(argv[1]);
	printf("%d\n", check(atol(argv[2]), argv[3], argv[4], atoi(argv[5])));
	return 0;
}
