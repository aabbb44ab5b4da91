// Writes orders to a register that other programs write to as well: `orders REGISTER.LOCK` has a
// task write one for each line of its stdin, waits for the task's future, and tells begin and end.
#include <cstdio>
#include <fcntl.h>
#include <future>
#include <iostream>
#include <string>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static long long now_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int store_order(const char *path, const std::string &order)
{
	int lock = open(path, O_RDWR | O_CREAT, 0600);

	flock(lock, LOCK_EX);
	int length = order.size();
	close(lock);
	return length;
}

int main(int, char **arguments)
{
	puts("ready");
	fflush(stdout);
	for (std::string line; std::getline(std::cin, line);) {
		long long begin = now_ns();
		auto stored = std::async(std::launch::async, store_order, arguments[1], line);

		stored.get();
		printf("%lld %lld\n", begin, now_ns());
		fflush(stdout);
	}
}
