/*
 * Ways to wait for a thread of the same process: locks that it holds, news that it gives, its end.
 */
#include "compose.h"
#include <linux/futex.h>
#include <sys/syscall.h>

static void open_semaphores(struct link *link)
{
	sem_init(&link->semaphores[0], 0, 0);
	sem_init(&link->semaphores[1], 0, 0);
}

static sem_t *to_server(struct link *link)
{
	return &link->semaphores[0];
}

static sem_t *to_waiter(struct link *link)
{
	return &link->semaphores[1];
}

/* ---- A mutex: others may come before the one that waits, and keep it for microseconds. ---- */

static sem_t passers_may_start[MAX_DEPTH + 1][MAX_HELPERS];

static void mutex_open(struct link *link)
{
	open_semaphores(link);
	pthread_mutex_init(&link->lock, NULL);
	for (int i = 0; i < link->helpers; i++)
		sem_init(&passers_may_start[link->index][i], 0, 0);
}

struct passer {
	struct link *link;
	sem_t *may_start;
};

static void *pass_through(void *arg)
{
	struct passer *passer = arg;
	for (;;) {
		sem_wait(passer->may_start);
		pthread_mutex_lock(&passer->link->lock);
		LAB_COMPUTE_US(50);
		pthread_mutex_unlock(&passer->link->lock);
	}
	return NULL;
}

static void mutex_start_helpers(struct link *link)
{
	for (int i = 0; i < link->helpers; i++) {
		struct passer *passer = malloc(sizeof(*passer));
		if (passer == NULL)
			lab_exit(1, "out of memory");
		*passer = (struct passer){link, &passers_may_start[link->index][i]};
		lab_thread(pass_through, passer, "passer%d.%d", link->index, i + 1);
	}
}

static void mutex_request(struct link *link)
{
	sem_post(to_server(link));
	sem_wait(to_waiter(link));
	for (int i = 0; i < link->helpers; i++) {
		sem_post(&passers_may_start[link->index][i]);
		LAB_SLEEP_US(150);
	}
}

static bool mutex_await(struct link *link, uint64_t until_ns)
{
	struct timespec end = lab_timespec(until_ns);
	if (until_ns == 0)
		pthread_mutex_lock(&link->lock);
	else if (pthread_mutex_clocklock(&link->lock, CLOCK_MONOTONIC, &end) != 0)
		return false;
	pthread_mutex_unlock(&link->lock);
	return true;
}

static void mutex_accept(struct link *link)
{
	sem_wait(to_server(link));
	pthread_mutex_lock(&link->lock);
	sem_post(to_waiter(link));
}

static void mutex_answer(struct link *link)
{
	pthread_mutex_unlock(&link->lock);
}

const struct link_kind mutex_link = {
    .name = "mutex",
    .timed = true,
    .open = mutex_open,
    .request = mutex_request,
    .await = mutex_await,
    .accept = mutex_accept,
    .answer = mutex_answer,
    .start_helpers = mutex_start_helpers,
};

/* ---- A lock of readers and writers; `variant`: the one that waits is the writer. ---- */

static void rwlock_open(struct link *link)
{
	open_semaphores(link);
	pthread_rwlock_init(&link->rwlock, NULL);
}

static void rwlock_request(struct link *link)
{
	sem_post(to_server(link));
	sem_wait(to_waiter(link));
}

static bool rwlock_await(struct link *link, uint64_t until_ns)
{
	struct timespec end = lab_timespec(until_ns);
	int error;
	if (until_ns == 0)
		error = link->variant ? pthread_rwlock_wrlock(&link->rwlock)
				      : pthread_rwlock_rdlock(&link->rwlock);
	else
		error = link->variant
			    ? pthread_rwlock_clockwrlock(&link->rwlock, CLOCK_MONOTONIC, &end)
			    : pthread_rwlock_clockrdlock(&link->rwlock, CLOCK_MONOTONIC, &end);
	if (error != 0)
		return false;
	pthread_rwlock_unlock(&link->rwlock);
	return true;
}

static void rwlock_accept(struct link *link)
{
	sem_wait(to_server(link));
	if (link->variant)
		pthread_rwlock_rdlock(&link->rwlock);
	else
		pthread_rwlock_wrlock(&link->rwlock);
	sem_post(to_waiter(link));
}

static void rwlock_answer(struct link *link)
{
	pthread_rwlock_unlock(&link->rwlock);
}

const struct link_kind rwlock_link = {
    .name = "rwlock",
    .timed = true,
    .open = rwlock_open,
    .request = rwlock_request,
    .await = rwlock_await,
    .accept = rwlock_accept,
    .answer = rwlock_answer,
};

/* ---- A condition variable. `late_news`: who changes the state leaves it to the ticker to say so,
 * so that the wake comes from somebody who has nothing to do with it. ---- */

enum { IDLE, ASKED, ANSWERED };

static void condition_open(struct link *link)
{
	pthread_mutex_init(&link->lock, NULL);
	pthread_cond_init(&link->changed, NULL);
}

static void condition_set(struct link *link, int state, bool silently)
{
	pthread_mutex_lock(&link->lock);
	link->state = state;
	if (!silently)
		pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
}

static bool condition_wait(struct link *link, int state, uint64_t until_ns)
{
	struct timespec end = lab_timespec(until_ns);
	int error = 0;
	pthread_mutex_lock(&link->lock);
	while (link->state != state && error == 0)
		error = until_ns == 0 ? pthread_cond_wait(&link->changed, &link->lock)
				      : pthread_cond_clockwait(&link->changed, &link->lock,
							       CLOCK_MONOTONIC, &end);
	bool reached = link->state == state;
	if (reached)
		link->state = IDLE;
	pthread_mutex_unlock(&link->lock);
	return reached;
}

static void condition_request(struct link *link)
{
	condition_set(link, ASKED, false);
}

static bool condition_await(struct link *link, uint64_t until_ns)
{
	return condition_wait(link, ANSWERED, until_ns);
}

static void condition_accept(struct link *link)
{
	condition_wait(link, ASKED, 0);
}

static void condition_answer(struct link *link)
{
	condition_set(link, ANSWERED, link->late_news);
}

static void condition_tickle(struct link *link)
{
	pthread_mutex_lock(&link->lock);
	pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
}

const struct link_kind condition_link = {
    .name = "condition",
    .timed = true,
    .forgettable = true,
    .open = condition_open,
    .request = condition_request,
    .await = condition_await,
    .accept = condition_accept,
    .answer = condition_answer,
    .tickle = condition_tickle,
};

/* ---- A semaphore ---- */

static void semaphore_request(struct link *link)
{
	sem_post(to_server(link));
}

static bool semaphore_await(struct link *link, uint64_t until_ns)
{
	struct timespec end = lab_timespec(until_ns);
	if (until_ns != 0)
		return sem_clockwait(to_waiter(link), CLOCK_MONOTONIC, &end) == 0;
	sem_wait(to_waiter(link));
	return true;
}

static void semaphore_accept(struct link *link)
{
	sem_wait(to_server(link));
}

static void semaphore_answer(struct link *link)
{
	sem_post(to_waiter(link));
}

const struct link_kind semaphore_link = {
    .name = "semaphore",
    .timed = true,
    .forgettable = true,
    .open = open_semaphores,
    .request = semaphore_request,
    .await = semaphore_await,
    .accept = semaphore_accept,
    .answer = semaphore_answer,
};

/* ---- A futex, without a library ---- */

static void open_nothing(struct link *link)
{
	(void)link;
}

static void wake_word(atomic_uint *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void set_word(atomic_uint *word)
{
	atomic_store(word, 1);
	wake_word(word);
}

static bool wait_for_word(atomic_uint *word, uint64_t until_ns)
{
	struct timespec end = lab_timespec(until_ns);
	while (atomic_exchange(word, 0) == 0)
		if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, 0, until_ns ? &end : NULL,
			    NULL, FUTEX_BITSET_MATCH_ANY) != 0 &&
		    errno == ETIMEDOUT)
			return false;
	return true;
}

static void futex_request(struct link *link)
{
	set_word(&link->words[0]);
}

static bool futex_await(struct link *link, uint64_t until_ns)
{
	return wait_for_word(&link->words[1], until_ns);
}

static void futex_accept(struct link *link)
{
	wait_for_word(&link->words[0], 0);
}

static void futex_answer(struct link *link)
{
	set_word(&link->words[1]);
}

static void futex_tickle(struct link *link)
{
	wake_word(&link->words[1]);
}

const struct link_kind futex_link = {
    .name = "futex",
    .timed = true,
    .forgettable = true,
    .open = open_nothing,
    .request = futex_request,
    .await = futex_await,
    .accept = futex_accept,
    .answer = futex_answer,
    .tickle = futex_tickle,
};

/* ---- The end of a thread that was made for this turn ---- */

static void *work_once(void *node)
{
	node_work(node);
	return NULL;
}

static void join_request(struct link *link)
{
	struct lab_start *start = malloc(sizeof(*start));
	if (start == NULL)
		lab_exit(1, "out of memory");
	*start = (struct lab_start){.body = work_once, .arg = link->server};
	memcpy(start->name, link->server->name, sizeof(start->name));
	int error = pthread_create(&link->thread, NULL, lab_named_thread, start);
	if (error != 0)
		lab_exit(1, "pthread_create: %s", strerror(error));
}

static bool join_await(struct link *link, uint64_t until_ns)
{
	(void)until_ns;
	pthread_join(link->thread, NULL);
	return true;
}

const struct link_kind join_link = {
    .name = "join",
    .open = open_nothing,
    .request = join_request,
    .await = join_await,
};

/* ---- A signal, taken by sigwait. All threads block these two. ---- */

static void signal_request(struct link *link)
{
	atomic_store(&link->waiter_tid, (int)syscall(SYS_gettid));
	sem_post(to_server(link));
}

static bool signal_await(struct link *link, uint64_t until_ns)
{
	(void)link;
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 1);
	sigaddset(&set, SIGRTMIN + 2);
	for (int number = 0; number != SIGRTMIN + 1;) {
		if (until_ns == 0) {
			sigwait(&set, &number);
			continue;
		}
		uint64_t now = lab_now_ns();
		struct timespec rest = lab_timespec(until_ns > now ? until_ns - now : 0);
		number = sigtimedwait(&set, NULL, &rest);
		if (number < 0 && errno == EAGAIN)
			return false;
	}
	return true;
}

static void signal_accept(struct link *link)
{
	sem_wait(to_server(link));
}

static void signal_answer(struct link *link)
{
	LAB_TRY(syscall(SYS_tgkill, getpid(), atomic_load(&link->waiter_tid), SIGRTMIN + 1));
}

/* The thread may be gone: then nobody is woken. */
static void signal_tickle(struct link *link)
{
	int tid = atomic_load(&link->waiter_tid);
	if (tid != 0)
		syscall(SYS_tgkill, getpid(), tid, SIGRTMIN + 2);
}

const struct link_kind signal_link = {
    .name = "signal",
    .timed = true,
    .forgettable = true,
    .open = open_semaphores,
    .request = signal_request,
    .await = signal_await,
    .accept = signal_accept,
    .answer = signal_answer,
    .tickle = signal_tickle,
};
