/* Serves answers of a model that is fetched when it is wanted (userfaultfd): `models PORT`. A
 * thread of it, the pager, gets each page of the model that is not there yet from a server at PORT.
 * For each line of stdin, the number of a page, the main thread reads that page and tells begin and
 * end. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 4096

static int faults, port;
static char *model;

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void fetch_page(unsigned long number, char *page)
{
	struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(port)};
	int connection = socket(AF_INET, SOCK_STREAM, 0);
	char request[64];

	there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(connection, (struct sockaddr *)&there, sizeof(there)))
		perror("connect");
	dprintf(connection, "%lu\n", number);
	memset(page, 0, PAGE);
	if (read(connection, request, sizeof(request)) > 0)
		memcpy(page, request, sizeof(request));
	close(connection);
}

static void *serve_faults(void *unused)
{
	static char page[PAGE];
	struct uffd_msg message;

	prctl(PR_SET_NAME, "pager");
	while (read(faults, &message, sizeof(message)) == sizeof(message)) {
		unsigned long place = message.arg.pagefault.address & ~(PAGE - 1UL);
		struct uffdio_copy copy = {.dst = place, .src = (unsigned long)page, .len = PAGE};

		fetch_page((place - (unsigned long)model) / PAGE, page);
		ioctl(faults, UFFDIO_COPY, &copy);
	}
	return unused;
}

int main(int count, char **arguments)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	volatile long sum = 0;
	pthread_t pager;
	char line[32];

	port = count > 1 ? atoi(arguments[1]) : 0;
	faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	model =
	    mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (unsigned long)model;
	range.range.len = PAGES * PAGE;
	if (faults < 0 || ioctl(faults, UFFDIO_API, &api) ||
	    ioctl(faults, UFFDIO_REGISTER, &range)) {
		perror("userfaultfd");
		return 1;
	}
	pthread_create(&pager, NULL, serve_faults, NULL);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long long begin = now_ns();

		sum += model[atol(line) % PAGES * PAGE];
		printf("%lld %lld\n", begin, now_ns());
		fflush(stdout);
	}
	return 0;
}
