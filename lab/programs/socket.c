/*
 * A request over a unix socket to a server process, which asks a third process over another
 * socket. The third is slow.
 */
#include "lab.h"

static enum lab_ending ending;
static int client_end, server_front_end, server_back_end, backend_end;

LAB_NAMED void slow_query(int ms)
{
	LAB_COMPUTE_US(ms * 1000);
}

LAB_NAMED void sleepy_query(int ms)
{
	LAB_SLEEP_US(ms * UINT64_C(1000));
}

LAB_NAMED void ask_and_wait(int socket, int ms)
{
	LAB_TRY(send(socket, &ms, sizeof(ms), MSG_NOSIGNAL));
	LAB_TRY(recv(socket, &ms, sizeof(ms), 0));
}

static void *serve_backend(void *unused)
{
	(void)unused;
	for (int ms; recv(backend_end, &ms, sizeof(ms), 0) == sizeof(ms);) {
		if (ending == LAB_COMPUTES)
			slow_query(ms);
		else
			sleepy_query(ms);
		LAB_TRY(send(backend_end, &ms, sizeof(ms), MSG_NOSIGNAL));
	}
	return NULL;
}

static void *serve_front(void *unused)
{
	(void)unused;
	for (int ms; recv(server_front_end, &ms, sizeof(ms), 0) == sizeof(ms);) {
		ask_and_wait(server_back_end, ms);
		LAB_TRY(send(server_front_end, &ms, sizeof(ms), MSG_NOSIGNAL));
	}
	return NULL;
}

static void turn(int ms)
{
	ask_and_wait(client_end, ms);
}

static void connect_ends(int type, int *one, int *other)
{
	int ends[2];
	LAB_TRY(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends));
	*one = ends[0];
	*other = ends[1];
}

int main(int argc, char **argv)
{
	static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};
	lab_begin(argc, argv, "socket");
	int hang_ms = lab_hang_ms();
	ending = lab_ending();
	int type = types[LAB_PICK("type", "stream", "seqpacket", "dgram")];
	connect_ends(type, &client_end, &server_front_end);
	connect_ends(type, &server_back_end, &backend_end);
	lab_process(serve_backend, NULL, "backend");
	lab_process(serve_front, NULL, "server");
	lab_decoys();

	lab_turns(turn);
	lab_hang(turn, hang_ms);
	lab_turns(turn);
	return 0;
}
