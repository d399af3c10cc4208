/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_TABLE_H
#define VHCA_AGENT_MIGRATION_TABLE_H
/*
 * The machine of a migration as data, which agent/migration/migration.c executes and
 * tests/integration/migration_doc.c prints (docs/migration-states.md). For an event the first rule
 * counts whose state and guard fit; if none does, nothing happens. next is journaled before
 * anything of that state begins.
 */
#include "agent/migration/states.h"

enum mig_event {
	MIG_ON_LOOK, /* something may have changed */
	/* An effect has ended: m->res says how. */
	MIG_ON_CLAIM,
	MIG_ON_HANDOVER,
	MIG_ON_STATUS,
	MIG_ON_ABORT,
	MIG_ON_MARK,
	MIG_ON_UNMARK,
	MIG_ON_COPY,
	MIG_ON_CANCEL,
	MIG_ON_JOB,
	MIG_ON_CHECK,
	MIG_ON_NO_START,
	/* Somebody wants something. */
	MIG_ON_START,
	MIG_ON_EXTEND,
	MIG_ON_OFFER,
	MIG_ON_HANDED,
	MIG_EVENT_COUNT
};

#define MIG_UNDO      (VHCA_MIG_STATE_COUNT + 1) /* the state's undo */
#define MIG_NEW	      0U			 /* states of a rule for migrations that begin */
#define MIG_IN(state) (1U << VHCA_MIG_##state)

struct mig_rule {
	uint32_t states; /* MIG_IN() of each, or MIG_NEW */
	enum mig_event event;
	bool (*guard)(const struct vhca_mig *m); /* NULL: always */
	void (*action)(struct vhca_mig *m);	 /* NULL: none; never blocks */
	enum vhca_mig_effect effect;		 /* then begun, unless one is under way */
	unsigned int next;
	const char *guard_name, *action_name; /* for people */
};
#define MIG_RULE(states_, event_, guard_, action_, effect_, next_)                         \
	{                                                                                  \
		.states = (states_), .event = MIG_ON_##event_, .guard = (guard_),          \
		.action = (action_), .effect = VHCA_MIG_EFFECT_##effect_, .next = (next_), \
		.guard_name = #guard_, .action_name = #action_                             \
	}

/* A part of a side's rules; a state's rules for an event are all in one part. */
struct mig_rules {
	const struct mig_rule *rules;
	unsigned int n;
};
extern const struct mig_rules mig_source_rules;	  /* there: claiming to finishing */
extern const struct mig_rules mig_waiting_rules;  /* for somebody else: ready, parked */
extern const struct mig_rules mig_rollback_rules; /* back: aborting to restoring */
extern const struct mig_rules mig_destination_rules;
/* Ended by NULL. */
extern const struct mig_rules *const mig_source_parts[];
extern const struct mig_rules *const mig_destination_parts[];

/* "claim answered"; never NULL. */
const char *mig_event_to_string(enum mig_event event);
/* The event of its end. */
enum mig_event mig_event_of(enum vhca_mig_effect effect);
/* The rule that counts now, or NULL. */
const struct mig_rule *mig_rule_for(const struct vhca_mig *m, enum mig_event event);

/* ---- migration.c ---- */
/* One with timers; NULL: no memory. */
struct vhca_mig *mig_new(struct vhca_migrations *ms, const struct vhca_uuid *id);
/* Does what the rule for it says, if there is one now. */
void mig_event(struct vhca_mig *m, enum mig_event event);

#endif
