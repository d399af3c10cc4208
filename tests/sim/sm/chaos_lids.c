/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where the LIDs of vGUIDs lead that have one of their own: as the master was told, by the rules of
 * docs/design/0010-vswitch.md. Under `vport` only what moves is told; all else a sweep finds.
 */
#include <assert.h>
#include <string.h>

#include "common/http/json.h"
#include "tests/sim/hosts/chaos.h"

static struct chaos_lid *lid_of(struct chaos *c, uint64_t vguid)
{
	unsigned int i = 0;

	while (i < c->n_lids && c->lids[i].vguid != vguid)
		i++;
	assert(i < LEDGER_IDS);
	if (i == c->n_lids)
		c->lids[c->n_lids++] = (struct chaos_lid){.vguid = vguid};
	return &c->lids[i];
}

/* A GUID that is new at a port is found by the next sweep; of one that moves, only by its vport. */
static void wait_for_vport(struct chaos_lid *lid, struct json_object *body)
{
	struct json_object *from = NULL;

	if (!json_object_object_get_ex(body, "from", &from))
		lid->port = 0;
	else if (!lid->port)
		(void)vhca_json_get_guid(from, "port_guid", &lid->port, NULL);
}

void chaos_lid_comes(struct chaos *c, const struct vhca_osm_binding *b, struct json_object *body,
		     struct json_object *where)
{
	struct chaos_lid *lid = lid_of(c, b->vguid);
	const char *policy = NULL;
	uint64_t vport = 0;

	(void)vhca_json_opt_string(body, "lid_policy", &policy, NULL);
	(void)vhca_json_opt_u64(where, "vport", UINT16_MAX, &vport, NULL);
	if (!policy && c->lid_policy == VHCA_LID_VPORT)
		wait_for_vport(lid, body);
	if (policy)
		*lid = (struct chaos_lid){
			.vguid = b->vguid, .port = b->port_guid, .vport = (uint16_t)vport};
}

void chaos_lid_ends(struct chaos *c, uint64_t vguid)
{
	if (c->lid_policy == VHCA_LID_DYNAMIC)
		lid_of(c, vguid)->port = 0;
}

void chaos_lids_forget(struct chaos *c)
{
	c->n_lids = 0;
}

bool chaos_lid_leads(struct chaos *c, uint64_t vguid, uint64_t port, uint16_t vport)
{
	const struct chaos_lid *lid = lid_of(c, vguid);

	if (c->lid_policy == VHCA_LID_DYNAMIC)
		return lid->port == port;
	return c->lid_policy != VHCA_LID_VPORT || !lid->port ||
	       (lid->port == port && lid->vport == vport);
}
