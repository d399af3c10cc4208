/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/migration/table.h"

#include <assert.h>

#include "common/base/cleanup.h"

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
	[MIG_ON_NO_START] = "autostart off",
	[MIG_ON_START] = "request: migrate",
	[MIG_ON_EXTEND] = "request: extend",
	[MIG_ON_OFFER] = "request: claim",
	[MIG_ON_HANDED] = "request: hand-over",
};
static_assert(VHCA_ARRAY_SIZE(event_names) == MIG_EVENT_COUNT, "every event has a name");

const char *mig_event_to_string(enum mig_event event)
{
	return event_names[event];
}

static const struct {
	enum mig_event event; /* of its end */
	bool asks_peer;
} effects[] = {
	[VHCA_MIG_EFFECT_NONE] = {MIG_ON_LOOK},
	[VHCA_MIG_EFFECT_CLAIM] = {MIG_ON_CLAIM, .asks_peer = true},
	[VHCA_MIG_EFFECT_HANDOVER] = {MIG_ON_HANDOVER, .asks_peer = true},
	[VHCA_MIG_EFFECT_STATUS] = {MIG_ON_STATUS, .asks_peer = true},
	[VHCA_MIG_EFFECT_ABORT] = {MIG_ON_ABORT, .asks_peer = true},
	[VHCA_MIG_EFFECT_MARK] = {MIG_ON_MARK},
	[VHCA_MIG_EFFECT_UNMARK] = {MIG_ON_UNMARK},
	[VHCA_MIG_EFFECT_COPY] = {MIG_ON_COPY},
	[VHCA_MIG_EFFECT_CANCEL] = {MIG_ON_CANCEL},
	[VHCA_MIG_EFFECT_JOB] = {MIG_ON_JOB},
	[VHCA_MIG_EFFECT_CHECK] = {MIG_ON_CHECK},
	[VHCA_MIG_EFFECT_NO_START] = {MIG_ON_NO_START},
};
static_assert(VHCA_ARRAY_SIZE(effects) == VHCA_MIG_EFFECT_COUNT, "every effect has a row");

enum mig_event mig_event_of(enum vhca_mig_effect effect)
{
	return effects[effect].event;
}

bool vhca_mig_effect_asks_peer(enum vhca_mig_effect effect)
{
	return effects[effect].asks_peer;
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
	uint32_t here = 1U << m->state;

	for (; *part; part++) {
		for (unsigned int i = 0; i < (*part)->n; i++) {
			const struct mig_rule *r = &(*part)->rules[i];

			if (r->event == event && (r->states == MIG_NEW || (r->states & here)) &&
			    (!r->guard || r->guard(m)))
				return r;
		}
	}
	return NULL;
}
