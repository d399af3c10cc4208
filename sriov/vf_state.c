/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sriov/vf_state.h"

#include <assert.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

static const char *const names[] = {
	[VHCA_VF_UNMANAGED] = "unmanaged",
	[VHCA_VF_PREPARING] = "preparing",
	[VHCA_VF_FREE] = "free",
	[VHCA_VF_CLAIMED] = "claimed",
	[VHCA_VF_PROGRAMMED] = "programmed",
	[VHCA_VF_ATTACHED] = "attached",
	[VHCA_VF_DETACHING] = "detaching",
	[VHCA_VF_SCRUBBING] = "scrubbing",
	[VHCA_VF_QUARANTINED] = "quarantined",
};
static_assert(VHCA_ARRAY_SIZE(names) == VHCA_VF_STATE_COUNT, "every state has a name");

/* The table of the header, row by row. */
static const bool arrows[VHCA_VF_STATE_COUNT][VHCA_VF_STATE_COUNT] = {
	[VHCA_VF_UNMANAGED] = {[VHCA_VF_PREPARING] = true, [VHCA_VF_ATTACHED] = true},
	[VHCA_VF_PREPARING] = {[VHCA_VF_FREE] = true,
			       [VHCA_VF_QUARANTINED] = true,
			       [VHCA_VF_UNMANAGED] = true,
			       [VHCA_VF_CLAIMED] = true},
	[VHCA_VF_FREE] = {[VHCA_VF_CLAIMED] = true,
			  [VHCA_VF_PREPARING] = true,
			  [VHCA_VF_UNMANAGED] = true,
			  [VHCA_VF_QUARANTINED] = true},
	[VHCA_VF_CLAIMED] = {[VHCA_VF_PROGRAMMED] = true,
			     [VHCA_VF_SCRUBBING] = true,
			     [VHCA_VF_QUARANTINED] = true},
	[VHCA_VF_PROGRAMMED] = {[VHCA_VF_ATTACHED] = true,
				[VHCA_VF_SCRUBBING] = true,
				[VHCA_VF_QUARANTINED] = true},
	[VHCA_VF_ATTACHED] = {[VHCA_VF_DETACHING] = true,
			      [VHCA_VF_SCRUBBING] = true,
			      [VHCA_VF_QUARANTINED] = true},
	[VHCA_VF_DETACHING] = {[VHCA_VF_SCRUBBING] = true,
			       [VHCA_VF_ATTACHED] = true,
			       [VHCA_VF_QUARANTINED] = true},
	[VHCA_VF_SCRUBBING] = {[VHCA_VF_FREE] = true,
			       [VHCA_VF_QUARANTINED] = true,
			       [VHCA_VF_CLAIMED] = true,
			       [VHCA_VF_DETACHING] = true},
	[VHCA_VF_QUARANTINED] = {[VHCA_VF_PREPARING] = true, [VHCA_VF_DETACHING] = true},
};

const char *vhca_vf_state_to_string(enum vhca_vf_state state)
{
	return (unsigned int)state < VHCA_VF_STATE_COUNT ? names[state] : "invalid";
}

int vhca_vf_state_parse(const char *word, enum vhca_vf_state *ret)
{
	int i = vhca_word_find(names, VHCA_ARRAY_SIZE(names), word);

	if (i < 0)
		return i;
	*ret = (enum vhca_vf_state)i;
	return 0;
}

bool vhca_vf_state_may(enum vhca_vf_state from, enum vhca_vf_state to)
{
	if ((unsigned int)from >= VHCA_VF_STATE_COUNT || (unsigned int)to >= VHCA_VF_STATE_COUNT)
		return false;
	return arrows[from][to];
}
