/* Makes new layers of a large picture, as a drawing program does: each line on stdin, SECONDS, has
 * it make one after the other for so long, each in fresh memory that the kernel has to bring and to
 * clear first. It tells the begin and end of that. Meanwhile, ten times a second, it draws a
 * little. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LAYER_BYTES = 512 << 20, LAYERS = 4, BRUSH_BYTES = 4096 };

static long long now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static char *new_layer(void)
{
	char *layer =
	    mmap(NULL, LAYER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (layer == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return layer;
}

/* Makes layers, and drops the oldest where there are too many. */
__attribute__((noinline)) void make_layers(double seconds)
{
	char *layers[LAYERS] = {0};
	long long end = now_ns() + (long long)(seconds * 1e9);
	for (int next = 0; now_ns() < end; next = (next + 1) % LAYERS) {
		if (layers[next])
			munmap(layers[next], LAYER_BYTES);
		layers[next] = new_layer();
		for (size_t done = 0; done < LAYER_BYTES && now_ns() < end;
		     done += LAYER_BYTES / 64)
			memset(layers[next] + done, 0xff, LAYER_BYTES / 64);
	}
	for (int i = 0; i < LAYERS; i++)
		if (layers[i])
			munmap(layers[i], LAYER_BYTES);
}

int main(void)
{
	static char brush[BRUSH_BYTES];
	struct pollfd input = {.fd = 0, .events = POLLIN};
	char line[64];
	puts("ready");
	fflush(stdout);
	for (;;) {
		if (poll(&input, 1, 100) == 0) {
			memset(brush, 1, sizeof brush);
			continue;
		}
		if (!fgets(line, sizeof line, stdin))
			return 0;
		long long begin = now_ns();
		make_layers(atof(line));
		printf("%lld %lld\n", begin, now_ns());
		fflush(stdout);
	}
}
