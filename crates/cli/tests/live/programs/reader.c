// A thread reads a folder into memory whose page a thread of its own is to fill, which never does: so it stays in the
// call, with the folder's lock as a reader. Another one makes a folder in that folder, and waits for the lock.
// Says who is who, and waits.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096

static int folder;
static char *page;

static void *read_folder(void *reader)
{
	*(int *)reader = gettid();
	syscall(SYS_getdents64, folder, page, PAGE);
	return NULL;
}

static void *make_folder(void *maker)
{
	*(int *)maker = gettid();
	mkdirat(folder, "new", 0700);
	return NULL;
}

int main(int count, char **arguments)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register range = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	int reader = 0, maker = 0;
	pthread_t first, second;

	folder = open(count == 2 ? arguments[1] : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	range.range.start = (unsigned long)page;
	range.range.len = PAGE;
	if (folder < 0 || faults < 0 || ioctl(faults, UFFDIO_API, &api) ||
	    ioctl(faults, UFFDIO_REGISTER, &range)) {
		puts("{\"unavailable\": true}");
		return 0;
	}
	pthread_create(&first, NULL, read_folder, &reader);
	sleep(1);
	pthread_create(&second, NULL, make_folder, &maker);
	sleep(1);
	printf("{\"reader\": %d, \"maker\": %d}\n", reader, maker);
	fflush(stdout);
	pause();
	return 0;
}
