/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_REPORTS_H
#define VHCA_OPENSM_BINDINGS_REPORTS_H
/*
 * What agents report: checked against the subnet, then put into the table. A report is in memory
 * only until vhca_osm_service_commit().
 *
 * A binding may take its vGUID's alias away from where the SA has it (eviction). The driver at the
 * new place asks the SA for the alias itself, and the SA declines that as long as the alias stands
 * elsewhere: usually because the former owner's host died, or never asked the SA to delete it. So
 * the alias goes from there. It is never re-pointed to the new place: then the driver's own request
 * would be declined as well.
 *
 * An alias is evicted if it stands at another port or index than the report says, and
 *  - the report has a higher epoch than the one known before: who had it then has lost it, wherever
 *    that is; or
 *  - the report names the port where it stands as the one that it came from.
 * So a report without a known epoch before it (an SM that lost its state), and one that is
 * repeated, evicts nobody else: the alias may stand at a newer owner, whose report is under way.
 *
 * The former owner's late SA Delete does no harm after that. It names an index of its own port's
 * GUID table, the SA looks up there which GUID that is, and after an eviction that entry is empty:
 * the SA answers with success and does nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/ratelimit.h"
#include "opensm/bindings/conf.h"
#include "opensm/bindings/nodes.h"
#include "opensm/bindings/subnet.h"
#include "opensm/bindings/table.h"

/*
 * A report's epoch is below the first of these, or above the known one by no more than the second.
 * A take-over goes to the next multiple of 2^32, by the agent's own report, and a stand-by that
 * takes over may have missed any number of them. So no request brings a vGUID to its last epoch,
 * and to get there step by step takes 2^27 of them.
 */
#define VHCA_OSM_EPOCH_FREE (UINT64_C(1) << 48)
#define VHCA_OSM_EPOCH_JUMP (UINT64_C(1) << 36)

/* What a report is checked against and put into; all borrowed. */
struct vhca_osm_reports {
	const struct vhca_osm_subnet *subnet;
	struct vhca_osm_table *table;
	const struct vhca_osm_conf *conf; /* its policy and its agents */
	struct vhca_ratelimit *refusals;  /* of who spoke for others' ports */
};

struct vhca_osm_eviction {
	bool evicts;		  /* will be, or was evicted */
	struct vhca_osm_alias at; /* from there */
	unsigned int smps;	  /* GUIDInfo blocks that OpenSM writes */
};

/* ---- whose word; by: NULL = bound to no node ---- */
/*
 * May it speak for the port? Errors: not_master; those of vhca_osm_node_check(), which are logged;
 * table_full, of a new port of a node that has VHCA_OSM_NODE_PORTS_MAX, and none that has left the
 * subnet.
 */
int vhca_osm_report_check_speaker(const struct vhca_osm_reports *reports,
				  const struct vhca_osm_node *by, uint64_t port_guid,
				  struct vhca_error *err);
/* May it withdraw the vGUID? Errors: those of check_speaker(); not_the_owner. */
int vhca_osm_report_check_withdrawer(const struct vhca_osm_reports *reports,
				     const struct vhca_osm_node *by, uint64_t vguid, uint64_t epoch,
				     uint64_t port_guid, struct vhca_error *err);
/*
 * What check_speaker() has allowed was accepted: a port of the subnet that is nobody's is this
 * node's from now on. A port of the node's that has left the subnet gives its place up if there is
 * no other room.
 */
int vhca_osm_report_pin(struct vhca_osm_reports *reports, const struct vhca_osm_node *by,
			uint64_t port_guid, struct vhca_error *err);
/*
 * The port is whose agent speaks for it next. A stand-by, too, has pins of its own. Error:
 * unknown_pin.
 */
int vhca_osm_report_unpin(struct vhca_osm_reports *reports, uint64_t port_guid,
			  struct vhca_error *err);
/*
 * Drops the pins of nodes that [agents] does not list any more, because a node was renamed or has
 * gone: nobody else would be let in there.
 */
void vhca_osm_report_drop_strangers(struct vhca_osm_reports *reports);

/* ---- bindings and keys ---- */
/*
 * Takes over a binding, and evicts its alias as said above. from_port: where the report says that
 * the vGUID came from, 0 = not said. Beside the table's errors: not_master, unknown_port,
 * unknown_partition, guid_is_a_port, epoch_too_high.
 */
int vhca_osm_report_put(struct vhca_osm_reports *reports, const struct vhca_osm_binding *want,
			uint64_t from_port, struct vhca_osm_eviction *ret, struct vhca_error *err);
/* What the same call would do and return, without doing anything. */
int vhca_osm_report_prepare(const struct vhca_osm_reports *reports,
			    const struct vhca_osm_binding *want, uint64_t from_port,
			    struct vhca_osm_eviction *ret, struct vhca_error *err);
/*
 * Have its keys room where its vGUID's own port goes to? vport: of the HCA with its port, as in
 * lid_ops.h. Of a place that is none, somebody else says so. Errors: the table's.
 */
int vhca_osm_report_check_place(const struct vhca_osm_reports *reports,
				const struct vhca_osm_binding *want, uint16_t vport,
				struct vhca_error *err);
int vhca_osm_report_withdraw(struct vhca_osm_reports *reports, uint64_t vguid, uint64_t epoch,
			     uint64_t port_guid, struct vhca_error *err);
/* Nothing fences it any more: for an epoch that nobody can go on from. Errors: the table's. */
int vhca_osm_report_forget(struct vhca_osm_reports *reports, uint64_t vguid,
			   struct vhca_error *err);
int vhca_osm_report_declare(struct vhca_osm_reports *reports, uint64_t port_guid,
			    const uint16_t *pkeys, size_t n, struct vhca_error *err);

/* ---- a node that does not come back ---- */
/*
 * It has withdrawn nothing: its port's bindings, keys and pin stay, as those of one that is off do.
 * Only an operator can tell the two apart. A binding whose vGUID the subnet shows anywhere is left:
 * its guest runs elsewhere by now, and the report of that is under way.
 */
struct vhca_osm_gone {
	uint64_t *vguids; /* to be withdrawn, or that were; the caller frees them */
	size_t n, left;	  /* left: bindings that stay */
};
/*
 * What forget_port() would withdraw. Errors: not_master, sweep_in_progress; port_is_there, it is in
 * the subnet; nothing_known.
 */
int vhca_osm_report_find_gone(const struct vhca_osm_reports *reports, uint64_t port_guid,
			      struct vhca_osm_gone *ret, struct vhca_error *err);
/*
 * Withdraws these bindings at their own epochs, which fences their owner, and forgets what else is
 * known of the port. It leaves a tombstone of its own: its LID, and those of its VFs' own GUIDs,
 * are given back as a withdrawn guest's. Errors: those of find_gone(), by which nothing has
 * changed; or that there is no memory, and what was not done is done by another call.
 */
int vhca_osm_report_forget_port(struct vhca_osm_reports *reports, uint64_t port_guid,
				struct vhca_osm_gone *ret, struct vhca_error *err);

#endif
