// Makes calls whose numbers are known: by its first thread, by another one, and by a child.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static void ask(int times)
{
	for (int i = 0; i < times; i++)
		syscall(SYS_getppid);
}

static void *thread(void *unused)
{
	for (int i = 0; i < 500; i++)
		syscall(SYS_getuid);
	return unused;
}

static void child(void)
{
	for (int i = 0; i < 300; i++)
		syscall(SYS_unlinkat, AT_FDCWD, "/nowhere/at/all", 0);
	for (int i = 0; i < 70; i++)
		syscall(SYS_close, -1);
	_exit(0);
}

int main(void)
{
	struct timespec pause = {.tv_nsec = 20000000};
	pthread_t other;

	for (int i = 0; i < 5; i++)
		syscall(SYS_nanosleep, &pause, NULL);
	// By now it is known how to unwind the program.
	ask(1000);
	syscall(SYS_fcntl, 1, F_GETFD, 0x12, 0x34, 0x56, 0x78);
	if (pthread_create(&other, NULL, thread, NULL))
		return 1;
	pthread_join(other, NULL);
	if (fork() == 0)
		child();
	wait(NULL);
	return 0;
}
