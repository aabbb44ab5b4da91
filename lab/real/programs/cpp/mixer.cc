// Mixes sound: `mixer` has a thread that fills a buffer of samples, and a main thread that takes
// one for each line of its stdin and tells begin and end. The two share a spinning lock that gives
// the CPU away. A line `load S` has the other thread load a sound meanwhile, from a card that takes
// S seconds.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <thread>
#include <time.h>
#include <unistd.h>

static std::atomic_flag taken = ATOMIC_FLAG_INIT;
static std::atomic<double> wanted{0};
static double samples[4096];

static long long now_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

__attribute__((noinline)) void take_buffer()
{
	while (taken.test_and_set(std::memory_order_acquire))
		sched_yield();
}

static void give_buffer()
{
	taken.clear(std::memory_order_release);
}

__attribute__((noinline)) void load_sound(double seconds)
{
	usleep((useconds_t)(seconds * 1e6));
}

static void fill()
{
	prctl(PR_SET_NAME, "filler");
	for (double phase = 0;; phase += 0.1) {
		double seconds = wanted.exchange(0);

		take_buffer();
		for (double &sample : samples)
			sample = std::sin(phase += 0.01);
		if (seconds > 0)
			load_sound(seconds);
		give_buffer();
		usleep(20000);
	}
}

int main()
{
	std::thread(fill).detach();
	puts("ready");
	fflush(stdout);
	for (std::string line; std::getline(std::cin, line);) {
		if (line.rfind("load ", 0) == 0) {
			wanted = std::stod(line.substr(5));
			while (wanted > 0)
				usleep(1000);
			usleep(5000);
			continue;
		}
		long long begin = now_ns();

		take_buffer();
		samples[0] = 0;
		give_buffer();
		printf("%lld %lld\n", begin, now_ns());
		fflush(stdout);
	}
	return 0;
}
