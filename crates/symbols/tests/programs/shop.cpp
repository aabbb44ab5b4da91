// Functions of a shop, one inlined into the other, one that nobody outside may call.
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#define KEPT extern "C" __attribute__((noinline, used, visibility("default")))

static __attribute__((noinline, used)) unsigned long hidden_sum(unsigned long n) {
    unsigned long sum = 0;
    for (unsigned long i = 0; i < n; i++) {
        asm volatile("" : "+r"(sum));
        sum = sum * 3 + i;
    }
    return sum;
}

// Whose length nobody states.
asm(".text\n.globl shop_label\nshop_label:\n.fill 64, 1, 0x90\nret\n");

namespace shop {
template <class T> struct Till {
    T sum = 0;
    __attribute__((always_inline)) void ring(T value) {
        for (int i = 0; i < 10; i++) {
            asm volatile("" : "+r"(sum));
            sum = sum * 3 + value;
        }
    }
};
__attribute__((noinline)) unsigned long serve(unsigned long customers) {
    Till<unsigned long> till;
    for (unsigned long i = 0; i < customers; i++)
        till.ring(i);
    return till.sum;
}
} // namespace shop

KEPT unsigned long shop_open(unsigned long n) { return shop::serve(n) + hidden_sum(n); }

int main(int count, char **words) {
    printf("%lu\n", shop_open(count));
    fflush(stdout);
    sleep(count > 1 ? atoi(words[1]) : 0);
}
