/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_STATES_H
#define VHCA_AGENT_MIGRATION_STATES_H
/* What holds for a state whatever the rules say. The words for people are in migration.h. */
#include "agent/migration/migration.h"

#define MIG_STAY VHCA_MIG_STATE_COUNT /* no other state, and nothing is journaled */

struct mig_state_info {
	const char *name;
	unsigned int undo; /* where a failure leads; MIG_STAY: it is retried */
	bool source, destination;
	bool degraded; /* the guest lacks what it should have */
};
extern const struct mig_state_info mig_states[VHCA_MIG_STATE_COUNT];

/* -EINVAL for another word. */
int mig_time_parse(const char *word, enum vhca_mig_time *ret);

#endif
