/*
 * A save (or a load) that bypasses the page cache, goes on for long and waits for the disk nearly
 * all of that time. Ordinary turns are small saves.
 */
#include "lab.h"
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>

enum direction { SAVE, LOAD };

static enum direction direction;
static int file;
static char *buffer;
static size_t chunk;

/* Large chunks: the more the disk does at once, the smaller the share of the CPU. */
LAB_NAMED void transfer_chunk(void)
{
	if (direction == LOAD) {
		LAB_TRY(pread(file, buffer, chunk, 0));
		return;
	}
	LAB_TRY(pwrite(file, buffer, chunk, 0));
	LAB_TRY(fsync(file));
}

/* Between two turns nobody wants anything: without that, the one that hangs would be no more than
 * a part of one long interval of disk work, and nothing could tell where it begins. */
#define PAUSE_US 8000

static void turn(int ms)
{
	uint64_t until = lab_now_ns() + (uint64_t)ms * 1000000;
	LAB_SLEEP_US(PAUSE_US);
	do
		transfer_chunk();
	while (lab_now_ns() < until);
}

static const char *directory_of_this_program(void)
{
	static char path[PATH_MAX];
	ssize_t length = LAB_TRY(readlink("/proc/self/exe", path, sizeof(path) - 1));
	path[length] = '\0';
	return dirname(path);
}

/* A file without a name: nothing is left behind, even if the program is killed. */
static void open_file(const char *directory)
{
	struct statfs fs;
	LAB_TRY(statfs(directory, &fs));
	if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
		lab_exit(LAB_CANNOT_RUN, "%s is in memory, not on a disk: give another --dir",
			 directory);
	file = open(directory, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
	if (file < 0)
		lab_exit(LAB_CANNOT_RUN, "no direct input and output in %s: %s", directory,
			 strerror(errno));
	buffer = mmap(NULL, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buffer == MAP_FAILED)
		lab_exit(1, "mmap: %s", strerror(errno));
	memset(buffer, 1, chunk);
	LAB_TRY(pwrite(file, buffer, chunk, 0));
	LAB_TRY(fsync(file));
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "disk");
	int hang_ms = lab_hang_ms();
	direction = (enum direction)LAB_PICK("direction", "save", "load");
	chunk = (size_t)lab_choose("chunk_mb", 8, 32) << 20;
	const char *directory = lab_option("dir");
	open_file(directory ? directory : directory_of_this_program());
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
