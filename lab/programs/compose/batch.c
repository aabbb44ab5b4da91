/*
 * A server with several clients: it reads all their requests, handles them in order, and replies to
 * each or to all at the end. One request is slow: that of the one that waits, or that of a guest
 * (`variant`), behind which it must queue. The last message says nothing of who was slow.
 */
#include "compose.h"
#include <fcntl.h>

static sem_t guests_may_start[MAX_DEPTH + 1][MAX_HELPERS];

struct guest {
	struct link *link;
	int number;
};

static void batch_open(struct link *link)
{
	int pair[2];
	LAB_TRY(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair));
	link->ask_to = pair[0];
	link->ask_from = pair[1];
	int reply[2];
	LAB_TRY(pipe2(reply, O_CLOEXEC));
	link->reply_from = reply[0];
	link->reply_to = reply[1];
	for (int i = 0; i < link->helpers; i++) {
		LAB_TRY(pipe2(link->guest_replies[i], O_CLOEXEC));
		sem_init(&guests_may_start[link->index][i], 0, 0);
	}
}

static void *be_a_guest(void *arg)
{
	struct guest *guest = arg;
	for (;;) {
		sem_wait(&guests_may_start[guest->link->index][guest->number]);
		put_byte(guest->link->ask_to, 'r');
		get_byte(guest->link->guest_replies[guest->number][0]);
	}
	return NULL;
}

static void batch_start_helpers(struct link *link)
{
	for (int i = 0; i < link->helpers; i++) {
		struct guest *guest = malloc(sizeof(*guest));
		if (guest == NULL)
			lab_exit(1, "out of memory");
		*guest = (struct guest){link, i};
		lab_thread(be_a_guest, guest, "guest%d.%d", link->index, i + 1);
	}
}

static void batch_request(struct link *link)
{
	for (int i = 0; i < link->helpers; i++)
		sem_post(&guests_may_start[link->index][i]);
	put_byte(link->ask_to, 'r');
}

static bool batch_await(struct link *link, uint64_t until_ns)
{
	if ((until_ns != 0 || link->polls) && !can_read_until(link->reply_from, until_ns))
		return false;
	get_byte(link->reply_from);
	return true;
}

static void handle_quickly(void)
{
	LAB_COMPUTE_US(100);
}

static void reply_to_guest(struct link *link, int number)
{
	put_byte(link->guest_replies[number][1], 'a');
}

/*
 * The order: guest 0, then the slow request, then the other guests, where the slow one is the
 * waiter's own; the slow request, which is guest 0's, then the waiter's, then the other guests,
 * otherwise. `late_news`: all replies come at the end, the waiter's first.
 */
static void batch_accept(struct link *link)
{
	for (int i = 0; i <= link->helpers; i++)
		get_byte(link->ask_from);
	if (link->variant)
		return;
	handle_quickly();
	if (!link->late_news)
		reply_to_guest(link, 0);
}

static void batch_answer(struct link *link)
{
	if (link->variant) {
		if (!link->late_news)
			reply_to_guest(link, 0);
		handle_quickly();
	}
	if (!link->late_news)
		put_byte(link->reply_to, 'a');
	for (int i = 1; i < link->helpers; i++) {
		handle_quickly();
		if (!link->late_news)
			reply_to_guest(link, i);
	}
	if (!link->late_news)
		return;
	put_byte(link->reply_to, 'a');
	for (int i = 0; i < link->helpers; i++)
		reply_to_guest(link, i);
}

const struct link_kind batch_link = {
    .name = "batch",
    .across = true,
    .timed = true,
    .open = batch_open,
    .request = batch_request,
    .await = batch_await,
    .accept = batch_accept,
    .answer = batch_answer,
    .start_helpers = batch_start_helpers,
};
