/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_SM_SIM_SM_H
#define VHCA_TESTS_SIM_SM_SIM_SM_H
/*
 * What every false SM says to reports: the plugin's own table of bindings, and its rules. How a
 * report comes and when its answer goes is the world's own.
 */
#include "opensm/bindings/table.h"
#include "sm/sm.h"

#define SIM_SM_PORT_KEYS 128 /* in the table of any port, unless the world has smaller ones */

struct json_object;

struct sim_sm {
	struct vhca_osm_table *table;
	size_t port_keys;
};

/* both_memberships: as vhca_osm_table_new(). */
void sim_sm_init(struct sim_sm *sm, bool both_memberships);
void sim_sm_done(struct sim_sm *sm);
/* A binding; check: what it would be told, without doing anything. Errors: the table's. */
int sim_sm_bind(struct sim_sm *sm, const struct vhca_osm_binding *want, bool check,
		struct vhca_error *err);
/* No port is pinned: each host is whose it says to be. Errors: the table's; not_the_owner. */
int sim_sm_withdraw(struct sim_sm *sm, uint64_t vguid, uint64_t epoch, uint64_t port_guid,
		    struct vhca_error *err);
/* A report, as the outbox has it: either of these. */
int sim_sm_take(struct sim_sm *sm, const struct vhca_sm_binding *b, struct vhca_error *err);
/* What a bound one would be told, without doing anything. */
int sim_sm_ask(struct sim_sm *sm, const struct vhca_sm_binding *b, struct vhca_error *err);
/* What is known of the vGUID, also if it is withdrawn; NULL = nothing. */
const struct vhca_osm_binding *sim_sm_find(const struct sim_sm *sm, uint64_t vguid);
/* The same as members of a refusal. */
void sim_sm_add_known(const struct sim_sm *sm, uint64_t vguid, struct json_object *doc);

#endif
