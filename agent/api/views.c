/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/views.h"

#include "agent/migration/vfs.h"
#include "common/base/file.h"
#include "common/http/json.h"
#include "conf/conf.h"
#include "pkey/guid.h"

static struct json_object *view_port(const struct vhca_port_state *port)
{
	struct json_object *o = json_object_new_object(), *keys = json_object_new_array();

	vhca_json_add_u64(o, "port", port->port);
	vhca_json_add_guid(o, "guid", port->port_guid);
	vhca_json_add_u64(o, "lid", port->lid);
	vhca_json_add_u64(o, "sm_lid", port->sm_lid);
	vhca_json_add_string(o, "state", vhca_port_state_to_string(port->state));
	for (unsigned int i = 0; i < port->n_pkeys; i++)
		if (port->pkeys[i])
			json_object_array_add(
				keys, json_object_new_string(VHCA_PKEY_STR(port->pkeys[i])));
	vhca_json_add(o, "pkeys", keys);
	return o;
}

struct json_object *api_view_hca(const struct vhca_hca *hca, uint64_t busy_since_ms)
{
	struct json_object *o = json_object_new_object(), *able = json_object_new_object(),
			   *ports = json_object_new_array();
	const struct vhca_identity_ops *ops = vhca_hca_identity(hca);

	vhca_json_add_string(o, "bdf", VHCA_BDF_STR(hca->facts.bdf));
	vhca_json_add_bool(o, "present", hca->present);
	vhca_json_add_string(o, "family", vhca_family_to_string(hca->facts.family));
	vhca_json_add_string(o, "driver", hca->facts.driver[0] ? hca->facts.driver : NULL);
	vhca_json_add_string(o, "ibdev", hca->facts.ibdev[0] ? hca->facts.ibdev : NULL);
	vhca_json_add_guid(o, "node_guid", hca->facts.node_guid);
	vhca_json_add(o, "numa",
		      hca->facts.numa_node < 0 ? NULL : json_object_new_int(hca->facts.numa_node));
	vhca_json_add_string(o, "fabric", hca->fabric);
	vhca_json_add_bool(o, "managed", hca->managed);
	vhca_json_add_u64(o, "total_vfs", hca->facts.total_vfs);
	vhca_json_add_u64(o, "num_vfs", hca->facts.num_vfs);
	vhca_json_add(o, "want_vfs",
		      hca->want_vfs == VHCA_CONF_VFS_KEEP ? NULL
							  : json_object_new_int(hca->want_vfs));
	vhca_json_add(o, "busy_since_ms",
		      busy_since_ms
			      ? json_object_new_int64((int64_t)(vhca_now_ms() - busy_since_ms))
			      : NULL);
	vhca_json_add_u64(o, "port", hca->port);
	vhca_json_add_u64(o, "want_port", hca->want_port);
	vhca_json_add_string(o, "problem", hca->problem[0] ? hca->problem : NULL);
	/* What nobody should expect: on mlx5 the host has no P_Key map and sees no grant. */
	vhca_json_add_bool(able, "host_pkey_map", ops->host_pkey_map);
	vhca_json_add_bool(able, "sees_grant", ops->sees_grant);
	vhca_json_add_bool(able, "link_policy", ops->link_policy);
	vhca_json_add(o, "capabilities", able);
	for (unsigned int i = 0; i < VHCA_PORTS_MAX; i++)
		if (hca->ports[i].port)
			json_object_array_add(ports, view_port(&hca->ports[i]));
	vhca_json_add(o, "ports", ports);
	return o;
}

static struct json_object *view_map(const struct vhca_vf *vf)
{
	struct json_object *list = json_object_new_array();

	for (unsigned int i = 0; vf->hw_known && i < vf->hw.n_virtual; i++) {
		struct json_object *o;

		if (vf->hw.map[i] == VHCA_PKEY_UNMAPPED)
			continue;
		o = json_object_new_object();
		vhca_json_add_u64(o, "index", i);
		vhca_json_add_string(o, "pkey",
				     vf->hw.value[i] ? VHCA_PKEY_STR(vf->hw.value[i]) : NULL);
		vhca_json_add_u64(o, "physical", (uint64_t)vf->hw.map[i]);
		json_object_array_add(list, o);
	}
	return list;
}

/* Keys that were asked for and are not in the map. Without a map: those that the SM has not
 * accepted. */
static struct json_object *view_missing(const struct vhca_vf *vf)
{
	struct json_object *list = json_object_new_array();
	const struct vhca_claim *c = vf->claim;
	bool lacks_all = c && vf->hw.sm_pkeys &&
			 (c->word != VHCA_WORD_YES || vhca_claim_is_refused(c) ||
			  vf->hw.policy == VHCA_LINK_DOWN);

	for (unsigned int i = 0; c && vf->hw_known && i < c->identity.n_pkeys; i++)
		if (vf->hw.sm_pkeys ? lacks_all : vf->hw.map[i] == VHCA_PKEY_UNMAPPED)
			json_object_array_add(
				list, json_object_new_string(VHCA_PKEY_STR(c->identity.pkeys[i])));
	return list;
}

static uint64_t guid_of(const struct vhca_claim *c)
{
	return c && !vhca_guid_is_stand_in(c->identity.guid) ? c->identity.guid : VHCA_GUID_NONE;
}

void api_add_vf_state(struct json_object *o, const struct vhca_vf *vf)
{
	vhca_json_add_string(o, "state", vhca_vf_state_to_string(vf->state));
	vhca_json_add_string(o, "reason", vf->reason[0] ? vf->reason : NULL);
}

struct json_object *api_view_vf(const struct vhca_vf *vf, bool reserved)
{
	struct json_object *o = json_object_new_object();
	enum vhca_effect effect = vhca_vf_effect(vf);
	const struct vhca_claim *c = vf->claim;
	bool asked = vf->hw_known && vf->hw.requested != VHCA_GUID_ALL1;
	bool vport = vf->hw_known && vhca_hca_identity(vf->hca)->link_policy;

	vhca_json_add_string(o, "bdf", VHCA_BDF_STR(vf->bdf));
	vhca_json_add_string(o, "pf", VHCA_BDF_STR(vf->hca->facts.bdf));
	vhca_json_add_u64(o, "index", vf->index);
	vhca_json_add(o, "numa",
		      vf->hca->facts.numa_node < 0 ? NULL
						   : json_object_new_int(vf->hca->facts.numa_node));
	vhca_json_add_string(o, "fabric", vf->hca->fabric);
	vhca_json_add_bool(o, "reserved", reserved);
	vhca_json_add_bool(o, "present", vf->present);
	vhca_json_add_string(o, "driver", vf->driver[0] ? vf->driver : NULL);
	vhca_json_add(o, "iommu_group",
		      vf->iommu_group < 0 ? NULL : json_object_new_int(vf->iommu_group));
	api_add_vf_state(o, vf);
	vhca_json_add_string(o, "waits_for",
			     c ? vhca_claim_await_to_string(vhca_claim_awaits(c)) : NULL);
	vhca_json_add_u64(o, "since_ms", vf->since_ms);
	vhca_json_add_string(o, "effect", effect ? vhca_effect_to_string(effect) : NULL);
	vhca_json_add_u64(o, "failures", vf->failures);
	vhca_json_add_string(o, "pci_error", vhca_pci_error_to_string(vf->pci_error));
	vhca_json_add_string(o, "domain", c ? c->domain_name : NULL);
	vhca_json_add_string(o, "name", c ? c->name : NULL);
	vhca_json_add_string(o, "claim", c ? VHCA_UUID_STR(&c->id) : NULL);
	vhca_json_add_guid(o, "guid", guid_of(c));
	vhca_json_add_guid(o, "requested", asked ? vf->hw.requested : 0);
	vhca_json_add_guid(o, "node_guid", vport && asked ? vf->hw.node_guid : 0);
	vhca_json_add_string(o, "link_policy",
			     vport ? vhca_link_policy_to_string(vf->hw.policy) : NULL);
	vhca_json_add_bool(o, "granted", vf->granted);
	vhca_json_add(o, "gid_index", vf->hw_known ? json_object_new_int(vf->hw.gid_index) : NULL);
	vhca_json_add(o, "pkeys", view_map(vf));
	vhca_json_add(o, "missing", view_missing(vf));
	return o;
}

struct json_object *api_view_moving_vf(const struct vhca_claim *c)
{
	struct vhca_mig_vf vf = vhca_mig_vf_of(c);
	struct json_object *o = vhca_mig_vf_to_json(&vf);

	vhca_json_add_string(o, "state", vhca_vf_state_to_string(c->vf->state));
	return o;
}

struct json_object *api_view_claim(const struct vhca_claim *c)
{
	static const char *const told[] = {"not_yet", "accepted", "unreachable", "refused",
					   "superseded"};
	struct json_object *o = json_object_new_object();

	vhca_json_add_string(o, "id", VHCA_UUID_STR(&c->id));
	vhca_json_add_string(o, "domain", VHCA_UUID_STR(&c->domain));
	vhca_json_add_string(o, "domain_name", c->domain_name);
	vhca_json_add_string(o, "name", c->name);
	vhca_json_add_string(o, "fabric", c->fabric);
	vhca_json_add_string(o, "way", vhca_origin_to_string(c->origin));
	vhca_json_add_string(o, "bdf", VHCA_BDF_STR(c->vf->bdf));
	api_add_vf_state(o, c->vf);
	vhca_json_add_guid(o, "guid", guid_of(c));
	vhca_json_add_u64(o, "epoch", c->epoch);
	vhca_json_add_pkeys(o, "pkeys", c->identity.pkeys, c->identity.n_pkeys);
	vhca_json_add_u64(o, "created_ms", c->created_ms);
	vhca_json_add_bool(o, "ending", c->end != VHCA_END_NONE);
	vhca_json_add_bool(o, "reserved", c->custody == VHCA_CUSTODY_RESERVED);
	vhca_json_add_string(o, "waits_for", vhca_claim_await_to_string(vhca_claim_awaits(c)));
	vhca_json_add(o, "lease", c->lease_s ? json_object_new_int64(c->lease_s) : NULL);
	vhca_json_add(o, "lease_ends_ms",
		      c->lease_ends_ms ? json_object_new_int64((int64_t)c->lease_ends_ms) : NULL);
	vhca_json_add_string(o, "sm", told[c->sm_answer]);
	vhca_json_add_string(o, "sm_reason", c->sm_answer_reason[0] ? c->sm_answer_reason : NULL);
	vhca_json_add(o, "lid_follows", c->follow_lid ? json_object_new_int(c->follow_lid) : NULL);
	vhca_json_add_string(o, "lid_reason", c->lid_reason[0] ? c->lid_reason : NULL);
	return o;
}

struct json_object *api_view_claims(const struct vhca_model *m, const struct vhca_uuid *domain)
{
	struct json_object *list = json_object_new_array();
	const struct vhca_claim *c;

	TAILQ_FOREACH (c, &m->claims, link)
		if (vhca_uuid_equal(&c->domain, domain))
			json_object_array_add(list, api_view_claim(c));
	return list;
}

uint16_t api_find_key(const uint16_t *pkeys, unsigned int n, uint16_t base)
{
	for (unsigned int i = 0; i < n; i++)
		if (pkeys[i] && vhca_pkey_base(pkeys[i]) == base)
			return pkeys[i];
	return 0;
}

uint16_t api_claim_key(const struct vhca_claim *claim, uint16_t pkey)
{
	if (vhca_claim_is_ending(claim))
		return 0;
	return api_find_key(claim->identity.pkeys, claim->identity.n_pkeys, vhca_pkey_base(pkey));
}

static const char *guid_wish(char buf[static VHCA_GUID_STRLEN], uint64_t guid)
{
	if (guid == VHCA_GUID_BY_SM)
		return "sm";
	return guid ? vhca_guid_format(buf, guid) : "auto";
}

static struct json_object *view_requests(const struct vhca_domain *dom)
{
	struct json_object *list = json_object_new_array();

	for (unsigned int i = 0; i < dom->info->n_requests; i++) {
		const struct vhca_vf_request *r = &dom->info->requests[i];
		const struct vhca_error *problem = vhca_domain_problem(dom, r->name);
		struct json_object *o = json_object_new_object();
		char guid[VHCA_GUID_STRLEN];

		vhca_json_add_string(o, "name", r->name);
		vhca_json_add_string(o, "partition", r->partition);
		vhca_json_add_string(o, "guid", guid_wish(guid, r->guid));
		vhca_json_add_string(o, "fabric", r->fabric);
		vhca_json_add_string(o, "problem", problem ? problem->msg : NULL);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *view_attachment(const struct vhca_claim *c)
{
	struct json_object *o = json_object_new_object();

	vhca_json_add_string(o, "name", c->name);
	vhca_json_add_string(o, "bdf", VHCA_BDF_STR(c->vf->bdf));
	api_add_vf_state(o, c->vf);
	vhca_json_add_guid(o, "guid", guid_of(c));
	vhca_json_add_bool(o, "granted", c->vf->granted);
	vhca_json_add_string(o, "guest_address", c->has_guest ? VHCA_BDF_STR(c->guest) : NULL);
	vhca_json_add_string(o, "problem", c->differs.kind ? c->differs.msg : NULL);
	return o;
}

struct json_object *api_view_domain(struct vhca_model *m, struct vhca_domain *dom)
{
	struct json_object *o = json_object_new_object(), *vfs = json_object_new_array();
	char problem[VHCA_REASON_MAX];
	struct vhca_claim *c;

	vhca_json_add_string(o, "uuid", VHCA_UUID_STR(&dom->info->uuid));
	vhca_json_add_string(o, "name", dom->info->name);
	vhca_json_add_bool(o, "incoming", dom->incoming);
	vhca_json_add_bool(o, "paused", dom->info->paused);
	vhca_error_text(&dom->request_error, problem, sizeof(problem));
	vhca_json_add_string(o, "problem", problem[0] ? problem : NULL);
	vhca_json_add_string(o, "unreadable", dom->unreadable.kind ? dom->unreadable.msg : NULL);
	vhca_json_add_u64(o, "free_root_ports", dom->info->free_root_ports);
	vhca_json_add(o, "requests", view_requests(dom));
	TAILQ_FOREACH (c, &m->claims, link)
		if (vhca_uuid_equal(&c->domain, &dom->info->uuid))
			json_object_array_add(vfs, view_attachment(c));
	vhca_json_add(o, "vfs", vfs);
	return o;
}
