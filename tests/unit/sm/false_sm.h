/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_SM_FALSE_SM_H
#define VHCA_TESTS_UNIT_SM_FALSE_SM_H
/*
 * A false SM on a TCP port of this machine, driven by the test's loop: the common one (sim_sm.h)
 * behind routes that note what came. It can be down, keep requests unanswered, or refuse. Failures
 * fail the running test.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/http/http_loop.h"
#include "tests/sim/sm/sim_sm.h"

#define FALSE_SM_SEEN_MAX  4096
#define FALSE_SM_GUIDS_MAX 1024
#define FALSE_SM_HELD_MAX  64
#define FALSE_SM_PORT	   1 /* of all bindings: where they are makes no difference here */

/* One request as it came. */
struct false_sm_seen {
	char method[8], path[64];
	char phase[8];	/* of a move, else "" */
	uint64_t vguid; /* of members: the port's */
	uint64_t epoch;
	bool keep_lid; /* of a withdrawal */
	char body[1024];
};

struct false_sm {
	struct vhca_loop *loop;
	struct vhca_http_server *srv;
	struct vhca_http_loop_server *attached;
	char listen[32], url[48];

	const char *refuse_code; /* answer every request with this problem, NULL = none */
	enum vhca_err refuse_kind;
	uint64_t refuse_only; /* only for this vGUID (members: port); 0 = all */
	/* answer moves with this and no document, as a stranger; 0 = know them */
	unsigned int moves_status;
	const char *moves_code; /* ...with this problem, as an older plugin; NULL = know them */
	enum vhca_err moves_kind;
	bool knows_no_proof; /* an older plugin: bodies with `tickets` or `settled` are bad */
	bool wants_proof;    /* only with `tickets` a binding is accepted, else not_the_owner */
	bool hold;	     /* keep the requests unanswered */
	struct vhca_http_request *held[FALSE_SM_HELD_MAX];
	struct false_sm_seen held_seen[FALSE_SM_HELD_MAX];
	unsigned int n_held, most_held;

	unsigned int n_seen;
	const char *follow_code; /* to moves whose LID is to follow; NULL = they are taken */
	struct false_sm_seen seen[FALSE_SM_SEEN_MAX];
	struct sim_sm bindings;
	unsigned int n_guids;
	struct {
		uint64_t vguid;
		unsigned int effects; /* how often the state changed */
	} guids[FALSE_SM_GUIDS_MAX];
};

/* Listens, on the same port as before if there was one. sm->loop must be set. */
void false_sm_up(struct false_sm *sm);
void false_sm_down(
	struct false_sm *sm); /* drops connections and held requests; also when down already */
void false_sm_done(struct false_sm *sm); /* forgets everything, too */
void false_sm_answer_held(struct false_sm *sm);
/* Takes a state as the plugin does; false: superseded. */
bool false_sm_take_effect(struct false_sm *sm, const struct false_sm_seen *s);
/* How often the vGUID's state changed. */
unsigned int false_sm_effects(const struct false_sm *sm, uint64_t vguid);

#endif
