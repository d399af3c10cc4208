/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/bindings/reports.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/message_ids.h"
#include "common/base/text.h"
#include "opensm/bindings/found_ports.h"

/* ---- checks ---- */

/* For keys beside the default partition's one or two. */
static size_t room_at(const struct vhca_osm_reports *reports, const struct vhca_osm_port_info *info)
{
	unsigned int reserved = reports->conf->policy.both_memberships ? 2 : 1;

	if (!info->pkey_cap || info->pkey_cap >= VHCA_OSM_PORT_PKEYS_MAX + reserved)
		return VHCA_OSM_PORT_PKEYS_MAX;
	return info->pkey_cap > reserved ? info->pkey_cap - reserved : 0;
}

static int check_port(const struct vhca_osm_reports *reports, uint64_t guid, size_t *ret_pkeys_max,
		      struct vhca_error *err)
{
	struct vhca_osm_port_info info;
	int r;

	if (!reports->subnet->ops->find_port(reports->subnet->ctx, guid, &info)) {
		r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_UNKNOWN_PORT, 0,
				   "port %s is not in the subnet now", VHCA_GUID_STR(guid));
		vhca_error_hint(err, "the port must be up and discovered by the subnet manager");
		return r;
	}
	*ret_pkeys_max = room_at(reports, &info);
	return 0;
}

static int check_pkeys(const struct vhca_osm_reports *reports, const uint16_t *pkeys, size_t n,
		       struct vhca_error *err)
{
	int r;

	for (size_t i = 0; i < n; i++) {
		/*
		 * The default partition is the base file's business, see partitions.h; naming it
		 * changes nothing.
		 */
		if (vhca_pkey_base(pkeys[i]) == VHCA_PKEY_DEFAULT ||
		    vhca_osm_policy_allows(&reports->conf->policy, pkeys[i]))
			continue;
		r = vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_UNKNOWN_PARTITION, 0,
				   "partition %s may not be asked for", VHCA_PKEY_STR(pkeys[i]));
		vhca_error_hint(err, "see `allowed` in vhcasm.conf on the subnet manager's host");
		return r;
	}
	return 0;
}

/* Is a vGUID bound to the port with this GUID, beside the one that it may be itself? */
static bool is_port(const struct vhca_osm_table *t, uint64_t guid)
{
	const struct vhca_osm_port *p = vhca_osm_table_port(t, guid);
	const struct vhca_osm_binding *b = vhca_osm_table_find(t, guid);
	unsigned int own = b && !b->withdrawn && b->own_port;

	if (!p)
		return false;
	for (size_t i = 0; i < p->n_needs; i++)
		if (p->needs[i].bindings > own)
			return true;
	return false;
}

/* Its keys would be those of whoever has that port, and go with the binding. */
static int check_vguid(const struct vhca_osm_reports *reports, const struct vhca_osm_binding *want,
		       struct vhca_error *err)
{
	int r;

	if (want->vguid != want->port_guid && !is_port(reports->table, want->vguid) &&
	    !vhca_osm_node_of(&reports->conf->agents, reports->table, want->vguid) &&
	    !reports->subnet->ops->is_physical(reports->subnet->ctx, want->vguid))
		return 0;
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_GUID_IS_A_PORT, 0,
			   "%s is a port of the subnet, and no virtual one",
			   VHCA_GUID_STR(want->vguid));
	if (vhca_osm_table_pinned(reports->table, want->vguid))
		vhca_error_hint(err,
				"it is pinned as a port of %s's; if it is none, the role admin "
				"releases it: DELETE /v1/pins/%s",
				vhca_osm_table_pinned(reports->table, want->vguid),
				VHCA_GUID_STR(want->vguid));
	else
		vhca_error_hint(err, "give the VF another GUID; guid=\"auto\" is nobody else's");
	return r;
}

/* The last epoch there is would be nobody's to raise. */
static int check_jump(const struct vhca_osm_reports *reports, uint64_t vguid, uint64_t epoch,
		      struct vhca_error *err)
{
	const struct vhca_osm_binding *known = vhca_osm_table_find(reports->table, vguid);
	uint64_t max = known ? known->epoch + VHCA_OSM_EPOCH_JUMP : 0;
	int r;

	if (max < VHCA_OSM_EPOCH_FREE)
		max = VHCA_OSM_EPOCH_FREE;
	if (epoch <= max)
		return 0;
	r = vhca_error_set(err, VHCA_ERR_CONFLICT, "epoch_too_high", 0,
			   "%s: epoch %" PRIu64 " is above %" PRIu64
			   ", the highest that may be next",
			   VHCA_GUID_STR(vguid), epoch, max);
	vhca_error_hint(err,
			"whoever has the role admin may have it forgotten: DELETE "
			"/v1/epochs/%s",
			VHCA_GUID_STR(vguid));
	return r;
}

/* ---- whose word ---- */

/* A port of the node's that the subnet has not got, 0 = none: its place is free. */
static uint64_t gone_pin(const struct vhca_osm_reports *reports, const char *node)
{
	for (size_t i = 0; i < vhca_osm_table_pins(reports->table); i++) {
		const struct vhca_osm_pin *pin = vhca_osm_table_pin_at(reports->table, i);
		struct vhca_osm_port_info info;

		if (strcmp(pin->node, node) == 0 &&
		    !reports->subnet->ops->find_port(reports->subnet->ctx, pin->guid, &info))
			return pin->guid;
	}
	return 0;
}

static bool has_all_pins(const struct vhca_osm_reports *reports, const struct vhca_osm_node *by)
{
	size_t n = 0;

	for (size_t i = 0; i < vhca_osm_table_pins(reports->table); i++)
		n += strcmp(vhca_osm_table_pin_at(reports->table, i)->node, by->name) == 0;
	return n >= VHCA_OSM_NODE_PORTS_MAX;
}

static int check_pins(const struct vhca_osm_reports *reports, const struct vhca_osm_node *by,
		      uint64_t port_guid, struct vhca_error *err)
{
	if (vhca_osm_node_of(&reports->conf->agents, reports->table, port_guid) ||
	    !has_all_pins(reports, by) || gone_pin(reports, by->name))
		return 0;
	return vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_TABLE_FULL, 0,
			      "port %s: %s has %d ports", VHCA_GUID_STR(port_guid), by->name,
			      VHCA_OSM_NODE_PORTS_MAX);
}

int vhca_osm_report_check_speaker(const struct vhca_osm_reports *reports,
				  const struct vhca_osm_node *by, uint64_t port_guid,
				  struct vhca_error *err)
{
	int r = by ? vhca_osm_check_master(reports->subnet, err) : 0;
	bool physical;

	if (!by || r < 0)
		return r;
	physical = reports->subnet->ops->is_physical(reports->subnet->ctx, port_guid);
	r = vhca_osm_node_check(&reports->conf->agents, reports->table, by, port_guid, physical,
				err);
	/* It may go on for ever; the audit counts the rest. */
	if (r < 0 && vhca_ratelimit_allows(reports->refusals, by->name, vhca_now_ms()))
		vhca_log_warning("%s", err->msg);
	return r < 0 ? r : check_pins(reports, by, port_guid, err);
}

static void drop_pin(struct vhca_osm_reports *reports, uint64_t port_guid, const char *why)
{
	const char *node = vhca_osm_table_pinned(reports->table, port_guid);

	vhca_log_event(VHCA_LOG_NOTICE, VHCA_MESSAGE_PIN,
		       VHCA_LOG_FIELDS({"VHCA_PORT_GUID", VHCA_GUID_STR(port_guid)},
				       {"VHCA_NODE", ""}, {"VHCA_OLD_NODE", node}),
		       "port %s is not %s's any more: %s", VHCA_GUID_STR(port_guid), node, why);
	(void)vhca_osm_table_unpin(reports->table, port_guid);
}

int vhca_osm_report_pin(struct vhca_osm_reports *reports, const struct vhca_osm_node *by,
			uint64_t port_guid, struct vhca_error *err)
{
	struct vhca_osm_port_info info;
	uint64_t gone;
	int r;

	if (!by || vhca_osm_node_of(&reports->conf->agents, reports->table, port_guid) ||
	    !reports->subnet->ops->find_port(reports->subnet->ctx, port_guid, &info))
		return 0;
	gone = has_all_pins(reports, by) ? gone_pin(reports, by->name) : 0;
	if (gone)
		drop_pin(reports, gone, "it has gone, and the node has a new one");
	r = vhca_osm_table_pin(reports->table, port_guid, by->name, err);
	if (r == 0)
		vhca_log_event(VHCA_LOG_NOTICE, VHCA_MESSAGE_PIN,
			       VHCA_LOG_FIELDS({"VHCA_PORT_GUID", VHCA_GUID_STR(port_guid)},
					       {"VHCA_NODE", by->name}, {"VHCA_OLD_NODE", ""}),
			       "port %s is %s's from now on", VHCA_GUID_STR(port_guid), by->name);
	return r;
}

int vhca_osm_report_check_withdrawer(const struct vhca_osm_reports *reports,
				     const struct vhca_osm_node *by, uint64_t vguid, uint64_t epoch,
				     uint64_t port_guid, struct vhca_error *err)
{
	int r = vhca_osm_check_master(reports->subnet, err);

	if (r == 0 && port_guid)
		r = vhca_osm_report_check_speaker(reports, by, port_guid, err);
	return r < 0 ? r
		     : vhca_osm_node_check_withdrawal(&reports->conf->agents, reports->table, by,
						      vguid, epoch, port_guid, err);
}

int vhca_osm_report_unpin(struct vhca_osm_reports *reports, uint64_t port_guid,
			  struct vhca_error *err)
{
	int r;

	if (vhca_osm_table_pinned(reports->table, port_guid)) {
		drop_pin(reports, port_guid, "it was released");
		return 0;
	}
	r = vhca_error_set(err, VHCA_ERR_NOT_FOUND, "unknown_pin", 0, "port %s is pinned to nobody",
			   VHCA_GUID_STR(port_guid));
	vhca_error_hint(err, "a port in a line of [agents] in vhcasm.conf is released there");
	return r;
}

void vhca_osm_report_drop_strangers(struct vhca_osm_reports *reports)
{
	const struct vhca_osm_agents *agents = &reports->conf->agents;

	for (size_t i = vhca_osm_table_pins(reports->table); agents->listed && i-- > 0;) {
		const struct vhca_osm_pin *pin = vhca_osm_table_pin_at(reports->table, i);

		if (strncmp(pin->node, "token:", 6) == 0 || vhca_osm_agents_of(agents, pin->node))
			continue;
		drop_pin(reports, pin->guid, "it does not stand in [agents]");
	}
}

/* ---- eviction ---- */

/* What want means for its alias, before it is put into the table. */
static void plan_eviction(const struct vhca_osm_reports *reports,
			  const struct vhca_osm_binding *want, uint64_t from_port,
			  struct vhca_osm_eviction *ret)
{
	const struct vhca_osm_binding *known = vhca_osm_table_find(reports->table, want->vguid);
	struct vhca_osm_alias at;

	*ret = (struct vhca_osm_eviction){.evicts = false};
	if (!reports->subnet->ops->find_alias(reports->subnet->ctx, want->vguid, &at))
		return;
	if (at.gid_index == 0) /* a port's own GUID is no alias */
		return;
	if (at.port_guid == want->port_guid && at.gid_index == want->gid_index)
		return;
	ret->evicts = (known && want->epoch > known->epoch) || at.port_guid == from_port;
	ret->at = at;
	ret->smps = ret->evicts && at.gid_index > 0;
}

/* Does what was planned; ev then says what was done. */
static void evict(const struct vhca_osm_reports *reports, uint64_t vguid,
		  struct vhca_osm_eviction *ev)
{
	int n;

	if (!ev->evicts)
		return;
	n = reports->subnet->ops->evict(reports->subnet->ctx, vguid, &ev->at);
	ev->evicts = n >= 0;
	ev->smps = n >= 0 ? (unsigned int)n : 0;
	if (!ev->evicts) /* gone meanwhile; the binding's findings say where to */
		return;
	if (ev->at.gid_index < 0)
		vhca_log_notice("%s: evicted from port %s, where it had no index",
				VHCA_GUID_STR(vguid), VHCA_GUID_STR(ev->at.port_guid));
	else
		vhca_log_notice("%s: evicted from port %s index %d", VHCA_GUID_STR(vguid),
				VHCA_GUID_STR(ev->at.port_guid), ev->at.gid_index);
}

/* ---- bindings and keys ---- */

/* Of that port, or the port itself if it is nobody's. */
static const char *owner_of(const struct vhca_osm_reports *reports, uint64_t port_guid,
			    char buf[static VHCA_GUID_STRLEN])
{
	const char *node = vhca_osm_node_of(&reports->conf->agents, reports->table, port_guid);

	return node ? node : vhca_guid_format(buf, port_guid);
}

/* A migration, or a take-over. What a node moves between ports of its own nobody loses. */
static void tell_owner(const struct vhca_osm_reports *reports, const struct vhca_osm_binding *now,
		       uint64_t old_port)
{
	char epoch[24], old_buf[VHCA_GUID_STRLEN], new_buf[VHCA_GUID_STRLEN];
	const char *old_owner = owner_of(reports, old_port, old_buf);
	const char *owner = owner_of(reports, now->port_guid, new_buf);

	if (!old_port || strcmp(owner, old_owner) == 0)
		return;
	(void)snprintf(epoch, sizeof(epoch), "%" PRIu64, now->epoch);
	vhca_log_event(VHCA_LOG_INFO, VHCA_MESSAGE_OWNER,
		       VHCA_LOG_FIELDS({"VHCA_VGUID", VHCA_GUID_STR(now->vguid)},
				       {"VHCA_EPOCH", epoch},
				       {"VHCA_PORT_GUID", VHCA_GUID_STR(now->port_guid)},
				       {"VHCA_OLD_PORT_GUID", VHCA_GUID_STR(old_port)},
				       {"VHCA_NODE", owner}, {"VHCA_OLD_NODE", old_owner}),
		       "%s: was %s's, is %s's at epoch %" PRIu64, VHCA_GUID_STR(now->vguid),
		       old_owner, owner, now->epoch);
}

/*
 * Above half of the table nobody binds all that is left; what is there stays. Of an epoch that is
 * over, the table says so.
 */
static int check_share(const struct vhca_osm_reports *reports, const struct vhca_osm_binding *want,
		       struct vhca_error *err)
{
	const struct vhca_osm_binding *old = vhca_osm_table_find(reports->table, want->vguid);
	size_t here = vhca_osm_table_bindings_at(reports->table, want->port_guid);

	if ((old && want->epoch <= old->epoch) ||
	    (old && !old->withdrawn && old->port_guid == want->port_guid) ||
	    here < VHCA_OSM_BINDINGS_AT_MAX ||
	    vhca_osm_table_bindings(reports->table) <= VHCA_OSM_BINDINGS_MAX / 2)
		return 0;
	return vhca_error_set(err, VHCA_ERR_EXHAUSTED, VHCA_CODE_TABLE_FULL, 0,
			      "%s: port %s has %zu bindings, and more than half of %d are in use",
			      VHCA_GUID_STR(want->vguid), VHCA_GUID_STR(want->port_guid), here,
			      VHCA_OSM_BINDINGS_MAX);
}

static int check_report(const struct vhca_osm_reports *reports, const struct vhca_osm_binding *want,
			size_t *ret_pkeys_max, struct vhca_error *err)
{
	int r = vhca_osm_check_master(reports->subnet, err);

	if (r == 0)
		r = check_pkeys(reports, want->pkeys, want->n_pkeys, err);
	if (r == 0)
		r = check_port(reports, want->port_guid, ret_pkeys_max, err);
	if (r == 0)
		r = check_vguid(reports, want, err);
	if (r == 0)
		r = check_jump(reports, want->vguid, want->epoch, err);
	if (r == 0)
		r = check_share(reports, want, err);
	if (r == 0 && want->own_port) /* one that has gone for a while is as large as the other */
		(void)check_port(reports, want->vguid, ret_pkeys_max, NULL);
	return r;
}

int vhca_osm_report_prepare(const struct vhca_osm_reports *reports,
			    const struct vhca_osm_binding *want, uint64_t from_port,
			    struct vhca_osm_eviction *ret, struct vhca_error *err)
{
	struct vhca_osm_binding b = vhca_osm_own_port_of(reports->subnet, reports->table, want);
	size_t pkeys_max = 0;
	int r = check_report(reports, &b, &pkeys_max, err);

	if (r == 0)
		r = vhca_osm_table_check(reports->table, &b, pkeys_max, err);
	if (r == 0)
		plan_eviction(reports, want, from_port, ret);
	return r;
}

int vhca_osm_report_put(struct vhca_osm_reports *reports, const struct vhca_osm_binding *want,
			uint64_t from_port, struct vhca_osm_eviction *ret, struct vhca_error *err)
{
	struct vhca_osm_binding b = vhca_osm_own_port_of(reports->subnet, reports->table, want);
	size_t pkeys_max = 0;
	const struct vhca_osm_binding *old;
	uint64_t revision, old_port;
	int r = check_report(reports, &b, &pkeys_max, err);

	if (r < 0)
		return r;
	old = vhca_osm_table_find(reports->table, want->vguid);
	old_port = old && !old->withdrawn ? old->port_guid : 0;
	revision = vhca_osm_table_revision(reports->table);
	plan_eviction(reports, want, from_port, ret);
	r = vhca_osm_table_put(reports->table, &b, pkeys_max, err);
	if (r == 0)
		evict(reports, want->vguid, ret);
	if (r < 0 || revision == vhca_osm_table_revision(reports->table))
		return r;
	vhca_log_info("%s: bound to port %s index %u at epoch %" PRIu64 ", %u keys",
		      VHCA_GUID_STR(want->vguid), VHCA_GUID_STR(want->port_guid), want->gid_index,
		      want->epoch, want->n_pkeys);
	tell_owner(reports, want, old_port);
	return 0;
}

int vhca_osm_report_check_place(const struct vhca_osm_reports *reports,
				const struct vhca_osm_binding *want, uint16_t vport,
				struct vhca_error *err)
{
	struct vhca_osm_binding b = vhca_osm_own_port_of(reports->subnet, reports->table, want);
	struct vhca_osm_port_info info;
	int r;

	if (!reports->subnet->ops->find_vport(reports->subnet->ctx, want->port_guid, vport, &info))
		return 0;
	r = vhca_osm_table_check_place(reports->table, &b, room_at(reports, &info), err);
	if (r < 0)
		vhca_error_prefix(err, "vport %u of the HCA with port %s", vport,
				  VHCA_GUID_STR(want->port_guid));
	return r;
}

int vhca_osm_report_withdraw(struct vhca_osm_reports *reports, uint64_t vguid, uint64_t epoch,
			     uint64_t port_guid, struct vhca_error *err)
{
	uint64_t revision = vhca_osm_table_revision(reports->table);
	int r = vhca_osm_check_master(reports->subnet, err);

	if (r == 0)
		r = check_jump(reports, vguid, epoch, err);
	if (r < 0)
		return r;
	r = vhca_osm_table_withdraw(reports->table, vguid, epoch, port_guid, err);
	if (r == 0 && revision != vhca_osm_table_revision(reports->table))
		vhca_log_info("%s: withdrawn at epoch %" PRIu64, VHCA_GUID_STR(vguid), epoch);
	return r;
}

int vhca_osm_report_forget(struct vhca_osm_reports *reports, uint64_t vguid, struct vhca_error *err)
{
	int r = vhca_osm_check_master(reports->subnet, err);

	return r < 0 ? r : vhca_osm_table_forget(reports->table, vguid, err);
}

int vhca_osm_report_declare(struct vhca_osm_reports *reports, uint64_t port_guid,
			    const uint16_t *pkeys, size_t n, struct vhca_error *err)
{
	size_t pkeys_max = 0;
	int r = vhca_osm_check_master(reports->subnet, err);

	if (r == 0)
		r = check_pkeys(reports, pkeys, n, err);
	if (r == 0 && n > 0) /* a port that has gone may still give back its keys */
		r = check_port(reports, port_guid, &pkeys_max, err);
	if (r == 0)
		r = vhca_osm_table_declare(reports->table, port_guid, pkeys, n, pkeys_max, err);
	return r;
}

/* ---- a node that does not come back ---- */

static int check_gone(const struct vhca_osm_reports *reports, uint64_t port_guid,
		      struct vhca_error *err)
{
	const struct vhca_osm_subnet *subnet = reports->subnet;
	struct vhca_osm_port_info info;
	struct vhca_osm_status status;
	int r = vhca_osm_check_master(subnet, err);

	if (r < 0)
		return r;
	subnet->ops->status(subnet->ctx, &status);
	if (!status.ready)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "sweep_in_progress", 0,
				      "the first sweep is not complete: who has gone is not known");
	if (subnet->ops->find_port(subnet->ctx, port_guid, &info))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "port_is_there", 0,
				      "port %s is in the subnet now", VHCA_GUID_STR(port_guid));
	if (vhca_osm_table_bindings_at(reports->table, port_guid) == 0 &&
	    !vhca_osm_table_port(reports->table, port_guid) &&
	    !vhca_osm_table_pinned(reports->table, port_guid))
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "nothing_known", 0,
				      "port %s has no binding, no key and no node",
				      VHCA_GUID_STR(port_guid));
	return 0;
}

int vhca_osm_report_find_gone(const struct vhca_osm_reports *reports, uint64_t port_guid,
			      struct vhca_osm_gone *ret, struct vhca_error *err)
{
	const struct vhca_osm_table *t = reports->table;
	struct vhca_osm_alias at;
	int r = check_gone(reports, port_guid, err);

	*ret = (struct vhca_osm_gone){.n = 0};
	if (r < 0)
		return r;
	ret->vguids = calloc(vhca_osm_table_bindings_at(t, port_guid) + 1, sizeof(*ret->vguids));
	if (!ret->vguids)
		return vhca_error_no_memory(err, VHCA_GUID_STR(port_guid));
	for (size_t i = 0; i < vhca_osm_table_records(t); i++) {
		const struct vhca_osm_binding *b = vhca_osm_table_record(t, i);

		if (b->withdrawn || b->port_guid != port_guid)
			continue;
		if (reports->subnet->ops->find_alias(reports->subnet->ctx, b->vguid, &at) &&
		    at.port_guid != port_guid)
			ret->left++;
		else
			ret->vguids[ret->n++] = b->vguid;
	}
	return 0;
}

int vhca_osm_report_forget_port(struct vhca_osm_reports *reports, uint64_t port_guid,
				struct vhca_osm_gone *ret, struct vhca_error *err)
{
	/* As of a guest that had a port of its own, and has withdrawn it. */
	const struct vhca_osm_binding tombstone = {
		.vguid = port_guid, .epoch = 1, .port_guid = port_guid, .own_port = true};
	struct vhca_osm_table *t = reports->table;
	int r = vhca_osm_report_find_gone(reports, port_guid, ret, err);

	if (r == 0 && !vhca_osm_table_find(t, port_guid))
		r = vhca_osm_table_add_tombstone(t, &tombstone, err);
	for (size_t i = 0; r == 0 && i < ret->n; i++)
		r = vhca_osm_table_withdraw(t, ret->vguids[i],
					    vhca_osm_table_find(t, ret->vguids[i])->epoch,
					    port_guid, err);
	if (r == 0 && vhca_osm_table_port(t, port_guid))
		r = vhca_osm_table_declare(t, port_guid, NULL, 0, 0, err);
	if (r < 0)
		return r;
	if (vhca_osm_table_pinned(t, port_guid))
		drop_pin(reports, port_guid, "it has gone");
	vhca_log_notice("port %s has gone: %zu bindings are withdrawn, %zu are left",
			VHCA_GUID_STR(port_guid), ret->n, ret->left);
	return 0;
}
