/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/sm/sim_sm.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/http/json.h"
#include "opensm/bindings/nodes.h"

void sim_sm_init(struct sim_sm *sm, bool both_memberships)
{
	static const struct vhca_osm_limits limits = {4096, 4096, 4096, 4096};

	*sm = (struct sim_sm){.port_keys = SIM_SM_PORT_KEYS};
	if (vhca_osm_table_new(&limits, both_memberships, &sm->table) == 0)
		return;
	fprintf(stderr, "# SM: out of memory\n");
	abort();
}

void sim_sm_done(struct sim_sm *sm)
{
	sm->table = vhca_osm_table_free(sm->table);
}

int sim_sm_bind(struct sim_sm *sm, const struct vhca_osm_binding *want, bool check,
		struct vhca_error *err)
{
	return check ? vhca_osm_table_check(sm->table, want, sm->port_keys, err)
		     : vhca_osm_table_put(sm->table, want, sm->port_keys, err);
}

int sim_sm_withdraw(struct sim_sm *sm, uint64_t vguid, uint64_t epoch, uint64_t port_guid,
		    struct vhca_error *err)
{
	static const struct vhca_osm_agents none;
	static const struct vhca_osm_node host = {.name = "host"};
	int r = vhca_osm_node_check_withdrawal(&none, sm->table, &host, vguid, epoch, port_guid,
					       err);

	return r < 0 ? r : vhca_osm_table_withdraw(sm->table, vguid, epoch, port_guid, err);
}

static int bind(struct sim_sm *sm, const struct vhca_sm_binding *b, bool check,
		struct vhca_error *err)
{
	struct vhca_sm_binding copy = *b;
	const struct vhca_osm_binding want = {
		.vguid = b->vguid,
		.epoch = b->epoch,
		.port_guid = b->port_guid,
		.gid_index = b->gid_index,
		.lid = b->lid,
		.n_pkeys = b->n_pkeys,
		.pkeys = copy.pkeys,
	};

	return sim_sm_bind(sm, &want, check, err);
}

int sim_sm_ask(struct sim_sm *sm, const struct vhca_sm_binding *b, struct vhca_error *err)
{
	return bind(sm, b, true, err);
}

int sim_sm_take(struct sim_sm *sm, const struct vhca_sm_binding *b, struct vhca_error *err)
{
	return b->bound ? bind(sm, b, false, err)
			: sim_sm_withdraw(sm, b->vguid, b->epoch, b->port_guid, err);
}

const struct vhca_osm_binding *sim_sm_find(const struct sim_sm *sm, uint64_t vguid)
{
	return vhca_osm_table_find(sm->table, vguid);
}

void sim_sm_add_known(const struct sim_sm *sm, uint64_t vguid, struct json_object *doc)
{
	const struct vhca_osm_binding *b = sim_sm_find(sm, vguid);

	if (!b)
		return;
	vhca_json_add_u64(doc, "known_epoch", b->epoch);
	vhca_json_add_bool(doc, "bound", !b->withdrawn);
	if (!b->withdrawn)
		vhca_json_add_guid(doc, "port_guid", b->port_guid);
}
