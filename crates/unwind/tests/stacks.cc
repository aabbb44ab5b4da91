// Stops itself somewhere deep, in the way that its argument says; whoever started it traces it and
// looks. Built without frame pointers.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <pthread.h>
#include <sys/ptrace.h>

#define FRAME __attribute__((noinline, noclone))
// Nothing is called last, so each frame stays on the stack.
#define STAY asm volatile("" ::: "memory")

static const char *way;

// Its first instruction fails; the byte before it belongs to a function with another frame.
asm(R"(
    .text
    .type before_illegal, @function
before_illegal:
    .cfi_startproc
    .cfi_def_cfa_offset 4096
    nop
    .cfi_endproc
    .size before_illegal, . - before_illegal
    .type illegal, @function
    .globl illegal
illegal:
    .cfi_startproc
    ud2
    ret
    .cfi_endproc
    .size illegal, . - illegal
)");

extern "C" {
void illegal();

FRAME void stop_here()
{
	raise(SIGSTOP);
	STAY;
}

void on_signal(int)
{
	stop_here();
	STAY;
}

int compare(const void *, const void *)
{
	if (!strcmp(way, "callback"))
		stop_here();
	else if (!strcmp(way, "illegal"))
		illegal();
	else
		raise(SIGUSR1);
	STAY;
	return 0;
}

FRAME int sorted()
{
	int values[] = {2, 1};
	qsort(values, 2, sizeof *values, compare);
	STAY;
	return values[0];
}

FRAME void use(void *)
{
	STAY;
}

// Arguments on the stack, a local that wants alignment and one of unknown size: gcc realigns.
FRAME int realigned(int, int, int, int, int, int, int size, int at)
{
	alignas(64) char space[64];
	char *more = (char *)__builtin_alloca(size);
	use(space);
	use(more);
	space[at] = more[at] = (char)sorted();
	use(space);
	return space[at] + more[at];
}

FRAME int recurse(int left, const std::function<int()> &last)
{
	volatile char frame[100];
	frame[left] = 1;
	int result = left ? recurse(left - 1, last) : last();
	STAY;
	return result + frame[left];
}

FRAME int work()
{
	int result;
	if (!strcmp(way, "realigned"))
		result = recurse(3, [] { return realigned(1, 2, 3, 4, 5, 6, 100, 7); });
	else
		result = recurse(3, sorted);
	STAY;
	return result;
}

struct Guard {
	~Guard()
	{
		work();
		STAY;
	}
};

FRAME void throws()
{
	Guard guard;
	STAY;
	throw 1;
}

FRAME void trace_me()
{
	if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr))
		exit(99);
}

void *thread(void *)
{
	trace_me();
	work();
	STAY;
	return nullptr;
}
}

int main(int, char **arguments)
{
	way = arguments[1];
	stack_t other = {};
	other.ss_sp = malloc(1 << 16);
	other.ss_size = 1 << 16;
	sigaltstack(&other, nullptr);
	struct sigaction action = {};
	action.sa_handler = on_signal;
	action.sa_flags = strcmp(way, "elsewhere") ? 0 : SA_ONSTACK;
	sigaction(SIGUSR1, &action, nullptr);
	sigaction(SIGILL, &action, nullptr);
	if (!strcmp(way, "thread")) {
		pthread_t id;
		pthread_create(&id, nullptr, thread, nullptr);
		pthread_join(id, nullptr);
		return 0;
	}
	trace_me();
	if (!strcmp(way, "destructor")) {
		try {
			throws();
		} catch (int) {
		}
	} else {
		work();
	}
	STAY;
	return 0;
}
