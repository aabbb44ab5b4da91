/* A window that does not answer: window SOCKET connects to an X server there, and for each line
 * `MS` on standard input shows its window anew, sleeps for so long, and only then reads what the
 * server has sent. It sleeps and does not compute, so that what else the machine does has no part.
 * Between such lines it reads at once. Says a line when it is ready, and after each. With another
 * argument a thread of its own reads for it, as in Qt, and wakes it. */
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void take(int server, void *into, size_t length)
{
	for (char *at = into; length > 0;) {
		ssize_t got = read(server, at, length);
		if (got <= 0)
			fail("read");
		at += got;
		length -= (size_t)got;
	}
}

static void give(int server, const void *from, size_t length)
{
	if (write(server, from, length) != (ssize_t)length)
		fail("write");
}

static uint32_t at(const uint8_t *bytes, size_t offset)
{
	uint32_t value;
	memcpy(&value, bytes + offset, sizeof value);
	return value;
}

/* The X11 protocol's greeting and CreateWindow, of a window that is told when it is shown. */
static uint32_t make_window(int server)
{
	const uint8_t hello[12] = {'l', 0, 11};
	give(server, hello, sizeof hello);
	uint8_t head[8];
	take(server, head, sizeof head);
	if (head[0] != 1) {
		fprintf(stderr, "the display refuses\n");
		exit(1);
	}
	uint16_t words;
	memcpy(&words, head + 6, sizeof words);
	uint8_t *body = calloc(words, 4);
	if (!body)
		fail("calloc");
	take(server, body, words * 4u);
	uint16_t vendor;
	memcpy(&vendor, body + 16, sizeof vendor);
	size_t screen = 32 + ((vendor + 3u) & ~3u) + 8u * body[21];
	uint32_t window = at(body, 4);
	const uint32_t shown_or_exposed = 1 << 17 | 1 << 15;
	uint32_t create[9] = {1 | 9 << 16, window, at(body, screen), 0, 100 | 100 << 16, 1 << 16,
			      0,	   0x800,  shown_or_exposed};
	give(server, create, sizeof create);
	free(body);
	return window;
}

static void show_anew(int server, uint32_t window)
{
	uint32_t requests[4] = {10 | 2 << 16, window, 8 | 2 << 16, window};
	give(server, requests, sizeof requests);
}

__attribute__((noinline)) static int steep_tea(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	int failed = nanosleep(&time, NULL);
	return failed + 1;
}

static int the_server, the_wakeup;

static void *read_for_main(void *unused)
{
	char bytes[4096];
	prctl(PR_SET_NAME, "QXcbEventQueue");
	while (read(the_server, bytes, sizeof bytes) > 0)
		eventfd_write(the_wakeup, 1);
	return unused;
}

/* What tells the main thread that there is something from the server. */
static int relay(int server)
{
	pthread_t reader;
	the_server = server;
	the_wakeup = eventfd(0, 0);
	if (pthread_create(&reader, NULL, read_for_main, NULL))
		fail("pthread_create");
	return the_wakeup;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	int server = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s", argv[1]);
	if (connect(server, (struct sockaddr *)&address, sizeof address))
		fail("connect");
	uint32_t window = make_window(server);
	show_anew(server, window);
	int inlet = argc > 2 ? relay(server) : server;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	struct pollfd both[2] = {{.fd = inlet, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
	while (poll(both, 2, -1) > 0) {
		char bytes[4096];
		if (both[0].revents && read(inlet, bytes, sizeof bytes) <= 0)
			return 0;
		if (!both[1].revents)
			continue;
		ssize_t got = read(0, bytes, sizeof bytes - 1);
		if (got <= 0)
			return 0;
		bytes[got] = 0;
		show_anew(server, window);
		printf("cups: %d\n", steep_tea(atol(bytes)));
	}
	return 1;
}
