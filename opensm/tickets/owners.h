/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_TICKETS_OWNERS_H
#define VHCA_OPENSM_TICKETS_OWNERS_H
/*
 * Whose a vGUID is: the table of docs/design/0014-authority.md, for `[tickets] required`. Without
 * that everybody's word counts at a higher epoch, and nothing of this is asked or kept. Epochs stay
 * the table's business: what it refuses is not looked at here.
 *
 * Until `settle` is over, who has just become master knows only what the reports say: whoever
 * reports what has no owner is told to wait (owner_unknown), and remembered. Then it is his who has
 * asked, alone or by tickets of all others who have. Where two have asked that no ticket joins it
 * is nobody's (owner_disputed), until the role admin names somebody.
 *
 * One thread. `by` as in reports.h: who is bound to no node is believed.
 */
#include <sys/queue.h>

#include "opensm/bindings/conf.h"
#include "opensm/bindings/guid_map.h"
#include "opensm/bindings/reports.h"
#include "opensm/bindings/table.h"
#include "opensm/tickets/chain.h"

struct vhca_osm_owners {
	const struct vhca_osm_conf *conf;  /* its switch, and agents */
	struct vhca_osm_table *table;	   /* for what admin says */
	const struct vhca_http_auth *auth; /* of whom it vouches for; NULL = nobody */
	uint64_t settle_at;		   /* vhca_now_ms() */
	struct vhca_osm_guid_map bids;	   /* for what has no owner */
	size_t bids_max;
	LIST_HEAD(, vhca_osm_bidder) bidders;
	bool overrun; /* there was no room for a bid */
};

/* All borrowed, until done(). */
void vhca_osm_owners_init(struct vhca_osm_owners *owners, const struct vhca_osm_conf *conf,
			  struct vhca_osm_table *table, const struct vhca_http_auth *auth);
void vhca_osm_owners_done(struct vhca_osm_owners *owners);
/* This has become master. was_standby: what it knows is of an earlier time. */
void vhca_osm_owners_take_over(struct vhca_osm_owners *owners, bool was_standby);

/*
 * vhca_osm_report_put() of what vhca_osm_report_check_speaker() has allowed, if it is his; the
 * owner member of want is set then. Errors: not_the_owner, owner_unknown, owner_disputed; those of
 * vhca_osm_chain_read().
 */
int vhca_osm_owners_put(struct vhca_osm_owners *owners, struct vhca_osm_reports *reports,
			const struct vhca_osm_node *by, struct vhca_osm_binding *want,
			const struct vhca_osm_proof *proof, uint64_t from_port,
			struct vhca_osm_eviction *ret, struct vhca_error *err);
/* The node that a vGUID is with, and the one that may have it back. */
#define VHCA_OSM_SIGNERS_MAX 2
/*
 * By whose ticket what is not_the_owner's would be: names of certificates, borrowed; how many.
 */
size_t vhca_osm_owners_signers(const struct vhca_osm_owners *owners, uint64_t vguid,
			       const char *ret[static VHCA_OSM_SIGNERS_MAX]);
/*
 * vhca_osm_report_pin(), but of no port that may be a virtual GUID whose owner has not been heard
 * yet, or waits: as that he could not bind it any more. Then it is nobody's, and no error.
 */
int vhca_osm_owners_pin(const struct vhca_osm_owners *owners, struct vhca_osm_reports *reports,
			const struct vhca_osm_node *by, uint64_t port_guid, struct vhca_error *err);
/*
 * A withdrawal that vhca_osm_report_check_withdrawer() has allowed. *ret_nothing: it is right, and
 * of nothing that is known: nothing is to be kept of it, nor ended. Error: not_the_owner.
 */
int vhca_osm_owners_check_withdrawal(struct vhca_osm_owners *owners, const struct vhca_osm_node *by,
				     uint64_t vguid, uint64_t epoch, bool *ret_nothing,
				     struct vhca_error *err);
/*
 * vhca_osm_report_withdraw(), and what it means for the owner. keep: it is to be handed over, or to
 * be had again.
 */
int vhca_osm_owners_withdraw(struct vhca_osm_owners *owners, struct vhca_osm_reports *reports,
			     const struct vhca_osm_node *by, uint64_t vguid, uint64_t epoch,
			     uint64_t port_guid, bool keep, struct vhca_error *err);
/*
 * By whoever has the role admin: the vGUID is the node's with this port from now on, which binds it
 * at an epoch above the known one. Of another port it is withdrawn. Errors: the table's.
 */
int vhca_osm_owners_name(struct vhca_osm_owners *owners, uint64_t vguid, uint64_t port_guid,
			 struct vhca_error *err);

#endif
