/*
 * Threads that have nothing to do with the hang: pairs that pass a token to and fro, sleepers, and
 * short computations. Sixteen of them take a twentieth of a CPU.
 */
#include "compose.h"

struct pair {
	sem_t ping, pong;
};

static void *throw(void *arg)
{
	struct pair *pair = arg;
	for (;;) {
		LAB_SLEEP_US(3000);
		sem_post(&pair->ping);
		sem_wait(&pair->pong);
	}
	return NULL;
}

static void *throw_back(void *arg)
{
	struct pair *pair = arg;
	for (;;) {
		sem_wait(&pair->ping);
		sem_post(&pair->pong);
	}
	return NULL;
}

static void *nap(void *arg)
{
	for (;;)
		LAB_SLEEP_US((intptr_t)arg);
	return NULL;
}

LAB_NAMED void *compute_a_little(void *arg)
{
	for (;;) {
		LAB_SLEEP_US((intptr_t)arg);
		LAB_COMPUTE_US(60);
	}
	return NULL;
}

void noise_start(int count)
{
	for (int i = 0; i < count;) {
		struct pair *pair;
		switch (i % 4) {
		case 0:
			pair = calloc(1, sizeof(*pair));
			if (pair == NULL)
				lab_exit(1, "out of memory");
			sem_init(&pair->ping, 0, 0);
			sem_init(&pair->pong, 0, 0);
			lab_thread(throw_back, pair, "noise%d", i++);
			if (i < count)
				lab_thread(throw, pair, "noise%d", i++);
			break;
		case 2:
			lab_thread(nap, (void *)(intptr_t)(1500 + 700 * i), "noise%d", i);
			i++;
			break;
		default:
			lab_thread(compute_a_little, (void *)(intptr_t)(10000 + 500 * i), "noise%d",
				   i);
			i++;
		}
	}
}
