/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/tickets/owners.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/base/log.h"

/* Of one node's bids: more than a host has VFs. */
#define BIDS_OF_MAX 1024

/* How many bids a node has. */
struct vhca_osm_bidder {
	LIST_ENTRY(vhca_osm_bidder) link;
	char node[VHCA_OSM_NODE_MAX];
	size_t n;	   /* never 0: it is freed with its last one */
	bool has_too_many; /* the log says so */
};

/* Who has asked for what has no owner. */
struct bid {
	uint64_t vguid; /* key; must stay first */
	struct vhca_osm_bidder *by;
	uint64_t epoch, port_guid;
	bool disputed;
	size_t n_signers; /* who have handed it on to him, and at which epochs */
	struct {
		char node[VHCA_NAME_MAX];
		uint64_t epoch;
	} signers[VHCA_TICKETS_MAX];
};

struct report {
	const struct vhca_osm_node *by;
	const struct vhca_osm_binding *want, *known; /* NULL = nothing is */
	const struct vhca_osm_proof *proof;
	struct vhca_osm_chain chain; /* of that, once it was looked at */
};

void vhca_osm_owners_init(struct vhca_osm_owners *owners, const struct vhca_osm_conf *conf,
			  struct vhca_osm_table *table, const struct vhca_http_auth *auth)
{
	*owners = (struct vhca_osm_owners){
		.conf = conf, .table = table, .auth = auth, .bids_max = VHCA_OSM_BINDINGS_MAX};
	vhca_osm_owners_take_over(owners, false);
}

void vhca_osm_owners_done(struct vhca_osm_owners *owners)
{
	struct vhca_osm_bidder *bidder;

	vhca_osm_guid_map_done(&owners->bids, free);
	while ((bidder = LIST_FIRST(&owners->bidders))) {
		LIST_REMOVE(bidder, link);
		free(bidder);
	}
	owners->overrun = false;
}

void vhca_osm_owners_take_over(struct vhca_osm_owners *owners, bool was_standby)
{
	vhca_osm_owners_done(owners);
	owners->settle_at = vhca_now_ms() + (uint64_t)owners->conf->settle_s * 1000;
	for (size_t i = 0;
	     owners->conf->tickets && was_standby && i < vhca_osm_table_records(owners->table);
	     i++) {
		const struct vhca_osm_binding *b = vhca_osm_table_record(owners->table, i);
		struct vhca_osm_owner owner = b->owner;

		if (owner.doubt == VHCA_OSM_DOUBT_NONE)
			owner.doubt = VHCA_OSM_DOUBT_STALE;
		vhca_osm_table_set_owner(owners->table, b->vguid, &owner);
	}
}

/* Of nobody's port, the one who says that it is his. */
static bool has_port(const struct vhca_osm_owners *o, const struct report *report,
		     uint64_t port_guid)
{
	const char *node = vhca_osm_node_of(&o->conf->agents, o->table, port_guid);

	return node ? strcmp(node, report->by->name) == 0 : port_guid == report->want->port_guid;
}

/* A master that gives way makes another one master before that has looked at what it knows. */
static bool has_taken_over(const struct vhca_osm_reports *reports)
{
	struct vhca_osm_status status;

	reports->subnet->ops->status(reports->subnet->ctx, &status);
	return status.ready;
}

/* ---- refusals ---- */

static void hint_at_admin(uint64_t vguid, struct vhca_error *err)
{
	vhca_error_hint(err,
			"whoever has the role admin says whose it is, if no ticket does: "
			"vhcasmctl owner %s PORT_GUID",
			VHCA_GUID_STR(vguid));
}

static int not_the_owner(const struct vhca_osm_node *by, const struct vhca_osm_binding *known,
			 struct vhca_error *err)
{
	int r = vhca_error_set(err, VHCA_ERR_DENIED, VHCA_CODE_NOT_THE_OWNER, 0,
			       "%s is port %s's at epoch %" PRIu64
			       ", and no ticket leads from there to %s",
			       VHCA_GUID_STR(known->vguid), VHCA_GUID_STR(known->port_guid),
			       known->epoch, by->name);

	vhca_error_hint(err,
			"whoever has the role admin says whose it is, if no ticket does: "
			"vhcasmctl owner %s PORT_GUID; then vhcactl takeover DOMAIN EVIDENCE on "
			"that host has its agent ask again",
			VHCA_GUID_STR(known->vguid));
	return r;
}

static int not_known_yet(uint64_t vguid, const char *why, struct vhca_error *err)
{
	int r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_OWNER_UNKNOWN, 0,
			       "whose %s is, is not known yet: %s", VHCA_GUID_STR(vguid), why);

	hint_at_admin(vguid, err);
	return r;
}

static int disputed(uint64_t vguid, struct vhca_error *err)
{
	int r = vhca_error_set(err, VHCA_ERR_CONFLICT, VHCA_CODE_OWNER_DISPUTED, 0,
			       "two nodes claim %s, and no ticket joins them",
			       VHCA_GUID_STR(vguid));

	vhca_error_hint(err,
			"whoever has the role admin says whose it is: vhcasmctl owner %s "
			"PORT_GUID",
			VHCA_GUID_STR(vguid));
	return r;
}

/* ---- who has asked ---- */

static struct vhca_osm_bidder *find_bidder(const struct vhca_osm_owners *o, const char *node)
{
	struct vhca_osm_bidder *bidder;

	LIST_FOREACH (bidder, &o->bidders, link)
		if (strcmp(bidder->node, node) == 0)
			break;
	return bidder;
}

static struct vhca_osm_bidder *add_bidder(struct vhca_osm_owners *o, const char *node)
{
	struct vhca_osm_bidder *bidder = calloc(1, sizeof(*bidder));

	if (!bidder)
		return NULL;
	(void)vhca_strcpy(bidder->node, sizeof(bidder->node), node); /* as its pin */
	LIST_INSERT_HEAD(&o->bidders, bidder, link);
	return bidder;
}

static void lose_bid(struct vhca_osm_bidder *bidder)
{
	if (bidder->n > 1) {
		bidder->n--;
		return;
	}
	LIST_REMOVE(bidder, link);
	free(bidder);
}

static void drop_bid(struct vhca_osm_owners *o, uint64_t vguid)
{
	struct bid *bid = vhca_osm_guid_map_remove(&o->bids, vguid);

	if (bid)
		lose_bid(bid->by);
	free(bid);
}

/* ---- what has an owner ---- */

/* The tickets of a party are not looked at: one that has expired since refuses nobody. */
static int read_chain(const struct vhca_osm_owners *o, struct report *report,
		      struct vhca_error *err)
{
	return vhca_osm_chain_read(o->auth, &o->conf->agents, report->want->vguid,
				   report->known ? report->known->epoch : 0, report->proof,
				   &report->chain, err);
}

/* By tickets, from who had it at an epoch; *ret_from as of vhca_osm_chain_follow(). */
static bool leads_here(const struct report *report, const char *node, uint64_t epoch,
		       uint64_t port_guid, uint64_t *ret_from)
{
	const struct vhca_osm_binding *want = report->want;
	const struct vhca_osm_step *last =
		vhca_osm_chain_follow(&report->chain, node, epoch, port_guid, ret_from);

	return last && strcmp(last->to->node, report->by->name) == 0 &&
	       last->port_guid == want->port_guid && last->epoch <= want->epoch;
}

size_t vhca_osm_owners_signers(const struct vhca_osm_owners *owners, uint64_t vguid,
			       const char *ret[static VHCA_OSM_SIGNERS_MAX])
{
	const struct vhca_osm_binding *known =
		owners->conf->tickets ? vhca_osm_table_find(owners->table, vguid) : NULL;
	const uint64_t parties[VHCA_OSM_SIGNERS_MAX] = {known ? known->port_guid : 0,
							known ? known->owner.other_port : 0};
	size_t n = 0;

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(parties); i++) {
		const char *node =
			vhca_osm_node_of(&owners->conf->agents, owners->table, parties[i]);
		const struct vhca_osm_agent *line =
			node ? vhca_osm_agents_of(&owners->conf->agents, node) : NULL;

		if (line)
			ret[n++] = line->certificate;
	}
	return n;
}

/* The other party may have had it back unheard, and handed it on. */
static int judge_stranger(const struct vhca_osm_owners *o, struct report *report,
			  struct vhca_osm_owner *ret, struct vhca_error *err)
{
	const struct vhca_osm_binding *known = report->known;
	const uint64_t parties[] = {known->port_guid, known->owner.other_port};
	struct vhca_error bad = VHCA_ERROR_INIT;

	if (!vhca_osm_node_of(&o->conf->agents, o->table, known->port_guid))
		return not_known_yet(known->vguid, "its last port has no node", err);
	(void)read_chain(o, report, &bad);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(parties); i++) {
		const char *node = vhca_osm_node_of(&o->conf->agents, o->table, parties[i]);

		if (node && leads_here(report, node, known->epoch, parties[i], &ret->other_port))
			return 0;
	}
	if (!bad.kind)
		return not_the_owner(report->by, known, err);
	hint_at_admin(known->vguid, &bad);
	if (err)
		*err = bad;
	return -EACCES;
}

static int judge_known(const struct vhca_osm_owners *o, struct report *report,
		       struct vhca_osm_owner *ret, struct vhca_error *err)
{
	const struct vhca_osm_binding *known = report->known;
	const struct vhca_osm_owner *owner = &known->owner;

	if (known->withdrawn && !owner->kept)
		return 0;
	if (has_port(o, report, known->port_guid))
		ret->other_port = owner->other_port;
	else if (owner->other_port && has_port(o, report, owner->other_port))
		ret->other_port = known->port_guid;
	else
		return judge_stranger(o, report, ret, err);
	return 0;
}

/* ---- what has none ---- */

/* Signers: those whose tickets lead to him. */
static void bid_set(struct bid *bid, const struct report *report)
{
	const struct vhca_osm_chain *chain = &report->chain;
	uint64_t below = report->want->epoch + 1, port_guid = report->want->port_guid;
	const char *node = report->by->name;

	bid->epoch = report->want->epoch;
	bid->port_guid = port_guid;
	bid->n_signers = 0;
	for (size_t i = chain->n; i-- > 0;) {
		const struct vhca_osm_step *step = &chain->steps[i];

		if (strcmp(step->to->node, node) != 0 || step->epoch >= below ||
		    (bid->n_signers == 0 && step->port_guid != port_guid))
			continue;
		node = step->from->node;
		below = step->epoch;
		(void)vhca_strcpy(bid->signers[bid->n_signers].node, sizeof(bid->signers[0].node),
				  node); /* same size */
		bid->signers[bid->n_signers++].epoch = step->epoch;
	}
}

/* Whose it is, nobody can tell any more: somebody may have asked first, and is not remembered. */
static void overrun(struct vhca_osm_owners *o)
{
	if (!o->overrun)
		vhca_log_error("%zu virtual GUIDs have been asked for, and there is room for no "
			       "more: whatever has no owner is disputed until OpenSM is started "
			       "again, or whoever has the role admin says whose it is: "
			       "vhcasmctl owner VGUID PORT_GUID",
			       o->bids.n);
	o->overrun = true;
}

/* More than one node's share is not remembered: it is told to wait all the same. */
static void bid_new(struct vhca_osm_owners *o, const struct report *report)
{
	struct vhca_osm_bidder *bidder = find_bidder(o, report->by->name);
	VHCA_AUTO_FREE struct bid *bid = NULL;

	if (bidder && bidder->n >= BIDS_OF_MAX) {
		if (!bidder->has_too_many)
			vhca_log_warning("%s has asked for %d virtual GUIDs without an owner, and "
					 "so many are remembered of a node: each of the others is "
					 "the next node's that asks for it",
					 bidder->node, BIDS_OF_MAX);
		bidder->has_too_many = true;
		return;
	}
	bid = o->bids.n < o->bids_max ? calloc(1, sizeof(*bid)) : NULL;
	if (bid)
		bid->vguid = report->want->vguid;
	if (!bid || vhca_osm_guid_map_add(&o->bids, bid) < 0) {
		overrun(o);
		return;
	}
	if (!bidder)
		bidder = add_bidder(o, report->by->name);
	if (!bidder) {
		(void)vhca_osm_guid_map_remove(&o->bids, bid->vguid);
		overrun(o);
		return;
	}
	bidder->n++;
	bid->by = bidder;
	bid_set(bid, report);
	(void)vhca_steal_ptr(&bid);
}

/* By tickets it goes to the node that has asked now. */
static void bid_pass(struct vhca_osm_owners *o, struct bid *bid, const struct report *report)
{
	struct vhca_osm_bidder *to = find_bidder(o, report->by->name);

	if (!to)
		to = add_bidder(o, report->by->name);
	if (!to)
		return;
	to->n++;
	lose_bid(bid->by);
	bid->by = to;
	bid_set(bid, report);
}

/* known: NULL = nothing: then it is not kept over a restart, after which all report anew. */
static void dispute(struct vhca_osm_owners *o, struct bid *bid,
		    const struct vhca_osm_binding *known, const char *other)
{
	struct vhca_osm_owner owner;

	if (bid->disputed)
		return;
	bid->disputed = true;
	if (known) {
		owner = known->owner;
		owner.doubt = VHCA_OSM_DOUBT_DISPUTED;
		vhca_osm_table_set_owner(o->table, bid->vguid, &owner);
	}
	vhca_log_error("%s: it is claimed by %s and %s, and no ticket joins them; whoever has the "
		       "role admin says whose it is: vhcasmctl owner %s PORT_GUID",
		       VHCA_GUID_STR(bid->vguid), bid->by->node, other, VHCA_GUID_STR(bid->vguid));
}

/* Somebody else has asked before. */
static void bid_compare(struct vhca_osm_owners *o, struct bid *bid, const struct report *report)
{
	const struct vhca_osm_binding *want = report->want;
	uint64_t signer;

	if (leads_here(report, bid->by->node, bid->epoch, bid->port_guid, &signer)) {
		bid_pass(o, bid, report);
		return;
	}
	/* Since he has asked: an older ticket may be over, which is not known here. */
	for (size_t i = 0; i < bid->n_signers; i++)
		if (strcmp(bid->signers[i].node, report->by->name) == 0 &&
		    bid->signers[i].epoch > want->epoch)
			return;
	dispute(o, bid, report->known, report->by->name);
}

/* Nobody else has asked. Whoever has parked it, or hands it over, need not have. */
static int judge_lone(struct vhca_osm_owners *o, struct bid *bid, struct report *report,
		      struct vhca_osm_owner *ret, struct vhca_error *err)
{
	const struct vhca_osm_binding *known = report->known;
	const char *owner;

	if (!known || !known->withdrawn || !known->owner.kept ||
	    judge_known(o, report, ret, NULL) == 0)
		return 0;
	owner = vhca_osm_node_of(&o->conf->agents, o->table, known->port_guid);
	if (!owner)
		return not_known_yet(known->vguid, "its last port has no node", err);
	dispute(o, bid, known, owner);
	return disputed(known->vguid, err);
}

static int judge_unknown(struct vhca_osm_owners *o, struct report *report,
			 struct vhca_osm_owner *ret, struct vhca_error *err)
{
	struct bid *bid = vhca_osm_guid_map_find(&o->bids, report->want->vguid);
	bool waits = vhca_now_ms() < o->settle_at;

	if (report->known && report->known->owner.doubt == VHCA_OSM_DOUBT_DISPUTED)
		return disputed(report->want->vguid, err);
	if (!bid && !waits && o->overrun)
		return disputed(report->want->vguid, err);
	if (!bid && !waits)
		return report->known ? judge_known(o, report, ret, err) : 0;
	(void)read_chain(o, report, NULL); /* what is not valid joins nobody */
	if (bid && strcmp(bid->by->node, report->by->name) != 0)
		bid_compare(o, bid, report);
	else if (bid)
		bid_set(bid, report);
	else
		bid_new(o, report);
	if (waits)
		return not_known_yet(report->want->vguid, "all have time to report", err);
	if (bid->disputed)
		return disputed(report->want->vguid, err);
	if (strcmp(bid->by->node, report->by->name) != 0)
		return not_known_yet(report->want->vguid, "another node has asked for it", err);
	return judge_lone(o, bid, report, ret, err);
}

/* ---- a report ---- */

static int judge(struct vhca_osm_owners *owners, const struct vhca_osm_node *by,
		 const struct vhca_osm_binding *want, const struct vhca_osm_proof *proof,
		 struct vhca_osm_owner *ret, struct vhca_error *err)
{
	const struct vhca_osm_binding *known = vhca_osm_table_find(owners->table, want->vguid);
	struct report report = {.by = by, .want = want, .proof = proof};
	int r;

	*ret = (struct vhca_osm_owner){.kept = false};
	if (!owners->conf->tickets || !by)
		return 0;
	/* The table says so, and what is known. */
	if (known && (want->epoch < known->epoch ||
		      (want->epoch == known->epoch &&
		       (known->withdrawn || want->port_guid != known->port_guid))))
		return 0;
	report.known = known && !known->never_bound ? known : NULL;
	if (!report.known || report.known->owner.doubt != VHCA_OSM_DOUBT_NONE) {
		r = judge_unknown(owners, &report, ret, err);
	} else {
		drop_bid(owners, want->vguid); /* the table has taken it */
		r = judge_known(owners, &report, ret, err);
	}
	if (proof->settled)
		ret->other_port = 0;
	return r;
}

int vhca_osm_owners_put(struct vhca_osm_owners *owners, struct vhca_osm_reports *reports,
			const struct vhca_osm_node *by, struct vhca_osm_binding *want,
			const struct vhca_osm_proof *proof, uint64_t from_port,
			struct vhca_osm_eviction *ret, struct vhca_error *err)
{
	/* What would be refused anyway is no bid. */
	int r = vhca_osm_report_prepare(reports, want, from_port, ret, err);

	if (r == 0 && owners->conf->tickets && by && !has_taken_over(reports))
		r = not_known_yet(want->vguid, "the first sweep is not complete", err);
	if (r == 0)
		r = judge(owners, by, want, proof, &want->owner, err);
	return r < 0 ? r : vhca_osm_report_put(reports, want, from_port, ret, err);
}

int vhca_osm_owners_pin(const struct vhca_osm_owners *owners, struct vhca_osm_reports *reports,
			const struct vhca_osm_node *by, uint64_t port_guid, struct vhca_error *err)
{
	bool sure = !owners->conf->tickets ||
		    reports->subnet->ops->is_physical(reports->subnet->ctx, port_guid);

	if (!sure &&
	    (vhca_now_ms() < owners->settle_at || vhca_osm_guid_map_find(&owners->bids, port_guid)))
		return 0;
	return vhca_osm_report_pin(reports, by, port_guid, err);
}

/* ---- a withdrawal ---- */

int vhca_osm_owners_check_withdrawal(struct vhca_osm_owners *owners, const struct vhca_osm_node *by,
				     uint64_t vguid, uint64_t epoch, bool *ret_nothing,
				     struct vhca_error *err)
{
	const struct vhca_osm_binding *known = vhca_osm_table_find(owners->table, vguid);
	const struct bid *bid = vhca_osm_guid_map_find(&owners->bids, vguid);
	const char *node;

	*ret_nothing = false;
	if (!owners->conf->tickets || !by)
		return 0;
	if (bid && !bid->disputed && strcmp(bid->by->node, by->name) == 0)
		drop_bid(owners, vguid);
	*ret_nothing = !known || known->never_bound || (known->withdrawn && epoch < known->epoch);
	if (*ret_nothing || !known->withdrawn)
		return 0;
	node = vhca_osm_node_of(&owners->conf->agents, owners->table, known->port_guid);
	if (node && strcmp(node, by->name) == 0)
		return 0;
	*ret_nothing = epoch == known->epoch;
	return *ret_nothing ? 0 : not_the_owner(by, known, err);
}

int vhca_osm_owners_withdraw(struct vhca_osm_owners *owners, struct vhca_osm_reports *reports,
			     const struct vhca_osm_node *by, uint64_t vguid, uint64_t epoch,
			     uint64_t port_guid, bool keep, struct vhca_error *err)
{
	const struct vhca_osm_binding *known = vhca_osm_table_find(owners->table, vguid);
	struct vhca_osm_owner owner = {.kept = keep && by};
	int r;

	if (known)
		owner.doubt = known->owner.doubt;
	if (known && owner.kept)
		owner.other_port = known->owner.other_port;
	if (by && known && epoch > known->epoch && owners->conf->tickets &&
	    (owner.doubt != VHCA_OSM_DOUBT_NONE || !has_taken_over(reports))) {
		epoch = known->epoch; /* whoever has it now is above that */
		port_guid = known->port_guid;
	}
	r = vhca_osm_report_withdraw(reports, vguid, epoch, port_guid, err);
	if (r == 0 && owners->conf->tickets)
		vhca_osm_table_set_owner(owners->table, vguid, &owner);
	return r;
}

/* ---- admin's word ---- */

int vhca_osm_owners_name(struct vhca_osm_owners *owners, uint64_t vguid, uint64_t port_guid,
			 struct vhca_error *err)
{
	const struct vhca_osm_binding *known = vhca_osm_table_find(owners->table, vguid);
	const struct vhca_osm_owner settled = {.kept = false}, named = {.kept = true};
	const struct vhca_osm_binding parked = {.vguid = vguid,
						.epoch = known ? known->epoch : 0,
						.port_guid = port_guid,
						.own_port = known &&
							    (known->own_port || known->had_port)};
	int r = 0;

	drop_bid(owners, vguid);
	if (known && !known->withdrawn && known->port_guid == port_guid) {
		vhca_osm_table_set_owner(owners->table, vguid, &settled);
		return 0;
	}
	if (known && !known->withdrawn)
		r = vhca_osm_table_withdraw(owners->table, vguid, known->epoch, 0, err);
	if (r == 0 && vhca_osm_table_find(owners->table, vguid))
		r = vhca_osm_table_forget(owners->table, vguid, err);
	if (r == 0)
		r = vhca_osm_table_add_tombstone(owners->table, &parked, err);
	if (r < 0)
		return r;
	vhca_osm_table_set_owner(owners->table, vguid, &named);
	vhca_log_notice("%s: it is port %s's from now on, at an epoch above %" PRIu64,
			VHCA_GUID_STR(vguid), VHCA_GUID_STR(port_guid), parked.epoch);
	return 0;
}
