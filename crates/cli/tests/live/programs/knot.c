// Two threads that wait for each other's mutex, for good; the main thread joins one of them.
#include <pthread.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_taken;

static void take(pthread_mutex_t *one, pthread_mutex_t *other)
{
	pthread_mutex_lock(one);
	pthread_barrier_wait(&both_taken);
	pthread_mutex_lock(other);
}

static void *take_left(void *nothing)
{
	pthread_setname_np(pthread_self(), "left");
	take(&first, &second);
	return nothing;
}

static void *take_right(void *nothing)
{
	pthread_setname_np(pthread_self(), "right");
	take(&second, &first);
	return nothing;
}

int main(void)
{
	pthread_t left, right;

	pthread_barrier_init(&both_taken, NULL, 2);
	pthread_create(&left, NULL, take_left, NULL);
	pthread_create(&right, NULL, take_right, NULL);
	return pthread_join(left, NULL);
}
