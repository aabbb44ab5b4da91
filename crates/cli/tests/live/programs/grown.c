// Grows by memory of its own, some of it locked, asks its parent for a snapshot of memory, and waits for it.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES (32L << 20)
#define LOCKED (1L << 16)

int main(void)
{
	char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || mlock(memory, LOCKED) != 0)
		return 1;
	memset(memory, 1, BYTES);
	printf("{\"tid\": %d, \"bytes\": %ld, \"locked\": %ld}\n", getpid(), BYTES, LOCKED);
	fflush(stdout);
	kill(getppid(), SIGUSR1);
	sleep(3);
	return 0;
}
