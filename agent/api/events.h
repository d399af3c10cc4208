/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_EVENTS_H
#define VHCA_AGENT_API_EVENTS_H
/* GET /v1/events: long polls, answered when something happens or when their time is over. */
#include "agent/state/events.h"
#include "common/http/http_loop.h"

struct api_polls;
/* All arguments are borrowed. Listens to the events, which have one listener. -ENOMEM. */
int api_polls_new(struct vhca_loop *loop, struct vhca_events *events, struct api_polls **ret);
/* Answers those that wait; their adapters must still be there. Accepts NULL, returns NULL. */
struct api_polls *api_polls_free(struct api_polls *all);
/* Answers at once, or keeps req until there is something to tell. */
void api_polls_answer(struct api_polls *all, struct vhca_http_request *req,
		      struct vhca_http_loop_server *adapter);

#endif
