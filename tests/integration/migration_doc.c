/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Prints docs/migration-states.md from the table that the agent executes; test_docs.py compares the
 * two.
 */
#include <stdio.h>
#include <string.h>

#include "agent/migration/table.h"

static const char *const effects[VHCA_MIG_EFFECT_COUNT] = {
	[VHCA_MIG_EFFECT_NONE] = "",
	[VHCA_MIG_EFFECT_CLAIM] = "peer: claim",
	[VHCA_MIG_EFFECT_HANDOVER] = "peer: hand-over",
	[VHCA_MIG_EFFECT_STATUS] = "peer: status",
	[VHCA_MIG_EFFECT_ABORT] = "peer: abort",
	[VHCA_MIG_EFFECT_MARK] = "libvirt: set marker",
	[VHCA_MIG_EFFECT_UNMARK] = "libvirt: remove marker",
	[VHCA_MIG_EFFECT_COPY] = "libvirt: migrate",
	[VHCA_MIG_EFFECT_CANCEL] = "libvirt: abort the job",
	[VHCA_MIG_EFFECT_JOB] = "libvirt: look at the job",
	[VHCA_MIG_EFFECT_CHECK] = "libvirt: would it copy?",
	[VHCA_MIG_EFFECT_NO_START] = "libvirt: no autostart",
};

/* "mig_guest_is_gone" -> "guest is gone"; "NULL" -> nothing. */
static void words(const char *name)
{
	if (!strcmp(name, "NULL"))
		return;
	if (!strncmp(name, "mig_", 4))
		name += 4;
	for (; *name; name++)
		putchar(*name == '_' ? ' ' : *name);
}

static const char *state_name(unsigned int state)
{
	return state < VHCA_MIG_STATE_COUNT ? mig_states[state].name : "";
}

static unsigned int next_of(const struct mig_rule *r, unsigned int state)
{
	return r->next == MIG_UNDO ? mig_states[state].undo : r->next;
}

static bool leads(const struct mig_rules *rules, unsigned int state, unsigned int to)
{
	for (unsigned int i = 0; i < rules->n; i++)
		if ((rules->rules[i].states & (1U << state)) &&
		    next_of(&rules->rules[i], state) == to)
			return true;
	return false;
}

static void arrows(const struct mig_rules *rules)
{
	for (unsigned int i = 0; i < rules->n; i++)
		if (rules->rules[i].states == MIG_NEW)
			printf("    [*] --> %s\n", state_name(rules->rules[i].next));
	for (unsigned int s = 0; s < VHCA_MIG_STATE_COUNT; s++)
		for (unsigned int to = 0; to < VHCA_MIG_STATE_COUNT; to++)
			if (leads(rules, s, to))
				printf("    %s --> %s\n", state_name(s), state_name(to));
}

static void diagram(const struct mig_rules *const *parts)
{
	printf("```mermaid\nstateDiagram-v2\n");
	for (; *parts; parts++)
		arrows(*parts);
	printf("```\n\n");
}

static void row(const struct mig_rule *r, const char *state, unsigned int next, const char *undo)
{
	printf("| %s | %s | ", state, mig_event_to_string(r->event));
	words(r->guard_name);
	printf(" | ");
	words(r->action_name);
	printf(" | %s | %s | %s |\n", effects[r->effect], state_name(next), undo);
}

static void rows_of(const struct mig_rules *rules, unsigned int state)
{
	for (unsigned int i = 0; i < rules->n; i++)
		if (rules->rules[i].states & (1U << state))
			row(&rules->rules[i], state_name(state), next_of(&rules->rules[i], state),
			    state_name(mig_states[state].undo));
}

static void table(const struct mig_rules *const *parts)
{
	printf("| state | event | if | does | begins | next | undo |\n");
	printf("|---|---|---|---|---|---|---|\n");
	for (; *parts; parts++) {
		const struct mig_rules *p = *parts;

		for (unsigned int i = 0; i < p->n; i++)
			if (p->rules[i].states == MIG_NEW)
				row(&p->rules[i], "(new)", p->rules[i].next, "");
		for (unsigned int s = 0; s < VHCA_MIG_STATE_COUNT; s++)
			rows_of(p, s);
	}
}

int main(void)
{
	printf("# States of a migration\n\n"
	       "Printed from the tables that the agent executes (`source.c`, `waiting.c`, "
	       "`rollback.c` and `destination.c` in `agent/migration/`) by\n"
	       "`tests/integration/migration_doc`; a test compares. For an event the first row "
	       "of the state counts whose condition holds.\n"
	       "*look*: something may have changed. *next* is in the journal before anything of "
	       "that state begins; none: it stays, and is looked at again.\n"
	       "*undo*: where a failure in this state leads; none: what fails is tried again.\n\n"
	       "## Source\n\n");
	diagram(mig_source_parts);
	table(mig_source_parts);
	printf("\n## Destination\n\n");
	diagram(mig_destination_parts);
	table(mig_destination_parts);
	return 0;
}
