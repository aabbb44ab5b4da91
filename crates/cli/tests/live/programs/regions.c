/* Regions of 10 ms each, named "quick", and among them one of 700 ms named "frame" in which it sleeps and
 * one of 20 ms with that name; then it stays for a while. */
#include "../../../../../mark/hangdog-mark.h"

#include <unistd.h>

static void dawdle(void)
{
	usleep(700000);
}

int main(void)
{
	for (int turn = 0; turn < 10; turn++) {
		hangdog_begin(HANGDOG_NAME("quick"), turn);
		usleep(10000);
		hangdog_end(HANGDOG_NAME("quick"));
	}
	hangdog_begin(HANGDOG_NAME("frame"), 1);
	usleep(20000);
	hangdog_end(HANGDOG_NAME("frame"));
	hangdog_begin(HANGDOG_NAME("frame"), 2);
	dawdle();
	hangdog_end(HANGDOG_NAME("frame"));
	sleep(120);
	return 0;
}
