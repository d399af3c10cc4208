/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_SM_PAIR_SM_H
#define VHCA_TESTS_SIM_SM_PAIR_SM_H
/*
 * The SM of two hosts (pair.h): the common one (sim_sm.h) behind the production outbox of each
 * host. Reports arrive one round later, in order; those of a killed agent are lost with it.
 */
#include "sm/outbox.h"
#include "tests/sim/host/world.h"
#include "tests/sim/sm/sim_sm.h"

#define PAIR_SM_REPORTS_MAX 32

enum pair_sm_kind {
	PAIR_SM_REPORT,
	PAIR_SM_QUESTION, /* what would be answered to it; changes nothing */
};

struct pair_sm_report {
	enum pair_sm_kind kind;
	struct vhca_sm_binding binding;
	bool delayed; /* its owner has been told that the SM is down */
};

/* One agent's line to it. */
struct pair_sm_line {
	struct world *w;
	struct vhca_outbox *outbox;
	struct pair_sm_report reports[PAIR_SM_REPORTS_MAX];
	unsigned int n;
};

struct pair_sm {
	struct sim_sm bindings;
	uint64_t lid_at; /* the port to which the one dynamic LID leads; 0 = nobody has it */
	unsigned int lids_given;
	uint64_t owner_at;	 /* the port whose the one vGUID is, by tickets; 0 = nobody's... */
	unsigned int freed;	 /* ...which it has become so often */
	const char *lid_refusal; /* why the SM moves no LID of a port; NULL = it does */
	unsigned int lids_changed; /* such moves that had something to do */
	struct pair_sm_line lines[2];
};

void pair_sm_init(struct pair_sm *sm);
void pair_sm_done(struct pair_sm *sm);
/* The agent of host h lives, or ends. */
void pair_sm_started(struct pair_sm *sm, unsigned int h, struct world *w);
void pair_sm_stopping(struct pair_sm *sm, unsigned int h);
/* The oldest report of host h, or NULL. */
const struct pair_sm_report *pair_sm_next(const struct pair_sm *sm, unsigned int h);
/* Puts it into effect (ret: what the table said), drops it, tells the agent. */
void pair_sm_take(struct pair_sm *sm, unsigned int h);
void pair_sm_lose(struct pair_sm *sm, unsigned int h); /* in effect, and the answer is lost */
void pair_sm_delay(struct pair_sm *sm,
		   unsigned int h); /* the agent hears that the SM is down, once */
/* True if port is where the SM has the vGUID, at a higher epoch than this. */
bool pair_sm_outbids(const struct pair_sm *sm, uint64_t vguid, uint64_t epoch, uint64_t port_guid);

#endif
