// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/http/door.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/http/server_private.h"

#define TELL_MS 60000

const char *const vhca_http_end_names[VHCA_HTTP_ENDS] = {
	[VHCA_HTTP_END_HANDSHAKE] = "handshake", [VHCA_HTTP_END_HEAD] = "head",
	[VHCA_HTTP_END_BODY] = "body",		 [VHCA_HTTP_END_ANSWER] = "answer",
	[VHCA_HTTP_END_IDLE] = "idle",		 [VHCA_HTTP_END_SOURCE] = "source",
	[VHCA_HTTP_END_STRANGERS] = "strangers", [VHCA_HTTP_END_CROWD] = "crowd",
};

/* ---- where connections are from ---- */

static unsigned int bucket_of(const struct vhca_http_source_key *key)
{
	uint32_t hash = 2166136261U ^ key->kind;

	for (size_t i = 0; i < sizeof(key->value); i++)
		hash = (hash ^ key->value[i]) * 16777619U;
	return (hash ^ (hash >> 16)) % VHCA_HTTP_BUCKETS;
}

static struct vhca_http_source *add_source(struct vhca_http_door *door,
					   const struct vhca_http_source_key *key, bool exempt)
{
	struct vhca_http_source *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->key = *key;
	s->known = s->exempt = exempt;
	TAILQ_INIT(&s->visits);
	LIST_INSERT_HEAD(&door->buckets[bucket_of(key)], s, bucket);
	return s;
}

static void forget_source(struct vhca_http_source *s)
{
	LIST_REMOVE(s, bucket);
	free(s);
}

static void forget_oldest(struct vhca_http_door *door)
{
	struct vhca_http_source *s = TAILQ_FIRST(&door->absent);

	TAILQ_REMOVE(&door->absent, s, absent);
	door->n_absent--;
	forget_source(s);
}

/* ---- phases ---- */

static uint64_t deadline(const struct vhca_http_door *door, const struct vhca_http_visit *v,
			 enum vhca_http_phase phase)
{
	const struct vhca_http_limits *l = &door->limits;

	switch (phase) {
	case VHCA_HTTP_HANDSHAKE:
		return v->accepted_ms + l->handshake_ms;
	case VHCA_HTTP_HEAD:
		return v->accepted_ms + l->head_ms;
	case VHCA_HTTP_BODY:
		return vhca_now_ms() + l->body_ms;
	case VHCA_HTTP_ANSWER:
		return vhca_now_ms() + l->answer_ms;
	case VHCA_HTTP_IDLE:
		return vhca_now_ms() + l->idle_timeout_s * UINT64_C(1000);
	case VHCA_HTTP_HANDLED:
	case VHCA_HTTP_PHASES:
		break;
	}
	return UINT64_MAX;
}

void vhca_http_door_begin(struct vhca_http_door *door, struct vhca_http_visit *v,
			  enum vhca_http_phase phase)
{
	if (!v->source)
		return;
	TAILQ_REMOVE(&door->phases[v->phase], v, of_phase);
	v->phase = phase;
	v->deadline_ms = deadline(door, v, phase);
	TAILQ_INSERT_TAIL(&door->phases[phase], v, of_phase);
}

/* ---- coming and going ---- */

void vhca_http_door_leave(struct vhca_http_door *door, struct vhca_http_visit *v)
{
	struct vhca_http_source *s = v->source;

	if (!s)
		return;
	v->source = NULL;
	s->answering -= v->answering;
	TAILQ_REMOVE(&door->phases[v->phase], v, of_phase);
	TAILQ_REMOVE(&s->visits, v, of_source);
	door->stats.connections--;
	door->strangers -= !s->known;
	if (--s->n > 0)
		return;
	if (!s->known) {
		forget_source(s);
		return;
	}
	TAILQ_INSERT_TAIL(&door->absent, s, absent);
	if (++door->n_absent > door->limits.connections_max)
		forget_oldest(door);
}

static void end(struct vhca_http_door *door, struct vhca_http_visit *v, enum vhca_http_end why)
{
	if (!v)
		return;
	door->stats.ended[why]++;
	vhca_http_door_leave(door, v);
	(void)shutdown(v->fd, SHUT_RDWR); /* fails only for one that the client has left */
}

/* Who waits for an answer, or takes it, has been heard. */
static struct vhca_http_visit *find_oldest_idle(const struct vhca_http_source *s)
{
	struct vhca_http_visit *v;

	TAILQ_FOREACH (v, &s->visits, of_source)
		if (v->phase != VHCA_HTTP_HANDLED && v->phase != VHCA_HTTP_ANSWER)
			return v;
	return NULL;
}

static bool gives_way(const struct vhca_http_source *s, const struct vhca_http_source *before)
{
	if (!before || s->n != before->n)
		return !before || s->n > before->n;
	return TAILQ_FIRST(&s->visits)->number < TAILQ_FIRST(&before->visits)->number;
}

static struct vhca_http_visit *oldest_of_most(const struct vhca_http_door *door)
{
	struct vhca_http_source *s, *most = NULL;

	for (size_t i = 0; i < VHCA_HTTP_BUCKETS; i++)
		LIST_FOREACH (s, &door->buckets[i], bucket)
			if (!s->known && gives_way(s, most))
				most = s;
	return most ? find_oldest_idle(most) : NULL;
}

/*
 * Of who is known, only what is idle: a request may be on its way on what has just been accepted.
 */
static struct vhca_http_visit *idle_of_most(const struct vhca_http_door *door)
{
	struct vhca_http_visit *v, *found = NULL;

	TAILQ_FOREACH (v, &door->phases[VHCA_HTTP_IDLE], of_phase)
		if (!found || v->source->n > found->source->n)
			found = v;
	return found;
}

int vhca_http_door_enter(struct vhca_http_door *door, struct vhca_http_visit *v,
			 const struct vhca_http_source_key *key, bool exempt)
{
	const struct vhca_http_limits *l = &door->limits;
	struct vhca_http_source *s;

	LIST_FOREACH (s, &door->buckets[bucket_of(key)], bucket)
		if (memcmp(&s->key, key, sizeof(*key)) == 0)
			break;
	if (s && s->n == 0) {
		TAILQ_REMOVE(&door->absent, s, absent);
		door->n_absent--;
	} else if (!s) {
		s = add_source(door, key, exempt);
	}
	if (!s)
		return -ENOMEM;
	v->source = s;
	v->accepted_ms = vhca_now_ms();
	v->number = door->accepted++;
	v->phase = v->session ? VHCA_HTTP_HANDSHAKE : VHCA_HTTP_HEAD;
	v->deadline_ms = deadline(door, v, v->phase);
	TAILQ_INSERT_TAIL(&door->phases[v->phase], v, of_phase);
	TAILQ_INSERT_TAIL(&s->visits, v, of_source);
	s->n++;
	door->stats.connections++;
	door->strangers += !s->known;
	if (!s->exempt && s->n > l->source_max)
		end(door, find_oldest_idle(s), VHCA_HTTP_END_SOURCE);
	else if (door->strangers > l->strangers_max)
		end(door, oldest_of_most(door), VHCA_HTTP_END_STRANGERS);
	else if (door->stats.connections > l->connections_max - l->connections_max / 8)
		end(door, idle_of_most(door), VHCA_HTTP_END_CROWD);
	return 0;
}

void vhca_http_door_know(struct vhca_http_door *door, struct vhca_http_visit *v)
{
	if (!v->source || v->source->known)
		return;
	v->source->known = true;
	door->strangers -= v->source->n;
}

bool vhca_http_door_is_crowded(const struct vhca_http_door *door, const struct vhca_http_visit *v)
{
	const struct vhca_http_limits *l = &door->limits;

	return door->stats.connections > l->connections_max - l->connections_max / 4 ||
	       (v->source && !v->source->exempt &&
		v->source->n > l->source_max - l->source_max / 4);
}

/* ---- answers ---- */

/* What is no list: as many of them as there are connections are no matter. */
#define SMALL_ANSWER 4096

/* One that is larger than all the room is let go alone: nobody would ever have it otherwise. */
static bool fits(size_t len, uint64_t taken, uint64_t max)
{
	return taken == 0 || taken + len <= max;
}

bool vhca_http_door_has_room(const struct vhca_http_door *door, const struct vhca_http_visit *v,
			     size_t len)
{
	const struct vhca_http_source *s = v->source;
	size_t max = door->limits.answering_max;

	if (max == 0 || len <= SMALL_ANSWER || (s && s->exempt))
		return true;
	return fits(len, door->stats.answering, max) && (!s || fits(len, s->answering, max / 8));
}

void vhca_http_door_give(struct vhca_http_door *door, struct vhca_http_visit *v, size_t len)
{
	v->answering += len;
	door->stats.answering += len;
	if (v->source)
		v->source->answering += len;
}

void vhca_http_door_taken(struct vhca_http_door *door, struct vhca_http_visit *v)
{
	door->stats.answering -= v->answering;
	if (v->source)
		v->source->answering -= v->answering;
	v->answering = 0;
}

/* ---- time ---- */

int vhca_http_door_timeout_ms(const struct vhca_http_door *door)
{
	uint64_t first = UINT64_MAX, now = vhca_now_ms();

	for (size_t i = 0; i < VHCA_HTTP_PHASES; i++) {
		const struct vhca_http_visit *v = TAILQ_FIRST(&door->phases[i]);

		if (v && v->deadline_ms < first)
			first = v->deadline_ms;
	}
	if (first == UINT64_MAX)
		return -1;
	if (first <= now)
		return 0;
	return first - now > INT32_MAX ? INT32_MAX : (int)(first - now);
}

static void end_overdue(struct vhca_http_door *door, struct vhca_http_visit *v)
{
	static const enum vhca_http_end ends[VHCA_HTTP_PHASES] = {
		[VHCA_HTTP_HANDSHAKE] = VHCA_HTTP_END_HANDSHAKE,
		[VHCA_HTTP_HEAD] = VHCA_HTTP_END_HEAD,
		[VHCA_HTTP_BODY] = VHCA_HTTP_END_BODY,
		[VHCA_HTTP_ANSWER] = VHCA_HTTP_END_ANSWER,
		[VHCA_HTTP_IDLE] = VHCA_HTTP_END_IDLE,
	};

	if (v->phase == VHCA_HTTP_HANDSHAKE && vhca_http_auth_is_shaken(v->session))
		vhca_http_door_begin(door, v, VHCA_HTTP_HEAD);
	else
		end(door, v, ends[v->phase]);
}

/* What was idle has ended as it should. */
static void tell(struct vhca_http_door *door, uint64_t now)
{
	char text[160];
	struct vhca_strbuf sb;

	if (door->told_ms && now < door->told_ms + TELL_MS)
		return;
	vhca_strbuf_init(&sb, text, sizeof(text));
	for (unsigned int i = 0; i < VHCA_HTTP_ENDS; i++) {
		uint64_t n = door->stats.ended[i] - door->told.ended[i];

		if (n && i != VHCA_HTTP_END_IDLE)
			vhca_strbuf_add(&sb, "%s%s %llu", sb.len ? ", " : "",
					vhca_http_end_names[i], (unsigned long long)n);
	}
	if (!sb.len)
		return;
	vhca_log_warning("http: connections were ended that were late or too many: %s; %u are "
			 "left, %u of them of strangers",
			 text, door->stats.connections, door->strangers);
	door->told = door->stats;
	door->told_ms = now;
}

void vhca_http_door_sweep(struct vhca_http_door *door)
{
	uint64_t now = vhca_now_ms();
	struct vhca_http_visit *v;

	for (size_t i = 0; i < VHCA_HTTP_PHASES; i++)
		while ((v = TAILQ_FIRST(&door->phases[i])) && v->deadline_ms <= now)
			end_overdue(door, v);
	tell(door, now);
}

/* ---- life ---- */

void vhca_http_door_init(struct vhca_http_door *door, const struct vhca_http_limits *limits)
{
	*door = (struct vhca_http_door){.limits = *limits};
	for (size_t i = 0; i < VHCA_HTTP_BUCKETS; i++)
		LIST_INIT(&door->buckets[i]);
	for (size_t i = 0; i < VHCA_HTTP_PHASES; i++)
		TAILQ_INIT(&door->phases[i]);
	TAILQ_INIT(&door->absent);
}

void vhca_http_door_done(struct vhca_http_door *door)
{
	while (door->n_absent > 0)
		forget_oldest(door);
}
