// Two processes hand a byte to and fro over two pipes, ROUNDS times, or for ever if that is 0.
// At the end each prints who it is, how often it gave a CPU up or lost it, and the pipes' inodes.
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void report(const char *name, unsigned long forth, unsigned long back)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	printf("{\"name\": \"%s\", \"tid\": %d, \"voluntary\": %ld, \"involuntary\": %ld, "
	       "\"forth\": %lu, \"back\": %lu}\n",
	       name, getpid(), used.ru_nvcsw, used.ru_nivcsw, forth, back);
	fflush(stdout);
}

static unsigned long inode(int fd)
{
	struct stat found;

	return fstat(fd, &found) ? 0 : found.st_ino;
}

__attribute__((noinline)) static int hand_over(int from, int to, int first)
{
	char byte = 'x';

	if (first && write(to, &byte, 1) != 1)
		return 0;
	if (read(from, &byte, 1) != 1)
		return 0;
	return first || write(to, &byte, 1) == 1;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 0;
	int forth[2], back[2];
	pid_t child;

	if (pipe(forth) || pipe(back))
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	if (child == 0) {
		close(forth[1]);
		close(back[0]);
		while (hand_over(forth[0], back[1], 0))
			;
		report("pong", inode(forth[0]), inode(back[1]));
		return 0;
	}
	close(forth[0]);
	close(back[1]);
	for (long i = 0; rounds == 0 || i < rounds; i++)
		if (!hand_over(back[0], forth[1], 1))
			return 1;
	report("ping", inode(forth[1]), inode(back[0]));
	close(forth[1]);
	return waitpid(child, NULL, 0) == child ? 0 : 1;
}
