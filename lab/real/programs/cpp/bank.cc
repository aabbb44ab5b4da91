// Accounts in memory that several processes share, with one mutex: `bank FILE NAME` obeys its
// stdin. `book` books an amount; `audit` adds up all accounts until the file FILE.seen is there.
// Tells begin and end of each.
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <pthread.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static const int ACCOUNTS = 1000;

struct Bank {
	pthread_mutex_t mutex;
	int ready;
	long accounts[ACCOUNTS];
};

static long long now_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static Bank *open_bank(const char *path)
{
	int file = open(path, O_RDWR | O_CREAT, 0600);

	if (ftruncate(file, sizeof(Bank)))
		return nullptr;
	void *memory = mmap(nullptr, sizeof(Bank), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	Bank *bank = static_cast<Bank *>(memory);
	close(file);
	if (!bank->ready) {
		pthread_mutexattr_t kind;

		pthread_mutexattr_init(&kind);
		pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
		pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
		pthread_mutex_init(&bank->mutex, &kind);
		bank->ready = 1;
	}
	return bank;
}

__attribute__((noinline)) long add_up_accounts(const Bank *bank, const std::string &seen)
{
	long sum = 0;

	while (access(seen.c_str(), F_OK) != 0)
		for (int round = 0; round < 10000; round++)
			for (int n = 0; n < ACCOUNTS; n++)
				sum = sum * 31 + bank->accounts[n];
	return sum;
}

int main(int, char **arguments)
{
	Bank *bank = open_bank(arguments[1]);
	std::string seen = std::string(arguments[1]) + ".seen";
	volatile long sum = 0;

	prctl(PR_SET_NAME, arguments[2]);
	puts("ready");
	fflush(stdout);
	for (std::string line; std::getline(std::cin, line);) {
		long long begin = now_ns();

		pthread_mutex_lock(&bank->mutex);
		if (line == "audit")
			sum = add_up_accounts(bank, seen);
		else
			bank->accounts[line.size() % ACCOUNTS]++;
		pthread_mutex_unlock(&bank->mutex);
		printf("%lld %lld\n", begin, now_ns());
		fflush(stdout);
	}
	return sum == 1;
}
