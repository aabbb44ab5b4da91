// Callbacks through the C library, exceptions, virtual calls and threads that wait for each other.
#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

std::mutex lock;
std::condition_variable changed;
unsigned turn;

struct Shape {
	virtual ~Shape() = default;
	virtual double area(int depth) const = 0;
};

struct Nested : Shape {
	double area(int depth) const override
	{
		volatile double space[32] = {};
		space[depth % 32] = depth;
		return depth ? area(depth - 1) + space[depth % 32] : 1;
	}
};

static int compare(const void *a, const void *b)
{
	Nested nested;
	return nested.area(5) > 0 ? *(const int *)a - *(const int *)b : 0;
}

static void work(unsigned self)
{
	std::vector<int> numbers(200);
	for (;;) {
		std::generate(numbers.begin(), numbers.end(), rand);
		qsort(numbers.data(), numbers.size(), sizeof(int), compare);
		try {
			if (numbers[0] >= 0)
				throw std::runtime_error("thrown to be caught");
		} catch (const std::exception &) {
		}
		std::unique_lock<std::mutex> held(lock);
		changed.wait(held, [&] { return turn % 2 == self; });
		turn++;
		changed.notify_all();
	}
}

int main()
{
	std::thread other(work, 1);
	work(0);
}
