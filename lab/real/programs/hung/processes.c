/* A process that waits for its child for good, by way of something that both share. `processes
 * PATTERN [PATH]` makes one pattern; the child goes by the name `holder`. Prints the id of what
 * has to be removed, where there is such a thing. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <unistd.h>

struct shared {
	pthread_mutex_t lock;
	sem_t tokens;
};

struct letter {
	long kind;
	int number;
};

static struct shared *shared;
static int id;
static const char *path;

static void for_good(void)
{
	for (;;)
		pause();
}

/* Starts the child, which does `work` and then sleeps; returns when it has done it. */
static void start(void (*work)(void))
{
	int done[2];
	char byte;

	if (pipe(done))
		_exit(2);
	if (!fork()) {
		prctl(PR_SET_NAME, "holder");
		work();
		close(done[0]);
		close(done[1]);
		for_good();
	}
	close(done[1]);
	if (read(done[0], &byte, 1))
		_exit(2);
	close(done[0]);
}

static void print_id(void)
{
	printf("%d\n", id);
	fflush(stdout);
}

static void take_lock(void)
{
	pthread_mutex_lock(&shared->lock);
}

/* The child holds a mutex in shared memory. */
static void mutex(void)
{
	pthread_mutexattr_t kind;

	pthread_mutexattr_init(&kind);
	pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->lock, &kind);
	start(take_lock);
	take_lock();
}

static void take_token(void)
{
	sem_wait(&shared->tokens);
}

/* The child has the only token of a POSIX semaphore. */
static void semaphore(void)
{
	sem_init(&shared->tokens, 1, 1);
	start(take_token);
	take_token();
}

static void decrease(void)
{
	struct sembuf take = {0, -1, SEM_UNDO};

	semop(id, &take, 1);
}

/* The child has the only token of a System V semaphore. */
static void semaphore_set(void)
{
	id = semget(IPC_PRIVATE, 1, 0600);
	print_id();
	semctl(id, 0, SETVAL, 1);
	start(decrease);
	decrease();
}

/* Sends the first part of an answer only. */
static void answer_in_part(void)
{
	struct letter letter;

	msgrcv(id, &letter, sizeof(int), 1, 0);
	letter.kind = 2;
	msgsnd(id, &letter, sizeof(int), 0);
}

/* The child should send the second part of an answer by a System V queue. */
static void messages(void)
{
	struct letter letter = {1, 0};

	id = msgget(IPC_PRIVATE, 0600);
	print_id();
	msgsnd(id, &letter, sizeof(int), 0);
	start(answer_in_part);
	for (int part = 0; part < 2; part++)
		msgrcv(id, &letter, sizeof(int), 2, 0);
}

/* The child that was made by vfork opens a FIFO, which nobody writes, before it executes. */
static void before_exec(void)
{
	if (!vfork()) {
		open(path, O_RDONLY);
		execl("/bin/true", "true", (char *)NULL);
		_exit(2);
	}
}

static void nothing(void)
{
}

/* Waits for the signal that the child has ended. */
static void child_signal(void)
{
	sigset_t ended;

	sigemptyset(&ended);
	sigaddset(&ended, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ended, NULL);
	start(nothing);
	sigwaitinfo(&ended, NULL);
}

int main(int count, char **words)
{
	static const struct {
		const char *name;
		void (*make)(void);
	} patterns[] = {
	    {"mutex", mutex},	    {"semaphore", semaphore}, {"semop", semaphore_set},
	    {"messages", messages}, {"vfork", before_exec},   {"sigchld", child_signal},
	};

	if (count < 2)
		return 2;
	path = words[2];
	shared =
	    mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		if (!strcmp(words[1], patterns[i].name))
			patterns[i].make();
	return 2;
}
