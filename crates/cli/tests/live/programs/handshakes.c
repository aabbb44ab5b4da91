// A lock that is held while another thread wants it, and bytes through a unix socket, once each.
// Prints what there was: thread ids, the lock's address, the sockets' inodes.
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES 12345

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ends[2];
static volatile int waiter;

static void *want_lock(void *unused)
{
	waiter = gettid();
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void *want_bytes(void *unused)
{
	static char bytes[BYTES];

	waiter = gettid();
	if (recv(ends[1], bytes, sizeof(bytes), MSG_WAITALL) != sizeof(bytes))
		return &lock;
	return unused;
}

static unsigned long inode(int fd)
{
	struct stat found;

	return fstat(fd, &found) ? 0 : found.st_ino;
}

int main(void)
{
	static char bytes[BYTES];
	pthread_t thread;
	void *failed;
	int locker, receiver;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 1;
	pthread_mutex_lock(&lock);
	if (pthread_create(&thread, NULL, want_lock, NULL))
		return 1;
	usleep(50000);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	locker = waiter;

	if (pthread_create(&thread, NULL, want_bytes, NULL))
		return 1;
	usleep(50000);
	if (send(ends[0], bytes, sizeof(bytes), 0) != sizeof(bytes))
		return 1;
	pthread_join(thread, &failed);
	receiver = waiter;
	printf("{\"main\": %d, \"locker\": %d, \"receiver\": %d, \"lock\": %lu, \"sender_socket\": "
	       "%lu, \"receiver_socket\": %lu, \"bytes\": %d}\n",
	       getpid(), locker, receiver, (unsigned long)&lock, inode(ends[0]), inode(ends[1]),
	       BYTES);
	return failed ? 1 : 0;
}
