/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_MIGRATION_H
#define VHCA_CTL_MIGRATION_H
/* One migration, followed to its end. Documents are those of the API: {id, role, domain_name, peer, state, step_ms, ...}. */
#include <json-c/json_object.h>

#include "ctl/ctl.h"

/* True for a migration that goes on no more. */
bool vhca_migration_is_over(struct json_object *migration);

/* Asks for a migration (borrowed; its id counts) until it is over and prints, unless --json is given, a line for each of its steps when that has ended. A
 * silent agent is waited for (it may be restarted in the middle), but not for ever; --timeout limits the whole. On success *ret is
 * the last answer; caller puts it. */
int vhca_migration_follow(const struct vhca_ctl *ctl, struct json_object *migration,
			  struct json_object **ret, struct vhca_error *err);

#endif
