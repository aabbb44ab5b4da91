/* Marks points, so many a millisecond on each of some threads, for so many milliseconds; the first
 * argument counts them. In a file stands, thread by thread, how many marks were made, counted after
 * each. With "damage" it writes into its shared memory what cannot be, half way, and marks on. With that
 * or "wait" its threads stay for a while when they have marked. */
#include "../../../../../mark/hangdog-mark.h"

#include <stdio.h>
#include <stdlib.h>

static int each_ms, for_ms, damages, waits;
static volatile uint64_t *counts;

static void until(uint64_t ns)
{
	struct timespec at = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
}

static void *work(void *count)
{
	volatile uint64_t *own = count;
	uint64_t begin = hangdog_mark_now(HANGDOG_MARK_MONOTONIC);

	for (int ms = 0; ms < for_ms; ms++) {
		for (int i = 0; i < each_ms; i++) {
			hangdog_point(HANGDOG_NAME("count"), *own, -1);
			++*own;
		}
		if (damages && ms == for_ms / 2)
			hangdog_mark_thread_1.ring->begun = UINT64_C(1) << 60;
		until(begin + 1000000 * (uint64_t)(ms + 1));
	}
	/* Who looks afterwards is to find them there. */
	if (waits)
		sleep(damages ? 2 : 120);
	return 0;
}

int main(int argc, char **argv)
{
	int threads, fd;
	pthread_t made[64];

	if (argc < 5)
		return 2;
	threads = atoi(argv[1]);
	each_ms = atoi(argv[2]);
	for_ms = atoi(argv[3]);
	waits = argc > 5;
	damages = waits && strcmp(argv[5], "damage") == 0;
	fd = open(argv[4], O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (threads > 64 || fd < 0 || ftruncate(fd, 8 * threads) != 0)
		return 1;
	counts = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counts == MAP_FAILED)
		return 1;
	for (int i = 0; i < threads; i++)
		pthread_create(&made[i], 0, work, (void *)&counts[i]);
	for (int i = 0; i < threads; i++)
		pthread_join(made[i], 0);
	return 0;
}
