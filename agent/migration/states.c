/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The states of a migration, and the words for states, modes and times. */
#include "agent/migration/states.h"

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

static const char *const time_names[] = {
	[VHCA_MIG_REMOVED_TO_MIGRATE] = "removed_to_migrate",
	[VHCA_MIG_REMOVED_TO_READY] = "removed_to_ready",
	[VHCA_MIG_RESUMED_TO_ATTACH] = "resumed_to_attach",
	[VHCA_MIG_RESUMED_TO_GRANTED] = "resumed_to_granted",
};
static_assert(VHCA_ARRAY_SIZE(time_names) == VHCA_MIG_TIME_COUNT, "every time has a name");

const char *vhca_mig_time_to_string(enum vhca_mig_time time)
{
	return time_names[time];
}

int mig_time_parse(const char *word, enum vhca_mig_time *ret)
{
	for (unsigned int i = 0; i < VHCA_MIG_TIME_COUNT; i++) {
		if (!strcmp(word, time_names[i])) {
			*ret = (enum vhca_mig_time)i;
			return 0;
		}
	}
	return -EINVAL;
}
