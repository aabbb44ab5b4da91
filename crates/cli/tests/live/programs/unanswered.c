// A client that waits for the answer of a server that is stopped, which says its pid first.
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void serve(int listener)
{
	char byte;
	int client = accept(listener, NULL, NULL);

	prctl(PR_SET_NAME, "server");
	raise(SIGSTOP);
	read(client, &byte, 1);
	_exit(0);
}

int main(void)
{
	// Abstract, and named by the kernel.
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(address);
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	int client = socket(AF_UNIX, SOCK_STREAM, 0);
	char byte = 'x';
	pid_t server;

	bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t));
	listen(listener, 1);
	getsockname(listener, (struct sockaddr *)&address, &length);
	server = fork();
	if (server == 0) {
		// It goes with its parent.
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(client);
		serve(listener);
	}
	close(listener);
	connect(client, (struct sockaddr *)&address, length);
	waitpid(server, NULL, WUNTRACED);
	printf("{\"server\": %d}\n", server);
	fflush(stdout);
	write(client, &byte, 1);
	return read(client, &byte, 1) < 0;
}
