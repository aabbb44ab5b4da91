/* Writes into the kernel's trace_marker, whose path is its argument: three regions "draw" with one "inner"
 * each, one "load" that another thread ends, a number and a text. It writes the same to a file beside,
 * which is to be none. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int marker, other;

static void put(const char *text)
{
	if (write(marker, text, strlen(text)) < 0 || write(other, text, strlen(text)) < 0)
		_exit(1);
}

static void *end(void *none)
{
	put("F|1|load|77");
	return none;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 2)
		return 2;
	marker = open(argv[1], O_WRONLY);
	other = open("/dev/null", O_WRONLY);
	if (marker < 0 || other < 0)
		return 1;
	put("S|1|load|77");
	for (int turn = 0; turn < 3; turn++) {
		put("B|1|draw");
		put("B|1|inner");
		usleep(1000);
		put("E|1");
		usleep(1000);
		put("E|1\n");
	}
	pthread_create(&thread, 0, end, 0);
	pthread_join(thread, 0);
	put("C|1|queue|12");
	put("all is drawn\n");
	return 0;
}
