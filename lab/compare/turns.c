/*
 * A worker takes turns: it waits for a byte, works, replies. One turn in four, chosen by the seed,
 * is slow for one planted reason, which the first argument names; without it ("none") all turns are
 * alike.
 *
 *     turns CASE SEED [DIRECTORY]
 *
 * Exit code 77 means that the machine does not allow what the case needs.
 */
#include "../programs/cgroup.h"
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define TURNS 160
#define GAP_US 3000
#define LARGE (64UL << 20)
#define SMALL (64UL << 10)
#define PAGE 4096UL
#define MAPPED (4UL << 20)

/* What the other processes of the case look at. */
static volatile struct {
	int slow; /* a slow turn is on */
	int done;
} * shared;

static char *buffer;
static const char *directory = ".";
static int file = -1;

static void pin(int cpu)
{
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	LAB_TRY(sched_setaffinity(0, sizeof(cpus), &cpus));
}

/* So that other work on the machine is not what makes turns slow: real-time, above all that is not.
 */
static void outrank(int priority)
{
	struct sched_param param = {.sched_priority = priority};
	if (sched_setscheduler(0, SCHED_FIFO, &param) != 0)
		lab_exit(LAB_CANNOT_RUN, "no real-time priority: %s", strerror(errno));
}

LAB_NAMED void compute(long rounds)
{
	volatile unsigned long sum = 0;
	for (long i = 0; i < rounds; i++)
		sum += (unsigned long)i * 2654435761UL;
}

static void usual_work(void)
{
	compute(400000);
}

/* ---- Memory: as many reads, of what fits the cache or does not ---- */

LAB_NAMED unsigned long walk(const char *from, unsigned long size)
{
	unsigned long sum = 0, at = 1;
	for (int i = 0; i < 100000; i++) {
		at = at * 6364136223846793005UL + 1442695040888963407UL;
		at += sum & 1; /* the next read waits for this one */
		sum += (unsigned char)from[(at >> 20) & (size - 1)];
	}
	return sum;
}

static void memory(bool slow)
{
	walk(buffer, slow ? LARGE : SMALL);
}

/* As many reads, one of each page, of few pages or of more than the TLB holds. */
LAB_NAMED unsigned long stride(const char *from, unsigned long pages)
{
	unsigned long sum = 0;
	for (unsigned long i = 0; i < 200000; i++) {
		unsigned long page = i * 7919 & (pages - 1);
		sum += (unsigned char)from[page * PAGE + (page * 64 & (PAGE - 1)) + (sum & 1)];
	}
	return sum;
}

static void tlb(bool slow)
{
	stride(buffer, slow ? LARGE / PAGE : 16);
}

/* ---- A convoy at a lock ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t taken;

static void *holder(void *unused)
{
	prctl(PR_SET_NAME, "holder");
	for (;;) {
		pthread_barrier_wait(&taken);
		pthread_mutex_lock(&lock);
		pthread_barrier_wait(&taken);
		compute(2000000);
		pthread_mutex_unlock(&lock);
	}
	return unused;
}

static void convoy(bool slow)
{
	if (slow) {
		pthread_barrier_wait(&taken);
		pthread_barrier_wait(&taken);
	}
	pthread_mutex_lock(&lock);
	usual_work();
	pthread_mutex_unlock(&lock);
}

/* ---- Others on the machine ---- */

static void hog(void)
{
	prctl(PR_SET_NAME, "hog");
	outrank(2);
	pin(0);
	while (!shared->done) {
		if (shared->slow)
			compute(5000000);
		LAB_SLEEP_US(300);
	}
	_exit(0);
}

#define TIMERS 8
#define TIMER_NS 20000

/* Timers of the kernel that fire on the worker's CPU: those of sampling events that nobody reads.
 */
static void timers(void)
{
	int events[TIMERS];

	prctl(PR_SET_NAME, "timers");
	pin(1);
	for (int i = 0; i < TIMERS; i++) {
		struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE,
						.size = sizeof(event),
						.config = PERF_COUNT_SW_CPU_CLOCK,
						.sample_period = TIMER_NS,
						.disabled = 1};
		events[i] = (int)syscall(SYS_perf_event_open, &event, -1, 0, -1, 0);
		if (events[i] < 0)
			_exit(0);
	}
	for (bool on = false; !shared->done;) {
		bool slow = shared->slow;
		for (int i = 0; i < TIMERS && slow != on; i++)
			ioctl(events[i], slow ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
		on = slow;
		LAB_SLEEP_US(100);
	}
	_exit(0);
}

static void alongside(void (*other)(void))
{
	if (LAB_TRY(fork()) == 0)
		other();
}

static void with_usual_work(bool slow)
{
	(void)slow;
	compute(6000000);
}

static void migrate(bool slow)
{
	for (int i = 0; i < 40; i++) {
		if (slow)
			pin(i & 1);
		compute(10000);
	}
}

/* ---- Memory that is not there yet ---- */

LAB_NAMED void touch(char *from, unsigned long size)
{
	for (unsigned long at = 0; at < size; at += PAGE)
		from[at]++;
}

static void faults(bool slow)
{
	const unsigned long size = 12UL << 20;
	char *fresh = buffer;

	usual_work();
	if (slow) {
		fresh =
		    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(fresh, size, MADV_NOHUGEPAGE);
	}
	touch(fresh, size);
	if (slow)
		munmap(fresh, size);
}

LAB_NAMED void grow(size_t items)
{
	size_t room = 1024, count = 0;
	long *list = malloc(room * sizeof(*list));
	for (size_t i = 0; i < items; i++) {
		if (count == room) {
			room *= 2;
			list = realloc(list, room * sizeof(*list));
		}
		list[count++] = (long)i;
	}
	__asm__ volatile("" : : "r"(list) : "memory");
	free(list);
}

static void allocator(bool slow)
{
	/* The same items: in many lists that fit, or in one that grows and grows. */
	const size_t items = 1 << 22;
	const size_t each = slow ? items : 1024;
	for (size_t done = 0; done < items; done += each)
		grow(each);
}

/* ---- Devices and limits ---- */

static void save(bool slow)
{
	usual_work();
	LAB_TRY(pwrite(file, buffer, slow ? MAPPED : SMALL, 0));
	if (slow)
		LAB_TRY(fsync(file));
}

LAB_NAMED unsigned long read_pages(const char *from, unsigned long size)
{
	unsigned long sum = 0;
	for (unsigned long at = 0; at < size; at += PAGE)
		sum += (unsigned char)from[at];
	return sum;
}

static const char *mapped;

static void paging(bool slow)
{
	usual_work();
	(void)slow; /* whoever asks has dropped the pages */
	read_pages(mapped, MAPPED);
	/* So that whoever asks can drop them. */
	madvise((void *)mapped, MAPPED, MADV_DONTNEED);
}

static void drop_pages(bool slow)
{
	if (slow)
		posix_fadvise(file, 0, MAPPED, POSIX_FADV_DONTNEED);
}

static void quota(bool slow)
{
	(void)slow; /* whoever asks has set the quota */
	compute(12000000);
}

/* By whichever version of cgroups there is. */
static void set_quota(bool slow)
{
	if (!cgroup_write(cgroup, "cpu.cfs_quota_us", "%d", slow ? 2000 : -1) &&
	    !cgroup_write(cgroup, "cpu.max", "%s 50000", slow ? "2000" : "max"))
		lab_exit(1, "cannot set the quota: %s", strerror(errno));
}

static void message_of(int fd)
{
	char byte;
	prctl(PR_SET_NAME, "helper");
	while (read(fd, &byte, 1) == 1) {
		compute(byte == 's' ? 2000000 : 20000);
		if (write(fd, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static int helper[2];

static void message(bool slow)
{
	char byte = slow ? 's' : 'f';
	usual_work();
	LAB_TRY(write(helper[0], &byte, 1));
	LAB_TRY(read(helper[0], &byte, 1));
}

/* ---- The cases ---- */

static void prepare_file(unsigned long size)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/turns-%d", directory, getpid());
	file = LAB_TRY(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
	unlink(path);
	for (unsigned long at = 0; at < size; at += SMALL)
		LAB_TRY(pwrite(file, buffer, SMALL, (off_t)at));
	LAB_TRY(fsync(file));
}

static void prepare_convoy(void)
{
	pthread_t thread;
	pthread_barrier_init(&taken, NULL, 2);
	pthread_create(&thread, NULL, holder, NULL);
}

static void prepare_hog(void)
{
	pin(0);
	alongside(hog);
}

static void prepare_timers(void)
{
	pin(0);
	alongside(timers);
}

static void prepare_save(void)
{
	prepare_file(MAPPED);
}

static void prepare_paging(void)
{
	prepare_file(MAPPED);
	mapped = mmap(NULL, MAPPED, PROT_READ, MAP_SHARED, file, 0);
	madvise((void *)mapped, MAPPED, MADV_RANDOM);
}

static void prepare_quota(void)
{
	if (!cgroup_make(2000, 50000))
		lab_exit(LAB_CANNOT_RUN, "no cgroup with a CPU quota can be made");
	/* So that other work on the machine is not what makes turns slow. */
	if (!cgroup_write(cgroup, "cpu.shares", "%d", 262144))
		cgroup_write(cgroup, "cpu.weight", "%d", 10000);
	cgroup_leave_janitor();
}

static void prepare_message(void)
{
	LAB_TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, helper));
	if (LAB_TRY(fork()) == 0) {
		close(helper[0]);
		message_of(helper[1]);
	}
	close(helper[1]);
}

static void none(bool slow)
{
	(void)slow;
	compute(800000);
}

static const struct {
	const char *name;
	void (*prepare)(void); /* in the worker's process, before it is made */
	void (*work)(bool slow);
	void (*ask)(bool slow); /* before a turn, by whoever asks for it */
} cases[] = {
    {"none", NULL, none, NULL},
    {"memory", NULL, memory, NULL},
    {"tlb", NULL, tlb, NULL},
    {"convoy", prepare_convoy, convoy, NULL},
    {"interrupts", prepare_timers, with_usual_work, NULL},
    {"neighbour", prepare_hog, with_usual_work, NULL},
    {"migration", NULL, migrate, NULL},
    {"faults", NULL, faults, NULL},
    {"allocator", NULL, allocator, NULL},
    {"fsync", prepare_save, save, NULL},
    {"paging", prepare_paging, paging, drop_pages},
    {"quota", prepare_quota, quota, set_quota},
    {"message", prepare_message, message, NULL},
};

int main(int argc, char **argv)
{
	int ask[2], reply[2];
	size_t at = 0;

	if (argc < 3)
		lab_exit(2, "usage: turns CASE SEED [DIRECTORY]");
	while (at < LAB_COUNT(cases) && strcmp(cases[at].name, argv[1]) != 0)
		at++;
	if (at == LAB_COUNT(cases))
		lab_exit(2, "there is no case %s", argv[1]);
	if (argc > 3)
		directory = argv[3];
	signal(SIGPIPE, SIG_IGN);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	buffer =
	    mmap(NULL, LARGE + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(buffer, LARGE + PAGE, MADV_NOHUGEPAGE);
	memset(buffer, 1, LARGE + PAGE);
	/* The group of a quota is made by whoever moves the worker into it; so is the file. */
	if (cases[at].ask != NULL)
		cases[at].prepare();
	/* Only now: nobody else may keep them open. */
	LAB_TRY(pipe(ask));
	LAB_TRY(pipe(reply));
	int worker = LAB_TRY(fork());
	if (worker == 0) {
		prctl(PR_SET_NAME, "worker");
		/* A quota holds only for who is not real-time. */
		if (cases[at].work == quota)
			cgroup_move_to(cgroup);
		else
			outrank(1);
		close(ask[1]);
		close(reply[0]);
		if (cases[at].ask == NULL && cases[at].prepare != NULL)
			cases[at].prepare();
		/* So that memory that fork shares is the worker's own. */
		touch(buffer, LARGE + PAGE);
		for (char byte; read(ask[0], &byte, 1) == 1;) {
			shared->slow = byte == 's';
			cases[at].work(byte == 's');
			shared->slow = 0;
			LAB_TRY(write(reply[1], &byte, 1));
		}
		shared->done = 1;
		_exit(0);
	}
	close(ask[0]);
	close(reply[1]);
	unsigned int dice = (unsigned int)atoi(argv[2]) * 7919 + 1;
	for (int turn = 0; turn < TURNS; turn++) {
		bool slow = rand_r(&dice) % 4 == 0;
		char byte = slow ? 's' : 'f';
		if (cases[at].ask != NULL)
			cases[at].ask(slow);
		LAB_SLEEP_US(GAP_US);
		LAB_TRY(write(ask[1], &byte, 1));
		if (read(reply[0], &byte, 1) != 1)
			lab_exit(1, "the worker is gone");
	}
	close(ask[1]);
	waitpid(worker, NULL, 0);
	return 0;
}
