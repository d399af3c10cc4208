/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_AGENT_MIGRATION_H
#define VHCA_CTL_AGENT_MIGRATION_H
/*
 * One migration, followed to its end. Documents are those of the API: {id, role, domain_name, peer,
 * state, step_ms, ...}.
 */
#include <json-c/json_object.h>

#include "common/base/text.h"
#include "ctl/cli/ctl.h"

/* Why it is where it is. Borrowed, never "". */
const char *vhca_migration_reason(struct json_object *migration);

/* How a line to be pasted names its domain, which the command line calls so. */
const char *vhca_migration_word(char buf[static VHCA_UUID_STRLEN], struct json_object *migration,
				const char *domain);

/*
 * Begins one for ctl->args[0] in a mode; peer NULL: none. The lease is that of --lease. Caller puts
 * *ret.
 */
int vhca_migration_begin(const struct vhca_ctl *ctl, const char *mode, const char *peer,
			 struct json_object **ret, struct vhca_error *err);

/*
 * Asks for a migration (borrowed; its id counts) until it is over, or in state `until` if that is
 * not NULL, and prints, unless --json is given, a line for each of its steps when that has ended. A
 * silent agent is waited for (it may be restarted in the middle), but not for ever; --timeout
 * limits the whole. On success *ret is the last answer; caller puts it.
 */
int vhca_migration_follow(const struct vhca_ctl *ctl, struct json_object *migration,
			  const char *until, struct json_object **ret, struct vhca_error *err);

/*
 * Asks the agent to stop the migration of ctl->args[0] that is under way; *ret is how it was,
 * caller puts it.
 */
int vhca_migration_cancel(const struct vhca_ctl *ctl, struct json_object **ret,
			  struct vhca_error *err);

#endif
