// Clients that connect and wait for an answer which the server owes them for a while: over a unix
// socket that it has not accepted yet, and over TCP on loopback. Prints the sockets' inodes, a line
// a process and kind.
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWED_US 50000

static unsigned long inode(int fd)
{
	struct stat found;

	return fstat(fd, &found) ? 0 : found.st_ino;
}

static void serve(const char *kind, int family, struct sockaddr *address, socklen_t length)
{
	int listener = socket(family, SOCK_STREAM, 0), connection;
	char byte;
	pid_t client;

	if (bind(listener, address, length) || listen(listener, 5) ||
	    getsockname(listener, address, &length))
		_exit(1);
	client = fork();
	if (!client) {
		int fd = socket(family, SOCK_STREAM, 0);

		if (connect(fd, address, length) || recv(fd, &byte, 1, 0) != 1)
			_exit(1);
		printf("{\"kind\": \"%s\", \"end\": \"client\", \"pid\": %d, \"socket\": %lu}\n", kind,
		       getpid(), inode(fd));
		_exit(fflush(stdout));
	}
	usleep(OWED_US);
	connection = accept(listener, NULL, NULL);
	if (send(connection, "x", 1, 0) != 1 || waitpid(client, NULL, 0) != client)
		_exit(1);
	printf("{\"kind\": \"%s\", \"end\": \"server\", \"pid\": %d, \"socket\": %lu, \"port\": %d}\n",
	       kind, getpid(), inode(connection),
	       family == AF_INET ? ntohs(((struct sockaddr_in *)address)->sin_port) : 0);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX };
	struct sockaddr_in loopback = { .sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	if (count != 2)
		return 2;
	strncpy(path.sun_path, arguments[1], sizeof(path.sun_path) - 1);
	serve("unix", AF_UNIX, (struct sockaddr *)&path, sizeof(path));
	serve("tcp", AF_INET, (struct sockaddr *)&loopback, sizeof(loopback));
	return 0;
}
