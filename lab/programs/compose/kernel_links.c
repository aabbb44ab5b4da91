/*
 * Ways to wait for a thread or a process through the kernel's objects: messages, files, children.
 */
#include "compose.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/file.h>

#define PAGE 4096

/* What a byte says; a tick says nothing. */
#define REQUEST 'r'
#define ANSWER 'a'
#define TICK 't'

bool can_read_until(int fd, uint64_t until_ns)
{
	for (;;) {
		uint64_t now = lab_now_ns();
		struct timespec rest = lab_timespec(until_ns > now ? until_ns - now : 0);
		struct pollfd one = {.fd = fd, .events = POLLIN};
		int ready = ppoll(&one, 1, until_ns ? &rest : NULL, NULL);
		if (ready >= 0)
			return ready > 0;
		if (errno != EINTR)
			lab_exit(1, "ppoll: %s", strerror(errno));
	}
}

void put_byte(int fd, char byte)
{
	LAB_TRY(write(fd, &byte, 1));
}

char get_byte(int fd)
{
	char byte;
	if (LAB_TRY(read(fd, &byte, 1)) == 0)
		_exit(0);
	return byte;
}

/* ---- Messages of one byte ---- */

static void message_request(struct link *link)
{
	put_byte(link->ask_to, REQUEST);
}

static bool message_await(struct link *link, uint64_t until_ns)
{
	do
		if ((until_ns != 0 || link->polls) && !can_read_until(link->reply_from, until_ns))
			return false;
	while (get_byte(link->reply_from) != ANSWER);
	return true;
}

static void message_accept(struct link *link)
{
	get_byte(link->ask_from);
}

static void message_answer(struct link *link)
{
	put_byte(link->reply_to, ANSWER);
}

static void message_tickle(struct link *link)
{
	put_byte(link->reply_to, TICK);
}

static void pipe_open(struct link *link)
{
	int ask[2], reply[2];
	LAB_TRY(pipe2(ask, O_CLOEXEC));
	LAB_TRY(pipe2(reply, O_CLOEXEC));
	link->ask_from = ask[0];
	link->ask_to = ask[1];
	link->reply_from = reply[0];
	link->reply_to = reply[1];
}

static void use_pair(struct link *link, int waiter, int server)
{
	link->ask_to = link->reply_from = waiter;
	link->ask_from = link->reply_to = server;
}

static void unix_open(struct link *link, int type)
{
	int pair[2];
	LAB_TRY(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair));
	use_pair(link, pair[0], pair[1]);
}

static void unix_stream_open(struct link *link)
{
	unix_open(link, SOCK_STREAM);
}

static void unix_datagram_open(struct link *link)
{
	unix_open(link, SOCK_DGRAM);
}

/* A queue of datagrams is short: a tick that finds it full is dropped. */
static void unix_datagram_tickle(struct link *link)
{
	char tick = TICK;
	if (send(link->reply_to, &tick, 1, MSG_DONTWAIT) < 0 && errno != EAGAIN)
		lab_exit(1, "send: %s", strerror(errno));
}

static void tcp_open(struct link *link)
{
	int listener = LAB_TRY(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	LAB_TRY(bind(listener, (struct sockaddr *)&address, size));
	LAB_TRY(listen(listener, 1));
	LAB_TRY(getsockname(listener, (struct sockaddr *)&address, &size));
	int waiter = LAB_TRY(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	LAB_TRY(connect(waiter, (struct sockaddr *)&address, size));
	int server = LAB_TRY(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	close(listener);
	int yes = 1;
	LAB_TRY(setsockopt(waiter, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)));
	LAB_TRY(setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)));
	use_pair(link, waiter, server);
}

#define MESSAGE_LINK                                                                               \
	.across = true, .timed = true, .forgettable = true, .request = message_request,            \
	.await = message_await, .accept = message_accept, .answer = message_answer

const struct link_kind pipe_link = {
    .name = "pipe",
    .open = pipe_open,
    .tickle = message_tickle,
    MESSAGE_LINK,
};

const struct link_kind unix_stream_link = {
    .name = "unix-stream",
    .open = unix_stream_open,
    .tickle = message_tickle,
    MESSAGE_LINK,
};

const struct link_kind unix_datagram_link = {
    .name = "unix-datagram",
    .open = unix_datagram_open,
    .tickle = unix_datagram_tickle,
    MESSAGE_LINK,
};

const struct link_kind tcp_link = {
    .name = "tcp",
    .open = tcp_open,
    .tickle = message_tickle,
    MESSAGE_LINK,
};

/* ---- An eventfd each way: a tick adds 1, an answer far more ---- */

#define MUCH 1000000

static void eventfd_open(struct link *link)
{
	link->ask_to = link->ask_from = LAB_TRY(eventfd(0, EFD_CLOEXEC));
	link->reply_to = link->reply_from = LAB_TRY(eventfd(0, EFD_CLOEXEC));
}

static void add_to(int fd, uint64_t count)
{
	LAB_TRY(write(fd, &count, sizeof(count)));
}

static uint64_t take_from(int fd)
{
	uint64_t count;
	LAB_TRY(read(fd, &count, sizeof(count)));
	return count;
}

static void eventfd_request(struct link *link)
{
	add_to(link->ask_to, 1);
}

static bool eventfd_await(struct link *link, uint64_t until_ns)
{
	do
		if ((until_ns != 0 || link->polls) && !can_read_until(link->reply_from, until_ns))
			return false;
	while (take_from(link->reply_from) < MUCH);
	return true;
}

static void eventfd_accept(struct link *link)
{
	take_from(link->ask_from);
}

static void eventfd_answer(struct link *link)
{
	add_to(link->reply_to, MUCH);
}

static void eventfd_tickle(struct link *link)
{
	add_to(link->reply_to, 1);
}

const struct link_kind eventfd_link = {
    .name = "eventfd",
    .across = true,
    .timed = true,
    .forgettable = true,
    .open = eventfd_open,
    .request = eventfd_request,
    .await = eventfd_await,
    .accept = eventfd_accept,
    .answer = eventfd_answer,
    .tickle = eventfd_tickle,
};

/* ---- A pipe that is full: the one that waits writes, and the other does not read yet ---- */

static void pipe_full_open(struct link *link)
{
	int ask[2];
	LAB_TRY(pipe2(ask, O_CLOEXEC));
	LAB_TRY(fcntl(ask[1], F_SETPIPE_SZ, PAGE));
	link->ask_from = ask[0];
	link->ask_to = ask[1];
}

static void write_page(struct link *link)
{
	static const char page[PAGE];
	if (LAB_TRY(write(link->ask_to, page, PAGE)) != PAGE)
		lab_exit(1, "a pipe took less than a page");
}

static bool pipe_full_await(struct link *link, uint64_t until_ns)
{
	(void)until_ns;
	write_page(link);
	return true;
}

static void pipe_full_accept(struct link *link)
{
	can_read_until(link->ask_from, 0);
}

static void pipe_full_answer(struct link *link)
{
	char page[PAGE];
	for (ssize_t left = 2 * PAGE; left > 0;)
		left -= LAB_TRY(read(link->ask_from, page, PAGE));
}

const struct link_kind pipe_full_link = {
    .name = "pipe-full",
    .across = true,
    .open = pipe_full_open,
    .request = write_page,
    .await = pipe_full_await,
    .accept = pipe_full_accept,
    .answer = pipe_full_answer,
};

/* ---- A lock on a file, by two descriptions of it ---- */

static void flock_open(struct link *link)
{
	char path[] = "/tmp/hangdog-compose-XXXXXX";
	link->waiter_file = LAB_TRY(mkostemp(path, O_CLOEXEC));
	link->server_file = LAB_TRY(open(path, O_RDWR | O_CLOEXEC));
	unlink(path);
	eventfd_open(link);
}

/* Until the other side has the lock. */
static void flock_request(struct link *link)
{
	add_to(link->ask_to, 1);
	take_from(link->reply_from);
}

static bool flock_await(struct link *link, uint64_t until_ns)
{
	(void)until_ns;
	LAB_TRY(flock(link->waiter_file, LOCK_EX));
	LAB_TRY(flock(link->waiter_file, LOCK_UN));
	return true;
}

static void flock_accept(struct link *link)
{
	take_from(link->ask_from);
	LAB_TRY(flock(link->server_file, LOCK_EX));
	add_to(link->reply_to, 1);
}

static void flock_answer(struct link *link)
{
	LAB_TRY(flock(link->server_file, LOCK_UN));
}

const struct link_kind flock_link = {
    .name = "flock",
    .across = true,
    .open = flock_open,
    .request = flock_request,
    .await = flock_await,
    .accept = flock_accept,
    .answer = flock_answer,
};

/* ---- The end of a child that was made for this turn ---- */

static void child_open(struct link *link)
{
	(void)link;
}

static void *work_as_child(void *node)
{
	node_work(node);
	return NULL;
}

static void child_request(struct link *link)
{
	link->child = lab_process(work_as_child, link->server, "%s", link->server->name);
}

static bool child_await(struct link *link, uint64_t until_ns)
{
	(void)until_ns;
	LAB_TRY(waitpid(link->child, NULL, 0));
	return true;
}

const struct link_kind child_link = {
    .name = "child",
    .across = true,
    .open = child_open,
    .request = child_request,
    .await = child_await,
};
