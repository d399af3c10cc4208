/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/json.h"

#include "common/base/cleanup.h"
#include "common/http/json.h"
#include "config.h"
#include "opensm/http/view.h"

static struct json_object *array_of_findings(const struct vhca_osm_view *v)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; array && i < v->n_findings; i++) {
		struct json_object *text = json_object_new_string(v->findings[i]);

		if (json_object_array_add(array, text) < 0)
			(void)json_object_put(text);
	}
	return array;
}

static struct json_object *binding_to_json(const struct vhca_osm_service *s,
					   const struct vhca_osm_binding *b)
{
	struct json_object *obj = json_object_new_object();
	struct vhca_osm_view view;

	vhca_osm_view_get(vhca_osm_service_subnet(s), b, &view);
	vhca_json_add_guid(obj, "vguid", b->vguid);
	vhca_json_add_u64(obj, "epoch", b->epoch);
	vhca_json_add_string(obj, "state", vhca_osm_state_to_string(view.state));
	if (b->withdrawn)
		return obj;
	vhca_json_add_guid(obj, "port_guid", b->port_guid);
	vhca_json_add_u64(obj, "gid_index", b->gid_index);
	vhca_json_add_u64(obj, "lid", view.lid);
	vhca_json_add_pkeys(obj, "pkeys", b->pkeys, b->n_pkeys);
	vhca_json_add(obj, "findings", array_of_findings(&view));
	return obj;
}

void vhca_osm_json_add_known(struct json_object *problem, const struct vhca_osm_binding *known)
{
	vhca_json_add_u64(problem, "known_epoch", known->epoch);
	vhca_json_add_bool(problem, "bound", !known->withdrawn);
	vhca_json_add_guid(problem, "port_guid", known->withdrawn ? 0 : known->port_guid);
}

void vhca_osm_json_add_signers(struct json_object *problem, const struct vhca_osm_owners *owners,
			       uint64_t vguid)
{
	const char *signers[VHCA_OSM_SIGNERS_MAX];
	size_t n = vhca_osm_owners_signers(owners, vguid, signers);
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		(void)json_object_array_add(list, json_object_new_string(signers[i]));
	vhca_json_add(problem, "signers", list);
}

struct json_object *vhca_osm_json_relocation(const struct vhca_osm_service *s,
					     const struct vhca_osm_binding *b,
					     const struct vhca_osm_relocation *relocation)
{
	struct json_object *obj = json_object_new_object();
	struct vhca_osm_view view;

	vhca_osm_view_get(vhca_osm_service_subnet(s), b, &view);
	vhca_json_add_string(obj, "id", relocation->id);
	vhca_json_add_string(obj, "state", relocation->commit ? "committed" : "prepared");
	vhca_json_add_u64(obj, "lid", view.lid);
	vhca_json_add_u64(obj, "smps", relocation->eviction.smps);
	vhca_json_add_bool(obj, "evicted", relocation->eviction.evicts);
	vhca_json_add(obj, "findings", array_of_findings(&view));
	return obj;
}

struct json_object *vhca_osm_json_binding_now(const struct vhca_osm_service *s, uint64_t vguid)
{
	const struct vhca_osm_binding *b = vhca_osm_table_find(vhca_osm_service_table(s), vguid);
	/*
	 * A tombstone may be forgotten (limit) between the report and the answer; it was withdrawn
	 * all the same.
	 */
	const struct vhca_osm_binding gone = {.vguid = vguid, .withdrawn = true};

	return binding_to_json(s, b ? b : &gone);
}

struct json_object *vhca_osm_json_epoch(const struct vhca_osm_service *s, uint64_t vguid)
{
	const struct vhca_osm_binding *b = vhca_osm_table_find(vhca_osm_service_table(s), vguid);
	struct json_object *obj = json_object_new_object();

	vhca_json_add_guid(obj, "vguid", vguid);
	vhca_json_add_u64(obj, "epoch", b ? b->epoch : 0);
	return obj;
}

struct json_object *vhca_osm_json_pin(const struct vhca_osm_service *s, uint64_t port_guid)
{
	struct json_object *obj = json_object_new_object();

	vhca_json_add_guid(obj, "port_guid", port_guid);
	vhca_json_add_string(obj, "node",
			     vhca_osm_table_pinned(vhca_osm_service_table(s), port_guid));
	return obj;
}

static void append(struct json_object *array, struct json_object *row)
{
	if (!array || json_object_array_add(array, row) < 0)
		(void)json_object_put(row);
}

static struct json_object *list(const char *name, const struct vhca_osm_page *page,
				struct json_object *rows, uint64_t next)
{
	struct json_object *obj = json_object_new_object();

	vhca_json_cut_list(rows, page->fields);
	vhca_json_add(obj, name, rows);
	vhca_json_add_guid(obj, "next", next);
	return obj;
}

struct json_object *vhca_osm_json_bindings(const struct vhca_osm_service *s,
					   const struct vhca_osm_page *page)
{
	const struct vhca_osm_table *t = vhca_osm_service_table(s);
	struct json_object *rows = json_object_new_array();
	uint64_t last = 0;
	size_t n = 0;

	for (size_t i = vhca_osm_table_record_after(t, page->after); i < vhca_osm_table_records(t);
	     i++) {
		const struct vhca_osm_binding *b = vhca_osm_table_record(t, i);

		if (b->withdrawn || (page->port_guid && b->port_guid != page->port_guid))
			continue;
		if (n == page->limit)
			return list("bindings", page, rows, last);
		append(rows, binding_to_json(s, b));
		last = b->vguid;
		n++;
	}
	return list("bindings", page, rows, 0);
}

static bool is_declared(const struct vhca_osm_need *need)
{
	return need->declared;
}

static bool is_bound(const struct vhca_osm_need *need)
{
	return need->bindings > 0;
}

static bool is_inherited(const struct vhca_osm_need *need)
{
	return need->inherited;
}

static bool is_needed(const struct vhca_osm_need *need)
{
	(void)need;
	return true;
}

static struct json_object *member_to_json(uint64_t guid, const struct vhca_osm_port *p)
{
	static const struct {
		const char *key;
		bool (*has)(const struct vhca_osm_need *need);
	} lists[] = {{"pkeys", is_declared},
		     {"from_bindings", is_bound},
		     {"inherited", is_inherited},
		     {"effective", is_needed}};
	struct json_object *obj = json_object_new_object();

	vhca_json_add_guid(obj, "port_guid", guid);
	for (size_t l = 0; l < VHCA_ARRAY_SIZE(lists); l++) {
		uint16_t pkeys[VHCA_OSM_PORT_PKEYS_MAX];
		size_t n = 0;

		for (size_t i = 0; p && i < p->n_needs; i++)
			if (lists[l].has(&p->needs[i]))
				pkeys[n++] = p->needs[i].pkey;
		vhca_json_add_pkeys(obj, lists[l].key, pkeys, n);
	}
	return obj;
}

struct json_object *vhca_osm_json_member_now(const struct vhca_osm_service *s, uint64_t guid)
{
	return member_to_json(guid, vhca_osm_table_port(vhca_osm_service_table(s), guid));
}

struct json_object *vhca_osm_json_members(const struct vhca_osm_service *s,
					  const struct vhca_osm_page *page)
{
	const struct vhca_osm_table *t = vhca_osm_service_table(s);
	struct json_object *rows = json_object_new_array();
	uint64_t last = 0;
	size_t n = 0;

	for (size_t i = vhca_osm_table_port_after(t, page->after); i < vhca_osm_table_ports(t);
	     i++) {
		const struct vhca_osm_port *p = vhca_osm_table_port_at(t, i);

		if (page->port_guid && p->guid != page->port_guid)
			continue;
		if (n == page->limit)
			return list("members", page, rows, last);
		append(rows, member_to_json(p->guid, p));
		last = p->guid;
		n++;
	}
	return list("members", page, rows, 0);
}

struct json_object *vhca_osm_json_health(const struct vhca_osm_service *s, const char *status)
{
	struct json_object *obj = json_object_new_object();
	const char *problem = vhca_osm_service_problem(s);
	struct vhca_osm_status sm;

	vhca_osm_service_status(s, &sm);
	vhca_json_add_string(obj, "status", status);
	vhca_json_add_string(obj, "sm_state", sm.sm_state);
	vhca_json_add_guid(obj, "master_guid", sm.master_guid);
	vhca_json_add_u64(obj, "age_ms", sm.age_ms);
	vhca_json_add_string(obj, "plugin_version", VHCA_VERSION);
	vhca_json_add_string(obj, "opensm_version", sm.version);
	vhca_json_add_u64(obj, "bindings", vhca_osm_table_bindings(vhca_osm_service_table(s)));
	vhca_json_add_u64(obj, "ports", vhca_osm_table_ports(vhca_osm_service_table(s)));
	vhca_json_add_bool(obj, "in_effect", vhca_osm_service_in_effect(s));
	vhca_json_add_bool(obj, "rebuilding", vhca_osm_service_is_rebuilding(s));
	vhca_json_add_string(obj, "problem", problem[0] ? problem : NULL);
	return obj;
}
