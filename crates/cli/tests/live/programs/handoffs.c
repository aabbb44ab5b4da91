// Work and locks that go from one thread to another, once each: locks on a file, a kernel mutex, a
// timer, a request of io_uring, a signal, a byte through a terminal. Prints who did what, a line a
// process.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD_US 50000

static volatile int other;
static int fd;

static void start(pthread_t *thread, void *(*run)(void *))
{
	if (pthread_create(thread, NULL, run, NULL))
		_exit(1);
	usleep(HELD_US);
}

static unsigned long inode(int of)
{
	struct stat found;

	return fstat(of, &found) ? 0 : found.st_ino;
}

static struct flock range(int type, int first)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = first, .l_len = 1 };
}

// The parent has bytes 0 and 5; the child is refused byte 5, waits for it, and then for a lock on
// the whole file.
static void file_locks(const char *path)
{
	struct flock first = range(F_WRLCK, 0), lock = range(F_WRLCK, 5);
	int ready[2], file = open(path, O_RDWR | O_CREAT, 0600);
	pid_t child;
	char byte;

	if (pipe(ready) || fcntl(file, F_SETLK, &first) || fcntl(file, F_SETLK, &lock) ||
	    flock(file, LOCK_EX))
		_exit(1);
	child = fork();
	if (!child) {
		int own = open(path, O_RDWR);
		int refused = fcntl(own, F_SETLK, &lock);

		if (write(ready[1], "x", 1) != 1 || fcntl(own, F_SETLKW, &lock) ||
		    flock(own, LOCK_EX))
			_exit(1);
		_exit(refused == -1 ? 0 : 1);
	}
	if (read(ready[0], &byte, 1) != 1)
		_exit(1);
	usleep(HELD_US);
	lock.l_type = F_UNLCK;
	fcntl(file, F_SETLK, &lock);
	usleep(HELD_US);
	flock(file, LOCK_UN);
	int status;
	waitpid(child, &status, 0);
	printf("{\"case\": \"file lock\", \"holder\": %d, \"waiter\": %d, \"file\": %lu, "
	       "\"failed\": %d}\n",
	       getpid(), child, inode(file), status);
	close(file);
}

static int ends[2];
static char *late;
static volatile int slow_writer;

static void *write_late(void *unused)
{
	slow_writer = gettid();
	if (write(ends[1], late, 1) != 1)
		_exit(1);
	return unused;
}

static void *write_now(void *unused)
{
	other = gettid();
	if (write(ends[1], "x", 1) != 1)
		_exit(1);
	return unused;
}

// A writer holds the pipe's mutex while what it writes is not there yet; another wants to write.
static void kernel_mutex(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	pthread_t first, second;

	late = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register wanted = { .range = { (uintptr_t)late, 4096 },
					  .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uffdio_zeropage page = { .range = { (uintptr_t)late, 4096 } };

	if (faults < 0 || ioctl(faults, UFFDIO_API, &api) ||
	    ioctl(faults, UFFDIO_REGISTER, &wanted)) {
		printf("{\"case\": \"kernel lock\", \"unavailable\": true}\n");
		return;
	}
	if (pipe(ends))
		_exit(1);
	start(&first, write_late);
	start(&second, write_now);
	ioctl(faults, UFFDIO_ZEROPAGE, &page);
	pthread_join(first, NULL);
	pthread_join(second, NULL);
	printf("{\"case\": \"kernel lock\", \"holder\": %d, \"waiter\": %d}\n", slow_writer, other);
}

static void *read_timer(void *unused)
{
	uint64_t ticks;

	other = gettid();
	if (read(fd, &ticks, sizeof(ticks)) != sizeof(ticks))
		_exit(1);
	return unused;
}

static void timer(void)
{
	struct itimerspec after = { .it_value = { 0, HELD_US * 1000 } };
	struct itimerspec never = { .it_value = { 1000, 0 } }, none = { 0 };
	pthread_t thread;

	fd = timerfd_create(CLOCK_MONOTONIC, 0);
	start(&thread, read_timer);
	timerfd_settime(fd, 0, &after, NULL);
	pthread_join(thread, NULL);
	timerfd_settime(fd, 0, &never, NULL);
	timerfd_settime(fd, 0, &none, NULL);
	printf("{\"case\": \"timer\", \"armer\": %d, \"waiter\": %d, \"after_ns\": %d}\n", gettid(),
	       other, HELD_US * 1000);
}

static void *write_later(void *unused)
{
	other = gettid();
	usleep(HELD_US);
	if (write(ends[1], "x", 1) != 1)
		_exit(1);
	return unused;
}

// A read of a pipe goes into the ring; the byte comes when the thread waits for the completion.
static void request(void)
{
	struct io_uring_params ring = { 0 };
	int uring = syscall(SYS_io_uring_setup, 1, &ring);
	pthread_t thread;
	char byte;

	if (uring < 0) {
		printf("{\"case\": \"io_uring\", \"unavailable\": true}\n");
		return;
	}
	char *queue = mmap(NULL, ring.sq_off.array + sizeof(unsigned), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_POPULATE, uring, IORING_OFF_SQ_RING);
	struct io_uring_sqe *entry =
		mmap(NULL, sizeof(*entry), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, uring,
		     IORING_OFF_SQES);

	if (queue == MAP_FAILED || entry == MAP_FAILED || pipe(ends))
		_exit(1);
	*entry = (struct io_uring_sqe){ .opcode = IORING_OP_READ,
					.fd = ends[0],
					.addr = (uintptr_t)&byte,
					.len = 1 };
	*(unsigned *)(queue + ring.sq_off.array) = 0;
	__atomic_store_n((unsigned *)(queue + ring.sq_off.tail), 1, __ATOMIC_RELEASE);
	if (pthread_create(&thread, NULL, write_later, NULL) ||
	    syscall(SYS_io_uring_enter, uring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		_exit(1);
	pthread_join(thread, NULL);
	printf("{\"case\": \"io_uring\", \"submitter\": %d, \"writer\": %d, \"pipe\": %lu, "
	       "\"operation\": %d}\n",
	       gettid(), other, inode(ends[0]), IORING_OP_READ);
}

static void on_signal(int number)
{
	(void)number;
}

static void *wait_for_signal(void *unused)
{
	other = gettid();
	pause();
	return unused;
}

static void signals(void)
{
	pthread_t thread;

	signal(SIGUSR2, on_signal);
	start(&thread, wait_for_signal);
	syscall(SYS_tgkill, getpid(), other, SIGUSR2);
	pthread_join(thread, NULL);
	printf("{\"case\": \"signal\", \"sender\": %d, \"receiver\": %d, \"number\": %d}\n",
	       gettid(), other, SIGUSR2);
}

static void *read_line(void *unused)
{
	char line[8];

	other = gettid();
	if (read(fd, line, sizeof(line)) <= 0)
		_exit(1);
	return unused;
}

// What is written to a terminal, a kernel worker brings to the reader.
static void terminal(void)
{
	pthread_t thread;
	int master;

	if (openpty(&master, &fd, NULL, NULL, NULL))
		_exit(1);
	start(&thread, read_line);
	if (write(master, "x\n", 2) != 2)
		_exit(1);
	pthread_join(thread, NULL);
	printf("{\"case\": \"work item\", \"writer\": %d, \"reader\": %d}\n", gettid(), other);
}

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	file_locks(arguments[1]);
	kernel_mutex();
	timer();
	request();
	signals();
	terminal();
	return 0;
}
