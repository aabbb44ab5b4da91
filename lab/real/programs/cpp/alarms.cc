// Alarms go through a POSIX message queue: `alarms QUEUE send` sends one for each line of its stdin
// and tells begin and end; `alarms QUEUE handle RULES` handles them. At the alarm "rules" it
// computes all rules anew until the file RULES is there.
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <mqueue.h>
#include <string>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static const int LONGEST = 64;

static long long now_ns()
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

__attribute__((noinline)) unsigned compute_rules(const char *path)
{
	unsigned rules = 1;

	while (access(path, F_OK) != 0)
		for (int n = 0; n < 1000000; n++)
			rules = rules * 1664525 + 1013904223;
	return rules;
}

static int handle(mqd_t queue, const char *rules)
{
	char text[LONGEST + 1] = "";
	volatile unsigned computed = 0;

	prctl(PR_SET_NAME, "alarm_handler");
	puts("ready");
	fflush(stdout);
	while (mq_receive(queue, text, LONGEST, nullptr) >= 0) {
		if (strncmp(text, "rules", 5) == 0)
			computed = compute_rules(rules);
		memset(text, 0, sizeof(text));
	}
	return computed == 1;
}

static int send(mqd_t queue)
{
	prctl(PR_SET_NAME, "alarm_sender");
	puts("ready");
	fflush(stdout);
	for (std::string line; std::getline(std::cin, line);) {
		long long begin = now_ns();

		for (int n = line == "many" ? 12 : 1; n > 0; n--)
			mq_send(queue, line.c_str(), line.size(), 0);
		printf("%lld %lld\n", begin, now_ns());
		fflush(stdout);
	}
	return 0;
}

int main(int count, char **arguments)
{
	mq_attr size = {};

	size.mq_maxmsg = 8;
	size.mq_msgsize = LONGEST;
	mqd_t queue = mq_open(arguments[1], O_RDWR | O_CREAT, 0600, &size);
	if (queue < 0) {
		perror(arguments[1]);
		return 1;
	}
	return count > 3 ? handle(queue, arguments[3]) : send(queue);
}
