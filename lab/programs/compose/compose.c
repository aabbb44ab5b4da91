/*
 * Draws a hang by its seed, says what it is and what the truth is, and lets it happen.
 *
 *     param KEY=VALUE      what was drawn; any can be given as --key VALUE
 *     truth KEY=VALUE      victim, root (PROCESS/THREAD, one line for each that is right), class,
 *                          function, wait cycle (its threads)
 *     hang FROM TO         as in lab.h
 *     ready PID ADDRESS    with --memory 1, which makes one link one through memory alone: the word
 * of 4 bytes that its waiter looks at. The program goes on when a line comes on its standard input.
 *
 * What a machine does not allow is drawn again: `param redrawn` says so.
 */
#include "compose.h"
#include <sys/mman.h>

/* ---- What is drawn ---- */

enum family { LONG_RUNNING, LONG_WAIT, REPEATED_YIELD, STARVED, PAGING, CIRCULAR, LOST_WAKE };

static enum family family;

static const char *key_of(const char *name, int index)
{
	static char key[32];
	snprintf(key, sizeof(key), "%s%d", name, index);
	return key;
}

static bool yes(const char *name, int index)
{
	return lab_choose(key_of(name, index), 0, 1);
}

static enum root draw_root(void)
{
	bool which;
	switch (family) {
	case LONG_RUNNING:
		return ROOT_COMPUTES;
	case LONG_WAIT:
		return LAB_PICK("wait", "sleep", "disk") == 1 ? ROOT_DISK : ROOT_SLEEPS;
	case REPEATED_YIELD:
		plan.naps = LAB_PICK("poll", "yield", "nap") == 1;
		plan.nap_us = lab_choose("nap_us", 50, 200);
		return ROOT_YIELDS;
	case STARVED:
		which = LAB_PICK("starved_by", "hog", "quota") == 1;
		plan.hog_is_process = LAB_PICK("hog", "thread", "process") == 1;
		plan.quota_percent = lab_choose("quota_percent", 8, 15);
		return which ? ROOT_QUOTA : ROOT_HOGGED;
	case PAGING:
		return ROOT_PAGES;
	case CIRCULAR:
		which = LAB_PICK("knot_of", "locks", "requests") == 1;
		plan.knot = lab_choose("knot", 2, MAX_KNOT);
		plan.knot_breaker = lab_choose("breaker", 0, MAX_KNOT - 1) % plan.knot;
		return which ? ROOT_REQUEST_KNOT : ROOT_LOCK_KNOT;
	case LOST_WAKE:
		switch (LAB_PICK("lost", "computes", "sleeps", "forgets")) {
		case 0:
			return ROOT_COMPUTES;
		case 2:
			plan.forgets = true;
		}
		return ROOT_SLEEPS;
	}
	return ROOT_COMPUTES;
}

/* Roots that do with the one thread that a child has. */
static bool root_fits_child(void)
{
	return plan.root == ROOT_COMPUTES || plan.root == ROOT_SLEEPS || plan.root == ROOT_DISK ||
	       plan.root == ROOT_PAGES;
}

static bool kind_fits(const struct link_kind *kind, int index, int timed)
{
	bool last = index == plan.depth;
	const struct link_kind *before = index > 1 ? plan.links[index - 1].kind : NULL;
	bool transient = kind == &child_link || kind == &join_link;
	/* Whoever was forked in the middle of a turn has neither threads nor their locks. */
	if (before == &child_link && (!kind->across || kind == &batch_link))
		return false;
	if (index == timed && (!kind->timed || before == &child_link))
		return false;
	if (index + 1 == timed && kind == &child_link)
		return false;
	if (last && plan.forgets && (!kind->forgettable || transient))
		return false;
	if (last && kind == &child_link && !root_fits_child())
		return false;
	/* The quota is the root's alone. */
	if (last && plan.root == ROOT_QUOTA && (!kind->across || kind == &child_link))
		return false;
	return true;
}

/* One of `kinds` that fits; NULL if none does. */
static const struct link_kind *draw_one_of(const struct link_kind *const kinds[], size_t all,
					   const char *key, int index, int timed)
{
	const struct link_kind *fitting[32];
	const char *names[32];
	size_t count = 0;
	for (size_t i = 0; i < all; i++)
		if (kind_fits(kinds[i], index, timed)) {
			fitting[count] = kinds[i];
			names[count++] = kinds[i]->name;
		}
	return count == 0 ? NULL : fitting[lab_pick_of(key, names, count)];
}

static const struct link_kind *draw_kind(int index, int timed)
{
	static const struct link_kind *const by_memory[] = {&queue_link, &spin_link,
							    &sequence_link};
	/* Whoever watches the word has to know the process. */
	if (index == plan.memory_link && plan.nodes[index - 1].process == 0) {
		const struct link_kind *kind =
		    draw_one_of(by_memory, LAB_COUNT(by_memory), "memory_kind", index, timed);
		if (kind != NULL)
			return kind;
	}
	if (index == plan.memory_link)
		plan.memory_link = 0;
	return draw_one_of(link_kinds, link_kind_count, key_of("link", index), index, timed);
}

static void draw_link(int index, int timed)
{
	struct link *link = &plan.links[index];
	struct node *waiter = &plan.nodes[index - 1], *server = &plan.nodes[index];
	link->index = index;
	link->kind = draw_kind(index, timed);
	link->waiter = waiter;
	link->server = server;
	waiter->out = link;
	server->in = link;
	server->index = index;
	snprintf(server->name, sizeof(server->name), "node%d", index);

	bool after_child = waiter->transient && waiter->process == waiter->index;
	bool must = after_child || link->kind == &child_link ||
		    (index == plan.depth && plan.root == ROOT_QUOTA);
	bool moves = link->kind->across && (yes("process", index) || must);
	server->process = moves ? index : waiter->process;
	server->transient = link->kind == &child_link || link->kind == &join_link;

	link->gives_up = index == timed;
	link->variant = yes("variant", index);
	link->polls = yes("polls", index);
	link->tickled = yes("tickled", index) && link->kind->tickle != NULL && !after_child;
	/* A change that its author keeps to himself is rare. */
	link->late_news = lab_choose(key_of("late_news", index), 0, 3) == 0 &&
			  (link->kind == &batch_link || link->tickled);
	link->helpers = lab_choose(key_of("helpers", index), 0, MAX_HELPERS);
	if (link->kind == &batch_link && link->helpers == 0)
		link->helpers = 1;
}

static void draw_chain(void)
{
	int timed = family == LOST_WAKE
			? (plan.forgets ? plan.depth
					: lab_choose("gives_up", 1, MAX_DEPTH) % plan.depth + 1)
			: 0;
	struct node *victim = &plan.nodes[0];
	snprintf(victim->name, sizeof(victim->name), "compose");
	for (int i = 1; i <= plan.depth; i++)
		draw_link(i, timed);
}

static void draw(void)
{
	static const char *const families[] = {"LongRunning", "LongWait", "RepeatedYield",
					       "Starved",     "Paging",	  "Circular",
					       "LostWake"};
	family = (enum family)lab_pick_of("family", families, LAB_COUNT(families));
	plan.chunk = (size_t)lab_choose("chunk_mb", 8, 32) << 20;
	plan.root = draw_root();
	if (!root_can(plan.root)) {
		printf("param redrawn=%s\n", families[family]);
		family = LONG_RUNNING;
		plan.root = ROOT_COMPUTES;
	}
	plan.depth = lab_choose("depth", 1, MAX_DEPTH);
	if (plan.depth < 1 || plan.depth > MAX_DEPTH)
		lab_exit(2, "depth is 1 to %d", MAX_DEPTH);
	/* Near the victim, most links fit. */
	if (lab_option("memory") != NULL && lab_number("memory", lab_option("memory")) != 0)
		plan.memory_link = lab_choose("memory_link", 1, plan.depth < 2 ? 1 : 2);
	/* The wait cycle may be the victim's own. */
	if (family == CIRCULAR && lab_choose("victim_in_knot", 0, 3) == 1)
		plan.depth = 0;
	/* Realtime threads get 950 ms of each second: a longer hog would be throttled. */
	plan.hang_ms = lab_choose("hang_ms", 500, family == STARVED ? 850 : 1000);
	plan.is_given_up = family == LOST_WAKE;
	if (plan.memory_link > plan.depth)
		plan.memory_link = 0;
	draw_chain();
}

/* ---- The truth ---- */

static const char *class_of_root(void)
{
	switch (plan.root) {
	case ROOT_COMPUTES:
		return "LongRunning";
	case ROOT_SLEEPS:
	case ROOT_DISK:
		return "LongWait";
	case ROOT_YIELDS:
		return "RepeatedYield";
	case ROOT_PAGES:
		return "Paging";
	case ROOT_HOGGED:
	case ROOT_QUOTA:
		return "Starved";
	default:
		return "Circular";
	}
}

static void say_truth(void)
{
	const struct node *root = &plan.nodes[plan.depth];
	bool hog = plan.root == ROOT_HOGGED;
	printf("truth victim=%s\n", plan.nodes[0].name);
	printf("truth class=%s\n", class_of_root());
	printf("truth root=%s/%s\n", hog && plan.hog_is_process ? "hog" : process_of(root),
	       hog ? "hog" : root->name);
	for (int i = 1; i < plan.knot; i++)
		printf("truth root=%s/knot%d\n", process_of(root), i);
	if (root_function() != NULL)
		printf("truth function=%s\n", root_function());
	if (plan.knot != 0) {
		printf("truth knot=%s", root->name);
		for (int i = 1; i < plan.knot; i++)
			printf(",knot%d", i);
		putchar('\n');
	}
}

/* ---- The turns ---- */

#define REST_US 700
/* By how much the one that should have answered is late where it is given up: it is at it for the
 * whole hang. */
#define OVERRUN_MS 100

static void turn(int ms)
{
	LAB_SLEEP_US(REST_US);
	shared->work_ms = ms;
	node_work(&plan.nodes[0]);
}

static void hang(int ms)
{
	shared->hanging = true;
	shared->work_ms = plan.forgets ? 2 : plan.is_given_up ? ms + OVERRUN_MS : ms;
	node_work(&plan.nodes[0]);
}

static void wait_for_the_watch(void)
{
	char line[16];
	printf("ready %d %p\n", getpid(), (void *)&plan.links[plan.memory_link].words[1]);
	if (fgets(line, sizeof(line), stdin) == NULL)
		lab_exit(1, "nobody watches");
}

static void block_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	sigaddset(&set, SIGRTMIN + 2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "compose");
	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		lab_exit(1, "mmap: %s", strerror(errno));
	draw();
	int noise = lab_choose("noise", 0, 16);
	say_truth();

	block_signals();
	chain_open();
	root_open();
	chain_start();
	noise_start(noise);
	lab_decoys();
	if (plan.memory_link != 0)
		wait_for_the_watch();

	lab_turns(turn);
	lab_hang(hang, plan.hang_ms);
	shared->hanging = false;
	if (plan.is_given_up)
		LAB_SLEEP_US((OVERRUN_MS + 50) * 1000);
	lab_turns(turn);
	return 0;
}
