/* Looks at files before somebody may open them: `scanner FOLDER SCANNED` is asked by the kernel
 * (fanotify) about each file of FOLDER. One whose name ends in .zip is unpacked and searched until
 * the file SCANNED is there; all others are looked at for a moment. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <unistd.h>

static unsigned search_archive(const char *scanned)
{
	unsigned sum = 1;

	while (access(scanned, F_OK) != 0)
		for (int n = 0; n < 1000000; n++)
			sum = sum * 1664525 + 1013904223;
	return sum;
}

static int is_archive(int file)
{
	char link[64], name[4096];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	length = readlink(link, name, sizeof(name) - 1);
	if (length < 4)
		return 0;
	name[length] = 0;
	return strcmp(name + length - 4, ".zip") == 0;
}

int main(int count, char **arguments)
{
	int group = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
	struct fanotify_event_metadata events[8], *event;
	volatile unsigned sum = 0;
	ssize_t length;

	if (count < 3 || group < 0 ||
	    fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_EVENT_ON_CHILD, AT_FDCWD,
			  arguments[1])) {
		perror("fanotify");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while ((length = read(group, events, sizeof(events))) > 0) {
		for (event = events; FAN_EVENT_OK(event, length);
		     event = FAN_EVENT_NEXT(event, length)) {
			struct fanotify_response answer = {event->fd, FAN_ALLOW};

			if (is_archive(event->fd))
				sum = search_archive(arguments[2]);
			if (write(group, &answer, sizeof(answer)) < 0)
				perror("fanotify");
			close(event->fd);
		}
	}
	return sum == 1;
}
