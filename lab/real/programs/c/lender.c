/* Keeps a file for itself as a file server does, with a lease: `lender FILE`. When somebody else
 * wants the file it first writes back what it has, which takes until the line on its stdin, and
 * then gives up the lease. It takes the lease again when the file is free. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int take_lease(int file)
{
	return fcntl(file, F_SETLEASE, F_WRLCK);
}

static void write_back(int file)
{
	char line[16];

	if (read(STDIN_FILENO, line, sizeof(line)) > 0)
		fsync(file);
}

int main(int count, char **arguments)
{
	int file = count > 1 ? open(arguments[1], O_RDWR | O_CREAT, 0600) : -1;
	sigset_t wanted;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGIO);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	if (file < 0 || take_lease(file)) {
		perror("lease");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		sigwaitinfo(&wanted, NULL);
		write_back(file);
		fcntl(file, F_SETLEASE, F_UNLCK);
	}
}
