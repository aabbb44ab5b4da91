// A file system of one file, a copy of the program named last, that stops answering on SIGUSR1, as a
// server does that has gone: silent FOLDER PROGRAM. The kernel asks for the file anew each time.
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NODE 2

static volatile sig_atomic_t is_silent;
static int device, source;
static struct stat content;

static void fall_silent(int signal)
{
	(void)signal;
	is_silent = 1;
}

static void answer(const struct fuse_in_header *to, int error, const void *data, size_t size)
{
	static char bytes[sizeof(struct fuse_out_header) + (1 << 20)];
	struct fuse_out_header header = {
	    .len = sizeof(header) + size, .error = -error, .unique = to->unique};
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), data, size);
	if (write(device, bytes, header.len) < 0 && errno != ENOENT)
		perror("write");
}

static struct fuse_attr attributes(unsigned long node)
{
	struct fuse_attr found = {.ino = node, .nlink = 1, .blksize = 4096};
	found.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755;
	found.size = node == FUSE_ROOT_ID ? 0 : content.st_size;
	return found;
}

static void serve(const struct fuse_in_header *in, const void *argument)
{
	switch (in->opcode) {
	case FUSE_INIT: {
		const struct fuse_init_in *asked = argument;
		struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = 31};
		out.max_readahead = asked->max_readahead;
		out.max_write = 1 << 16;
		answer(in, 0, &out, sizeof(out));
		return;
	}
	case FUSE_LOOKUP: {
		struct fuse_entry_out out = {.nodeid = FILE_NODE, .attr = attributes(FILE_NODE)};
		int error = strcmp(argument, "program") ? ENOENT : 0;
		answer(in, error, &out, error ? 0 : sizeof(out));
		return;
	}
	case FUSE_GETATTR: {
		struct fuse_attr_out out = {.attr = attributes(in->nodeid)};
		answer(in, 0, &out, sizeof(out));
		return;
	}
	case FUSE_OPEN: {
		struct fuse_open_out out = {.fh = 1, .open_flags = FOPEN_KEEP_CACHE};
		answer(in, 0, &out, sizeof(out));
		return;
	}
	case FUSE_READ: {
		static char bytes[1 << 20];
		const struct fuse_read_in *asked = argument;
		size_t size = asked->size < sizeof(bytes) ? asked->size : sizeof(bytes);
		ssize_t read = pread(source, bytes, size, asked->offset);
		answer(in, read < 0 ? EIO : 0, bytes, read < 0 ? 0 : read);
		return;
	}
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		answer(in, 0, NULL, 0);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		answer(in, ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static char request[(1 << 20) + 4096];
	char options[100];
	struct sigaction action = {.sa_handler = fall_silent};

	if (argc != 3)
		return 2;
	source = open(argv[2], O_RDONLY);
	device = open("/dev/fuse", O_RDWR);
	if (source < 0 || device < 0 || fstat(source, &content))
		return 3;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 device);
	if (mount("silent", argv[1], "fuse", MS_NODEV, options))
		return 4;
	sigaction(SIGUSR1, &action, NULL);
	while (!is_silent) {
		ssize_t size = read(device, request, sizeof(request));
		if (size < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (size < 0)
			return 5;
		serve((void *)request, request + sizeof(struct fuse_in_header));
	}
	// The device stays open: who asks waits.
	for (;;)
		pause();
}
