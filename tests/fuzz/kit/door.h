/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_FUZZ_DOOR_H
#define VHCA_TESTS_FUZZ_DOOR_H
/*
 * An API without sockets: the production routes, handlers, query and body parsers behind a server
 * of our own, whose symbols stand in for the production ones (tests/fuzz/meson.build). An API made
 * by its own constructor ends up here; one per process.
 *
 * The input is a number of requests between lines "%%": "METHOD PATH?QUERY" in the first line, the
 * body below it.
 */
#include "common/http/server.h"
#include "tests/fuzz/fuzz.h"

struct door_request {
	const char *method, *path, *query; /* query: NULL if there is none */
	const char *body;
	size_t body_len;
};

/* What was answered; released by the next one. status 0: nothing yet. */
struct door_answer {
	unsigned int status;
	struct json_object *body; /* NULL: none, or a problem document */
};

/* Asks, and returns what was answered so far; borrowed. */
const struct door_answer *door_ask(const struct door_request *req);
/* The client of an unanswered request goes away; it has to be answered by now all the same. */
void door_leave(void);
/* Calls each(ctx, request) for all requests of the input. */
void door_play(const uint8_t *data, size_t size,
	       void (*each)(void *ctx, const struct door_request *req), void *ctx);
/* Releases the last answer, and asserts that none is owed. */
void door_close(void);

#endif
