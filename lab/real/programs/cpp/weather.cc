// Computes the weather on a grid with OpenMP: each line of stdin is how long the row of the storm
// takes, in s; all others are quick. The next step needs all rows. Tells begin and end.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>
#include <time.h>

static const int ROWS = 4;

static long long now_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

__attribute__((noinline)) double compute_row(double seconds)
{
	long long end = now_ns() + (long long)(seconds * 1e9);
	double pressure = 1013;

	do {
		for (int n = 1; n < 2000; n++)
			pressure += std::sin(pressure / n) / n;
	} while (now_ns() < end);
	return pressure;
}

int main()
{
	puts("ready");
	fflush(stdout);
	for (std::string line; std::getline(std::cin, line);) {
		double storm = std::stod(line), sum = 0;
		long long begin = now_ns();

#pragma omp parallel for num_threads(ROWS) schedule(static, 1) reduction(+ : sum)
		for (int row = 0; row < ROWS; row++)
			sum += compute_row(row == 2 ? storm : 0.001);
		printf("%lld %lld\n", begin, now_ns());
		fflush(stdout);
	}
	return 0;
}
