/*
 * The nodes of the chain: who lives in which process, and how a request goes down and an answer
 * comes back.
 */
#include "compose.h"

struct plan plan;
struct shared *shared;

const struct link_kind *const link_kinds[] = {
    &mutex_link,	 &rwlock_link,	  &condition_link, &semaphore_link,
    &join_link,		 &futex_link,	  &pipe_link,	   &unix_stream_link,
    &unix_datagram_link, &tcp_link,	  &eventfd_link,   &child_link,
    &signal_link,	 &pipe_full_link, &flock_link,	   &batch_link,
};
const size_t link_kind_count = LAB_COUNT(link_kinds);

const char *process_of(const struct node *node)
{
	return plan.nodes[node->process].name;
}

/* One that gives up gives up after the length of the hang: ordinary turns are far from that. */
static void ask(struct link *link)
{
	if (link->unanswered)
		link->kind->await(link, 0);
	link->kind->request(link);
	uint64_t until = link->gives_up ? lab_now_ns() + (uint64_t)plan.hang_ms * 1000000 : 0;
	link->unanswered = !link->kind->await(link, until) && !plan.forgets;
}

void node_work(struct node *node)
{
	if (node->out != NULL)
		ask(node->out);
	else
		root_work();
}

void *node_serve(void *arg)
{
	struct node *node = arg;
	for (;;) {
		node->in->kind->accept(node->in);
		bool forgets = node->out == NULL && plan.forgets && shared->hanging;
		node_work(node);
		if (!forgets)
			node->in->kind->answer(node->in);
	}
	return NULL;
}

static void *tickle(void *arg)
{
	struct link *link = arg;
	for (;;) {
		LAB_SLEEP_US(5000 + 300 * link->index);
		link->kind->tickle(link);
	}
	return NULL;
}

/* Starts what belongs to the process whose main thread is this node's. */
static void start_threads(int process)
{
	for (int i = 0; i <= plan.depth; i++) {
		struct node *node = &plan.nodes[i];
		if (node->process != process)
			continue;
		if (i != process && !node->transient)
			lab_thread(node_serve, node, "%s", node->name);
		if (i == plan.depth)
			root_start_helpers();
		struct link *link = node->out;
		if (link == NULL)
			continue;
		if (link->kind->start_helpers != NULL)
			link->kind->start_helpers(link);
		if (link->tickled)
			lab_thread(tickle, link, "ticker%d", link->index);
	}
}

static void *process_main(void *arg)
{
	struct node *node = arg;
	start_threads(node->index);
	return node_serve(node);
}

void chain_open(void)
{
	for (int i = 1; i <= plan.depth; i++)
		plan.links[i].kind->open(&plan.links[i]);
}

/* Processes first: what forks has a single thread. */
void chain_start(void)
{
	for (int i = 1; i <= plan.depth; i++) {
		struct node *node = &plan.nodes[i];
		if (node->process == i && !node->transient)
			lab_process(process_main, node, "%s", node->name);
	}
	start_threads(0);
}
