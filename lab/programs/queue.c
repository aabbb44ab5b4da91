/*
 * A computation behind a queue: the main thread queues a job and waits; one of a pool of workers
 * takes it and computes, the others stay idle.
 */
#include "lab.h"

#define MAX_WORKERS 8

static struct lab_monitor jobs = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
static struct lab_monitor results = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
static int job_ms; /* 0: the queue is empty */
static int result; /* the worker that did it; 0: not done yet */

LAB_NAMED void expensive_job(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

LAB_NAMED int take_job(void)
{
	pthread_mutex_lock(&jobs.lock);
	while (job_ms == 0)
		pthread_cond_wait(&jobs.changed, &jobs.lock);
	int ms = job_ms;
	job_ms = 0;
	pthread_mutex_unlock(&jobs.lock);
	return ms;
}

static void *serve_jobs(void *arg)
{
	for (;;) {
		expensive_job(take_job());
		pthread_mutex_lock(&results.lock);
		result = (int)(intptr_t)arg;
		pthread_cond_signal(&results.changed);
		pthread_mutex_unlock(&results.lock);
	}
	return NULL;
}

LAB_NAMED int wait_for_result(void)
{
	pthread_mutex_lock(&results.lock);
	while (result == 0)
		pthread_cond_wait(&results.changed, &results.lock);
	int worker = result;
	result = 0;
	pthread_mutex_unlock(&results.lock);
	return worker;
}

static int last_worker;

static void turn(int ms)
{
	pthread_mutex_lock(&jobs.lock);
	job_ms = ms;
	pthread_cond_signal(&jobs.changed);
	pthread_mutex_unlock(&jobs.lock);
	last_worker = wait_for_result();
}

int main(int argc, char **argv)
{
	lab_begin(argc, argv, "queue");
	int hang_ms = lab_hang_ms();
	int workers = lab_choose("workers", 2, 3);
	if (workers < 1 || workers > MAX_WORKERS)
		lab_exit(2, "workers are 1 to %d", MAX_WORKERS);
	for (intptr_t i = 1; i <= workers; i++)
		lab_thread(serve_jobs, (void *)i, "worker%d", (int)i);
	lab_spurious_wakes(&results);
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	printf("param worker=%d\n", last_worker);
	lab_turns(turn);
	return 0;
}
