// Computes for MILLISECONDS in work, into which bake is inlined, says who it is, then sleeps for
// SECONDS.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <unistd.h>

namespace bakery {

template <class T> struct Oven {
	unsigned long heat = 1;

	__attribute__((always_inline)) void bake(T loaves)
	{
		for (T i = 0; i < loaves; i++) {
			asm volatile("" : "+r"(heat));
			heat = heat * 31 + i;
		}
	}
};

__attribute__((noinline)) unsigned long work(int loaves)
{
	Oven<int> oven;
	oven.bake(loaves);
	return oven.heat;
}

} // namespace bakery

static long milliseconds()
{
	timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int count, char **words)
{
	unsigned long heat = 0;
	long end = milliseconds() + (count > 1 ? atol(words[1]) : 0);
	while (milliseconds() < end)
		heat += bakery::work(1000000);
	printf("{\"pid\": %d, \"heat\": %lu}\n", getpid(), heat);
	fflush(stdout);
	if (count > 2)
		sleep(atoi(words[2]));
}
