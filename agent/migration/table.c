/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/migration/table.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/base/cleanup.h"

const struct mig_state_info mig_states[] = {
	[VHCA_MIG_CLAIMING] = {"claiming", VHCA_MIG_ABORTING, .source = true},
	[VHCA_MIG_DETACHING] = {"detaching", VHCA_MIG_ABORTING, .source = true},
	[VHCA_MIG_HANDING_OVER] = {"handing_over", VHCA_MIG_ABORTING, .source = true},
	[VHCA_MIG_READY] = {"ready", VHCA_MIG_ABORTING, .source = true},
	[VHCA_MIG_PARKED] = {"parked", VHCA_MIG_ABORTING, .source = true},
	[VHCA_MIG_COPYING] = {"copying", VHCA_MIG_ABORTING, .source = true},
	[VHCA_MIG_FINISHING] = {"finishing", MIG_STAY, .source = true},
	[VHCA_MIG_ABORTING] = {"aborting", VHCA_MIG_RESTORING, .source = true},
	[VHCA_MIG_ARBITRATING] = {"arbitrating", MIG_STAY, .source = true, .degraded = true},
	[VHCA_MIG_RESTORING] = {"restoring", MIG_STAY, .source = true},
	[VHCA_MIG_RESERVING] = {"reserving", VHCA_MIG_ENDING, .destination = true},
	[VHCA_MIG_RESERVED] = {"reserved", VHCA_MIG_ENDING, .destination = true},
	[VHCA_MIG_PROGRAMMING] = {"programming", VHCA_MIG_ENDING, .destination = true},
	[VHCA_MIG_INCOMING] = {"incoming", VHCA_MIG_ENDING, .destination = true},
	[VHCA_MIG_ATTACHING] = {"attaching", VHCA_MIG_ENDING, .destination = true},
	[VHCA_MIG_ENDING] = {"ending", MIG_STAY, .destination = true},
	[VHCA_MIG_DONE] = {"done", MIG_STAY, .source = true, .destination = true},
	[VHCA_MIG_FAILED] = {"failed", MIG_STAY, .source = true},
	[VHCA_MIG_ENDED] = {"ended", MIG_STAY, .destination = true},
};
static_assert(VHCA_ARRAY_SIZE(mig_states) == VHCA_MIG_STATE_COUNT, "every state has a row");

static const char *const event_names[] = {
	[MIG_ON_LOOK] = "look",
	[MIG_ON_CLAIM] = "claim answered",
	[MIG_ON_HANDOVER] = "hand-over answered",
	[MIG_ON_STATUS] = "status answered",
	[MIG_ON_ABORT] = "abort answered",
	[MIG_ON_MARK] = "marker set",
	[MIG_ON_UNMARK] = "marker removed",
	[MIG_ON_COPY] = "copy ended",
	[MIG_ON_CANCEL] = "cancelled",
	[MIG_ON_JOB] = "job seen",
	[MIG_ON_CHECK] = "check answered",
	[MIG_ON_START] = "request: migrate",
	[MIG_ON_EXTEND] = "request: extend",
	[MIG_ON_OFFER] = "request: claim",
	[MIG_ON_HANDED] = "request: hand-over",
};
static_assert(VHCA_ARRAY_SIZE(event_names) == MIG_EVENT_COUNT, "every event has a name");

static const char *const mode_names[] = {
	[VHCA_MIG_MODE_MANAGED] = "managed",
	[VHCA_MIG_MODE_EXTERNAL] = "external",
	[VHCA_MIG_MODE_PARK] = "park",
};
static_assert(VHCA_ARRAY_SIZE(mode_names) == VHCA_MIG_MODE_COUNT, "every mode has a name");

const char *vhca_mig_mode_to_string(enum vhca_mig_mode mode)
{
	return mode_names[mode];
}

int vhca_mig_mode_parse(const char *word, enum vhca_mig_mode *ret)
{
	for (unsigned int i = 0; i < VHCA_MIG_MODE_COUNT; i++) {
		if (!strcmp(word, mode_names[i])) {
			*ret = (enum vhca_mig_mode)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *mig_event_to_string(enum mig_event event)
{
	return event_names[event];
}

const char *vhca_mig_state_to_string(enum vhca_mig_state state)
{
	return mig_states[state].name;
}

int vhca_mig_state_parse(const char *word, enum vhca_mig_state *ret)
{
	for (unsigned int i = 0; i < VHCA_MIG_STATE_COUNT; i++) {
		if (!strcmp(word, mig_states[i].name)) {
			*ret = (enum vhca_mig_state)i;
			return 0;
		}
	}
	return -EINVAL;
}

bool vhca_mig_state_is_final(enum vhca_mig_state state)
{
	return state >= VHCA_MIG_DONE;
}

static const struct mig_rule *first_of(const struct mig_rules *part, const struct vhca_mig *m,
				       enum mig_event event)
{
	uint32_t here = 1U << m->state;

	for (unsigned int i = 0; i < part->n; i++) {
		const struct mig_rule *r = &part->rules[i];

		if (r->event == event && (r->states == MIG_NEW || (r->states & here)) &&
		    (!r->guard || r->guard(m)))
			return r;
	}
	return NULL;
}

const struct mig_rules *const mig_source_parts[] = {
	&mig_source_rules,
	&mig_waiting_rules,
	&mig_rollback_rules,
	NULL,
};
const struct mig_rules *const mig_destination_parts[] = {
	&mig_destination_rules,
	NULL,
};

const struct mig_rule *mig_rule_for(const struct vhca_mig *m, enum mig_event event)
{
	const struct mig_rules *const *part = m->source ? mig_source_parts : mig_destination_parts;
	const struct mig_rule *r = NULL;

	for (; *part && !r; part++)
		r = first_of(*part, m, event);
	return r;
}
