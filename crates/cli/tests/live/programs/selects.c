// Waits by select: first for one pipe, by the highest descriptor of a set's first word, then for
// any of two. Prints its thread's id and the inode of the first pipe.
#include <pthread.h>
#include <stdio.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#define HIGHEST 63

static int one[2], two[2];

static void *give(void *unused)
{
	usleep(50000);
	if (write(one[1], "x", 1) != 1)
		return &one;
	usleep(50000);
	if (write(two[1], "x", 1) != 1)
		return &two;
	return unused;
}

int main(void)
{
	pthread_t thread;
	struct stat found;
	fd_set wanted;
	char byte;

	if (pipe(one) || pipe(two) || dup2(one[0], HIGHEST) != HIGHEST || fstat(one[0], &found))
		return 1;
	if (pthread_create(&thread, NULL, give, NULL))
		return 1;
	FD_ZERO(&wanted);
	FD_SET(HIGHEST, &wanted);
	if (select(HIGHEST + 1, &wanted, NULL, NULL, NULL) != 1 || read(HIGHEST, &byte, 1) != 1)
		return 1;
	FD_ZERO(&wanted);
	FD_SET(one[0], &wanted);
	FD_SET(two[0], &wanted);
	if (select(two[0] + 1, &wanted, NULL, NULL, NULL) != 1)
		return 1;
	pthread_join(thread, NULL);
	printf("{\"tid\": %d, \"pipe\": %lu}\n", getpid(), (unsigned long)found.st_ino);
	return 0;
}
