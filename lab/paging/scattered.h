/*
 * A library of functions of one page each, of which every HOT_STEPth is hot: it is called; the
 * others are cold, and lie between. `make` builds it from functions.c, by the same numbers.
 */
#ifndef SCATTERED_H
#define SCATTERED_H

#define FUNCTIONS 4096
#define HOT_STEP 64
#define HOT_FIRST 32

#ifndef SCATTERED_LIBRARY
#include <dlfcn.h>

/* Loads a copy of the library of which nothing is in memory, and calls its hot functions. */
static void call_hot(const char *path)
{
	void (*hot[FUNCTIONS / HOT_STEP])(void);
	size_t count = 0;
	char name[32], more[64];
	void *library = dlopen(path, RTLD_NOW);
	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	for (size_t i = HOT_FIRST; i < FUNCTIONS; i += HOT_STEP) {
		snprintf(name, sizeof(name), "function_%04zu", i);
		*(void **)&hot[count++] = dlsym(library, name);
	}
	uintptr_t from = (uintptr_t)hot[0] & ~(uintptr_t)(PAGE - 1);
	size_t length = ((uintptr_t)hot[count - 1] & ~(uintptr_t)(PAGE - 1)) + PAGE - from;
	/* No page of the functions is mapped or in memory. */
	TRY(madvise((void *)from, length, MADV_DONTNEED));
	int fd = TRY(open(path, O_RDONLY | O_CLOEXEC));
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	struct phase phase = begin();
	for (size_t i = 0; i < count; i++)
		hot[i]();
	snprintf(more, sizeof(more), ", \"hot\": %zu", count);
	end(&phase, more);
}
#endif
#endif
