// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The least that forwarding tables can take: bench_lft WINDOW, for bench_vswitch.py. Reads numbers,
 * a line each, and answers each with the us in which so many LFT SMPs went to the next switch and
 * came back, WINDOW on their way at a time as OpenSM has it (max_wire_smps), by a loop that does
 * nothing else. Each writes the block that the switch has already.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/umad.h>

#define MAD_SIZE   256
#define DIRECTED   0x81
#define GET	   1
#define SET	   2
#define LFT	   0x19
#define DATA	   64
#define DATA_SIZE  64
#define PATH	   128
#define TIMEOUT_MS 1000
#define WINDOW_MAX 64
#define NUMBER_MAX 100000
#define PERMISSIVE 0xffff

static int port, agent;
static uint8_t transaction;

/* To the switch behind the port: one hop, by port 1. */
static void fill(uint8_t *mad, uint8_t method)
{
	mad[0] = 1;
	mad[1] = DIRECTED;
	mad[2] = 1;
	mad[3] = method;
	mad[7] = 1;
	mad[17] = LFT;
	(void)memset(mad + 32, 0xff, 4);
	mad[PATH + 1] = 1;
}

static int send_one(void *umad)
{
	((uint8_t *)umad_get_mad(umad))[15] = ++transaction; /* none twice on its way */
	(void)umad_set_addr(umad, PERMISSIVE, 0, 0, 0);
	return umad_send(port, agent, umad, MAD_SIZE, TIMEOUT_MS, 0);
}

static int receive(void *umad)
{
	int len = MAD_SIZE;

	return umad_recv(port, umad, &len, TIMEOUT_MS) < 0 || umad_status(umad) != 0 ? -1 : 0;
}

static int read_block(uint8_t *ret)
{
	void *umad = umad_alloc(1, umad_size() + MAD_SIZE);
	int r = -1;

	if (!umad)
		return -1;
	fill(umad_get_mad(umad), GET);
	if (send_one(umad) == 0 && receive(umad) == 0) {
		(void)memcpy(ret, (uint8_t *)umad_get_mad(umad) + DATA, DATA_SIZE);
		r = 0;
	}
	umad_free(umad);
	return r;
}

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int write_blocks(void *out, void *in, unsigned int n, unsigned int window)
{
	unsigned int sent = 0, received = 0;

	while (received < n) {
		for (; sent < n && sent - received < window; sent++)
			if (send_one(out) < 0)
				return -1;
		if (receive(in) < 0)
			return -1;
		received++;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int window = argc == 2 ? (unsigned int)atoi(argv[1]) : 0, n;
	uint8_t *out, *in;

	if (window < 1 || window > WINDOW_MAX || umad_init() < 0)
		return 2;
	port = umad_open_port(NULL, 0);
	agent = port < 0 ? -1 : umad_register(port, DIRECTED, 1, 0, NULL);
	out = umad_alloc(1, umad_size() + MAD_SIZE);
	in = umad_alloc(1, umad_size() + MAD_SIZE);
	if (agent < 0 || !out || !in)
		return 1;
	fill(umad_get_mad(out), SET);
	if (read_block((uint8_t *)umad_get_mad(out) + DATA) < 0)
		return 1;
	while (scanf("%u", &n) == 1 && n <= NUMBER_MAX) {
		int64_t start = now_us();

		if (write_blocks(out, in, n, window) < 0)
			return 1;
		(void)printf("%lld\n", (long long)(now_us() - start));
		(void)fflush(stdout);
	}
	umad_free(out);
	umad_free(in);
	return 0;
}
