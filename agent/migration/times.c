/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How long a guest was without its VFs on the agents' account. For people: no rule looks at it. */
#include "agent/migration/journal.h"
#include "agent/migration/list.h"

/* Only from one moment that was seen to another. */
static void note(struct vhca_mig *m, enum vhca_mig_time time, uint64_t from, uint64_t to)
{
	struct vhca_counters *counters = &m->owner->model->counters;

	if (!from || to <= from)
		return;
	if (!m->time_us[time] && time == VHCA_MIG_RESUMED_TO_GRANTED)
		vhca_histogram_add(&counters->blackout_destination, to - from);
	else if (!m->time_us[time] && time != VHCA_MIG_RESUMED_TO_ATTACH)
		vhca_histogram_add(&counters->blackout_source, to - from);
	m->time_us[time] = to - from;
}

void mig_note_left(struct vhca_mig *m, enum vhca_mig_time time, uint64_t at_us)
{
	struct vhca_claim *c = NULL;
	uint64_t last = 0;

	while ((c = vhca_migration_claim(m, c))) {
		if (!c->removed_us)
			return; /* its event was not heard: libvirt was away, or the agent */
		if (c->removed_us > last)
			last = c->removed_us;
	}
	note(m, time, last, at_us);
}

static uint64_t first_attach(const struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;
	uint64_t first = 0;

	while ((c = vhca_migration_claim(m, c)))
		if (c->attach_us && (!first || c->attach_us < first))
			first = c->attach_us;
	return first;
}

static uint64_t last_grant(const struct vhca_mig *m)
{
	struct vhca_claim *c = NULL;
	uint64_t last = 0;

	while ((c = vhca_migration_claim(m, c))) {
		if (c->vf->state != VHCA_VF_ATTACHED || !c->vf->granted || !c->granted_us)
			return 0;
		if (c->granted_us > last)
			last = c->granted_us;
	}
	return last;
}

void mig_look_at_times(struct vhca_mig *m)
{
	bool was_granted = m->time_us[VHCA_MIG_RESUMED_TO_GRANTED] != 0;
	const struct vhca_domain *dom;

	if (m->source || was_granted || mig_is_committing(m) ||
	    (m->state != VHCA_MIG_ATTACHING && m->state != VHCA_MIG_DONE))
		return;
	dom = mig_domain(m); /* last: a host remembers many that have ended, and looks at each */
	if (!dom || !dom->arrived_us)
		return;
	if (!m->time_us[VHCA_MIG_RESUMED_TO_ATTACH])
		note(m, VHCA_MIG_RESUMED_TO_ATTACH, dom->arrived_us, first_attach(m));
	note(m, VHCA_MIG_RESUMED_TO_GRANTED, dom->arrived_us, last_grant(m));
	/* Usually after the end: nothing else would write it down. */
	if (m->state == VHCA_MIG_DONE && m->time_us[VHCA_MIG_RESUMED_TO_GRANTED])
		mig_journal_times(m);
}
