/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Preloaded into OpenSM before libumad2sim: what the kernel does for a sender of management
 * packets, and ibsim does not. A request without an answer is sent again after its time-out, as
 * often as its sender said, and then comes back with the status ETIMEDOUT. Without that OpenSM's
 * sweeper waits for ever for an answer that does not come: ibsim drops every TrapRepress, and
 * OpenSM itself does not answer every Get(SMInfo) that comes in its first sweep. And an answer for
 * which no request waits any more, as the second one to a request that was sent again, is dropped.
 *
 * What ibsim is told to lose it gives back at once, as if all its time were over. With
 * $VHCA_SILENT_LOSS it is lost as on a cable: nothing comes back, and it is sent again.
 *
 * As long as there is a file that $VHCA_NO_KEY_ANSWERS names, the answers to Set(P_KeyTable) are
 * lost on their way back: ibsim itself can only lose requests, and then nothing has changed at the
 * port.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/umad.h>

#define LOOK_MS		     20
#define METHOD_SET	     0x02
#define METHOD_TRAP_REPRESS  0x07
#define METHOD_RESPONSE	     0x80
#define MAD_CLASS	     1 /* offsets */
#define MAD_METHOD	     3
#define MAD_TRANSACTION_LOW  12 /* the upper half has the sender's agent, and ibsim's client */
#define MAD_TRANSACTION_SIZE 4
#define MAD_ATTRIBUTE	     16 /* two bytes */

static const uint8_t p_key_table[] = {0x00, 0x16};

struct request {
	int port, agent, length, timeout, retries;
	uint64_t until;
	TAILQ_ENTRY(request) link;
	ib_user_mad_t umad[]; /* with the packet */
};

static TAILQ_HEAD(, request) requests = TAILQ_HEAD_INITIALIZER(requests);
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int (*next_send)(int port, int agent, void *umad, int length, int timeout, int retries);
static int (*next_recv)(int port, void *umad, int *length, int timeout);

__attribute__((constructor)) static void start(void)
{
	*(void **)&next_send = dlsym(RTLD_NEXT, "umad_send");
	*(void **)&next_recv = dlsym(RTLD_NEXT, "umad_recv");
}

static uint64_t now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static const uint8_t *mad_of(const ib_user_mad_t *umad)
{
	return (const uint8_t *)umad->data;
}

static void remember(int port, int agent, const void *umad, int length, int timeout, int retries)
{
	size_t size = sizeof(ib_user_mad_t) + (size_t)length;
	struct request *r = calloc(1, sizeof(*r) + size);

	if (!r)
		abort();
	*r = (struct request){.port = port,
			      .agent = agent,
			      .length = length,
			      .timeout = timeout,
			      .retries = retries,
			      .until = now_ms() + (uint64_t)timeout};
	(void)memcpy(r->umad, umad, size);
	(void)pthread_mutex_lock(&lock);
	TAILQ_INSERT_TAIL(&requests, r, link);
	(void)pthread_mutex_unlock(&lock);
}

static bool is_same(const struct request *r, const uint8_t *mad)
{
	const uint8_t *sent = mad_of(r->umad);

	return sent[MAD_CLASS] == mad[MAD_CLASS] &&
	       memcmp(sent + MAD_TRANSACTION_LOW, mad + MAD_TRANSACTION_LOW,
		      MAD_TRANSACTION_SIZE) == 0;
}

/* With the lock. NULL: none. */
static struct request *find(const uint8_t *mad)
{
	struct request *r;

	TAILQ_FOREACH (r, &requests, link)
		if (is_same(r, mad))
			break;
	return r;
}

/* False if there is none. */
static bool forget(const uint8_t *mad)
{
	struct request *r;
	bool found;

	(void)pthread_mutex_lock(&lock);
	r = find(mad);
	if (r)
		TAILQ_REMOVE(&requests, r, link);
	(void)pthread_mutex_unlock(&lock);
	found = r != NULL;
	free(r);
	return found;
}

/* One whose time is over: sent again, or taken out. */
static struct request *find_late(int port)
{
	uint64_t now = now_ms();
	struct request *r;

	(void)pthread_mutex_lock(&lock);
	TAILQ_FOREACH (r, &requests, link) {
		if (r->port != port || now < r->until)
			continue;
		if (r->retries <= 0) {
			TAILQ_REMOVE(&requests, r, link);
			break;
		}
		r->retries--;
		r->until = now + (uint64_t)r->timeout;
		(void)next_send(r->port, r->agent, r->umad, r->length, r->timeout, 0);
	}
	(void)pthread_mutex_unlock(&lock);
	return r;
}

static int bring_back(struct request *r, ib_user_mad_t *ret, int *length)
{
	int agent = r->agent;

	if (*length > r->length)
		*length = r->length;
	(void)memcpy(ret, r->umad, sizeof(*ret) + (size_t)*length);
	ret->agent_id = (uint32_t)agent;
	ret->status = ETIMEDOUT;
	free(r);
	return agent;
}

/* A request of our own that could not be sent. */
static bool is_returned(const ib_user_mad_t *umad)
{
	return umad->status != 0;
}

static bool is_answer(const ib_user_mad_t *umad)
{
	uint8_t method = mad_of(umad)[MAD_METHOD];

	return is_returned(umad) || (method & METHOD_RESPONSE) || method == METHOD_TRAP_REPRESS;
}

static bool is_about_set_keys(const uint8_t *mad)
{
	const struct request *r;
	bool is;

	(void)pthread_mutex_lock(&lock);
	r = find(mad);
	is = r && mad_of(r->umad)[MAD_METHOD] == METHOD_SET &&
	     memcmp(mad + MAD_ATTRIBUTE, p_key_table, sizeof(p_key_table)) == 0;
	(void)pthread_mutex_unlock(&lock);
	return is;
}

static bool is_lost(const ib_user_mad_t *umad)
{
	const char *while_it_is_there = getenv("VHCA_NO_KEY_ANSWERS");

	if (is_returned(umad) && getenv("VHCA_SILENT_LOSS"))
		return true;
	return while_it_is_there && !is_returned(umad) && is_about_set_keys(mad_of(umad)) &&
	       access(while_it_is_there, F_OK) == 0;
}

int umad_send(int port, int agent, void *umad, int length, int timeout, int retries)
{
	uint8_t sent[MAD_TRANSACTION_LOW + MAD_TRANSACTION_SIZE];
	int r;

	(void)memcpy(sent, mad_of(umad), sizeof(sent));
	if (timeout > 0) /* first: the answer may be here before that returns */
		remember(port, agent, umad, length, timeout, retries);
	r = next_send(port, agent, umad, length, timeout, retries);
	if (r < 0 && timeout > 0)
		(void)forget(sent);
	return r;
}

int umad_recv(int port, void *umad, int *length, int timeout)
{
	uint64_t end = now_ms() + (uint64_t)(timeout > 0 ? timeout : 0);

	for (;;) {
		int size = *length;
		int r = next_recv(port, umad, &size, timeout == 0 ? 0 : LOOK_MS);
		struct request *late;

		if (r >= 0 && is_lost(umad))
			continue;
		if (r >= 0 && is_answer(umad) && !forget(mad_of(umad)) && !is_returned(umad))
			continue;
		if (r != -ETIMEDOUT) {
			*length = size;
			return r;
		}
		late = find_late(port);
		if (late)
			return bring_back(late, umad, length);
		if (timeout >= 0 && now_ms() >= end)
			return r;
	}
}
