/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_DRAIN_H
#define VHCA_AGENT_MIGRATION_DRAIN_H
/*
 * A host that is emptied (docs/design/0007-external-drain.md): it takes no new claims, and its
 * guests with VFs go to peers, or, without peers, their VFs are parked. Journaled: a restart goes
 * on with it. What moves a guest is an ordinary migration.
 */
#include "agent/migration/migration.h"

#define VHCA_DRAIN_PARALLEL 4

struct vhca_drain;

struct vhca_drain_args {
	struct vhca_loop *loop;
	struct vhca_store *store;
	struct vhca_events *events;
	struct vhca_engine *engine;
	struct vhca_migrations *migrations;
	const struct vhca_conf *conf;
	unsigned int parallel; /* migrations at once; 0 = VHCA_DRAIN_PARALLEL */
	uint32_t retry_ms;     /* a guest that could not go is tried again first after; 0 = 5000 */
};

/* Loads whether it is on (blocking). */
int vhca_drain_new(const struct vhca_drain_args *args, struct vhca_drain **ret,
		   struct vhca_error *err);
/* Accepts NULL, returns NULL. */
struct vhca_drain *vhca_drain_free(struct vhca_drain *d);

/*
 * Begins, or goes on with other peers. n = 0: VFs are parked. New claims are refused from now on.
 */
int vhca_drain_begin(struct vhca_drain *d, const char *const *peers, unsigned int n,
		     struct vhca_error *err);
/* Parked guests get their VFs again; migrations under way go on. No error if it is not on. */
void vhca_drain_end(struct vhca_drain *d);

/* New claims are refused. */
bool vhca_drain_is_on(const struct vhca_drain *d);
/*
 * {drained, since_ms, peers[], done, claims, domains: [{domain, domain_name, state, reason}]};
 * caller puts it.
 */
struct json_object *vhca_drain_view(const struct vhca_drain *d);

#endif
