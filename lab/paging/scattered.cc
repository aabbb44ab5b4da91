/*
 * A program of 3,072 functions of some 2 KB each, of which every 48th is executed when it starts, in an
 * order of its own: its hot functions lie scattered over 6 MB of cold ones, as they do in a program whose
 * linker knows nothing of how it is used. Says how many major faults executing them took.
 */
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

namespace {

constexpr int FUNCTIONS = 3072;
constexpr int STEP = 48;
constexpr int HOT = FUNCTIONS / STEP;

} // namespace

template <int number> struct Part {
	__attribute__((noinline)) static int work(int value)
	{
		__asm__ volatile(".fill 2000, 1, 0x90");
		return value * 31 + number;
	}
};

using Work = int (*)(int);

template <int... numbers>
constexpr std::array<Work, sizeof...(numbers)> all(std::integer_sequence<int, numbers...>)
{
	return {Part<numbers>::work...};
}

/* All of them are there for whoever wants them: the linker may leave none out. */
extern const std::array<Work, FUNCTIONS> parts;
const std::array<Work, FUNCTIONS> parts = all(std::make_integer_sequence<int, FUNCTIONS>());

int main(int count, char **arguments)
{
	/* Where the text lies, and that none of it but this page is mapped. */
	struct rusage before, after;
	int value = count, made = 0;
	getrusage(RUSAGE_SELF, &before);
	for (int i = 0; i < HOT; i++)
		value = parts[static_cast<size_t>((i * 37) % HOT * STEP)](value), made++;
	getrusage(RUSAGE_SELF, &after);
	std::printf("{\"pid\": %d, \"major\": %ld, \"hot\": %d, \"value\": %d}\n", getpid(),
		    after.ru_majflt - before.ru_majflt, made, value & 1);
	return arguments == nullptr;
}
