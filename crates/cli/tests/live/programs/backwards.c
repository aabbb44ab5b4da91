// Reads a mapped file of so many pages from its end, a page at a time, when none of it is in memory:
// backwards FILE PAGES. Says how many major faults the kernel counted for that, and how many pages
// were in memory before.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define PAGE 4096

static volatile char sink;

__attribute__((noinline)) static void touch(const char *page)
{
	sink = *page;
}

int main(int count, char **arguments)
{
	struct rusage before, after;
	size_t pages = count == 3 ? strtoul(arguments[2], NULL, 10) : 0;
	int file = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static char page[PAGE];
	if (file < 0 || !pages)
		return 1;
	for (size_t i = 0; i < pages; i++)
		if (write(file, page, PAGE) != PAGE)
			return 1;
	if (fsync(file) || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED))
		return 1;
	char *at = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, file, 0);
	unsigned char *there = calloc(pages, 1);
	size_t resident = 0;
	if (at == MAP_FAILED || madvise(at, pages * PAGE, MADV_RANDOM) ||
	    mincore(at, pages * PAGE, there))
		return 1;
	for (size_t i = 0; i < pages; i++)
		resident += there[i] & 1;
	getrusage(RUSAGE_SELF, &before);
	for (size_t i = pages; i-- > 0;)
		touch(at + i * PAGE);
	getrusage(RUSAGE_SELF, &after);
	printf("{\"tid\": %d, \"major\": %ld, \"resident\": %zu}\n", getpid(),
	       after.ru_majflt - before.ru_majflt, resident);
	return 0;
}
