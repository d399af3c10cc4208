/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/events.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "common/base/codes.h"
#include "common/base/text.h"

#define POLLS_MAX	 64 /* long polls waiting at once at one door; more are refused */
#define POLL_SECONDS_MAX 60

/* A GET /v1/events that waits for something to tell. */
struct poll {
	TAILQ_ENTRY(poll) link;
	struct api_polls *all;
	struct vhca_http_request *req;
	struct vhca_http_loop_server *adapter; /* of the server that was asked */
	struct vhca_timer *timer;
	uint64_t since;
};

struct api_polls {
	TAILQ_HEAD(, poll) list;
	struct vhca_loop *loop;
	struct vhca_events *events;
	struct vhca_timer *wake; /* answers from the loop, not from where the event happened */
};

static void reply_events(struct vhca_http_request *req, const struct vhca_events *events,
			 uint64_t since)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct json_object *doc = vhca_events_to_json(events, since, &err);

	if (doc)
		vhca_http_reply(req, 200, doc);
	else
		vhca_http_reply_error(req, &err);
}

static void answer_poll(struct poll *p)
{
	reply_events(p->req, p->all->events, p->since);
	vhca_http_loop_kick(p->adapter);
	TAILQ_REMOVE(&p->all->list, p, link);
	vhca_timer_free(p->timer);
	free(p);
}

static void on_poll_timer(void *arg)
{
	answer_poll(arg);
}

static void on_poll_cancel(void *arg)
{
	answer_poll(arg); /* nobody reads it; the handle is owed a reply all the same */
}

static void on_wake(void *arg)
{
	struct api_polls *all = arg;
	struct poll *p, *next;

	for (p = TAILQ_FIRST(&all->list); p; p = next) {
		next = TAILQ_NEXT(p, link);
		if (p->since < vhca_events_newest(all->events))
			answer_poll(p);
	}
}

static void on_event(void *arg)
{
	struct api_polls *all = arg;

	if (!TAILQ_EMPTY(&all->list))
		vhca_timer_arm_ms(all->wake, 0);
}

static int start_poll(const struct poll *like, uint64_t seconds, struct vhca_error *err)
{
	struct api_polls *all = like->all;
	unsigned int n = 0;
	struct poll *p;

	/* Of one door, so that readers on the network keep nobody at the socket from waiting. */
	TAILQ_FOREACH (p, &all->list, link)
		n += p->adapter == like->adapter;
	if (n >= POLLS_MAX) {
		(void)vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "too_many_waiting", 0,
				     "%d requests wait for events already", POLLS_MAX);
		vhca_error_hint(err, "ask again after a second, or without wait");
		return -EAGAIN;
	}
	p = calloc(1, sizeof(*p));
	if (p)
		*p = *like;
	if (!p || vhca_timer_new(all->loop, "poll", on_poll_timer, p, &p->timer) < 0) {
		free(p);
		return vhca_error_no_memory(err, "request");
	}
	TAILQ_INSERT_TAIL(&all->list, p, link);
	vhca_timer_arm_ms(p->timer, seconds * 1000);
	vhca_http_on_cancel(p->req, on_poll_cancel, p);
	return 0;
}

/* What the query says; no `since` is all that is kept. */
static int parse_query(struct api_polls *all, struct vhca_http_request *req, uint64_t *ret_since,
		       uint64_t *ret_wait, struct vhca_error *err)
{
	const char *since = vhca_http_query(req, "since"), *wait = vhca_http_query(req, "wait");

	*ret_wait = 0;
	if (wait && vhca_parse_u64(wait, 10, POLL_SECONDS_MAX, ret_wait) < 0)
		return vhca_error_set(err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0,
				      "query: wait is 0..%d seconds", POLL_SECONDS_MAX);
	return vhca_events_find(all->events, since ? since : "oldest", ret_since, err);
}

void api_polls_answer(struct api_polls *all, struct vhca_http_request *req,
		      struct vhca_http_loop_server *adapter)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct poll p = {.all = all, .req = req, .adapter = adapter};
	uint64_t wait;
	bool waits = false;
	int r = parse_query(all, req, &p.since, &wait, &err);

	if (!r) {
		waits = wait && p.since == vhca_events_newest(all->events);
		r = waits ? start_poll(&p, wait, &err) : 0;
	}
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else if (!waits)
		reply_events(req, all->events, p.since);
}

int api_polls_new(struct vhca_loop *loop, struct vhca_events *events, struct api_polls **ret)
{
	struct api_polls *all = calloc(1, sizeof(*all));

	if (!all || vhca_timer_new(loop, "events", on_wake, all, &all->wake) < 0) {
		free(all);
		return -ENOMEM;
	}
	TAILQ_INIT(&all->list);
	all->loop = loop;
	all->events = events;
	vhca_events_listen(events, on_event, all);
	*ret = all;
	return 0;
}

struct api_polls *api_polls_free(struct api_polls *all)
{
	if (!all)
		return NULL;
	vhca_events_listen(all->events, NULL, NULL);
	while (TAILQ_FIRST(&all->list))
		answer_poll(TAILQ_FIRST(&all->list));
	vhca_timer_free(all->wake);
	free(all);
	return NULL;
}
