// A function that is called 200 times, by two threads in turns, and a static probe in it (USDT) with the
// note that <sys/sdt.h> writes: its arguments are the number and 7. It returns twice the number.
#include <pthread.h>
#include <stdio.h>

#if defined(__x86_64__)
#define SOLD(number)                                                                               \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                              \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b, 0, 0\n"                                                \
			 ".asciz \"shop\"\n"                                                       \
			 ".asciz \"sold\"\n"                                                       \
			 ".asciz \"-8@%%rax 4@$7\"\n"                                              \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n" ::"a"(number))
#else
#define SOLD(number)
#endif

__attribute__((noinline)) long serve(long number, const char *what)
{
	SOLD(number);
	__asm__ volatile("" ::"r"(what) : "memory");
	return number * 2;
}

static void *half(void *first)
{
	for (long number = (long)first; number < 200; number += 2) {
		if (serve(number, "bread") != number * 2)
			return (void *)1;
	}
	return 0;
}

int main(void)
{
	pthread_t other;

	if (pthread_create(&other, 0, half, (void *)1) || half(0) || pthread_join(other, 0))
		return 1;
	puts("done");
	return 0;
}
