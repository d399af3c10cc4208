/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_TABLE_H
#define VHCA_OPENSM_BINDINGS_TABLE_H
/*
 * What the agents told the subnet manager: which vGUID is bound where, and which keys each port
 * needs. Pure memory, no OpenSM, no files; one thread at a time. (The prefix is vhca_osm_: vhca_sm_
 * is the agent's side, sm/.)
 *
 * Epochs. A record remembers the highest epoch it has seen. A report with a lower one is
 * "superseded"; the same epoch from another port is "epoch_tie". A withdrawn record stays as a
 * tombstone, so that a late report of the old owner is recognised: its epoch is over, and binds
 * nobody again ("superseded", too). When there are more than the limit, the tombstone that was
 * withdrawn longest ago is forgotten. Of vGUIDs that were withdrawn and never bound there is a
 * limit of its own: whoever makes many displaces only those. Above half of the limit a port with
 * more than VHCA_OSM_TOMBSTONES_AT_MAX displaces its own. What is kept for its owner goes last.
 *
 * Keys. A port needs the union of the keys declared for it, of the keys of its bindings, counted
 * per binding, and of inherited ones (port_keys.h): a key leaves the port only when the last reason
 * for it has gone. Every change is all or nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/base/error.h"
#include "common/base/text.h"
#include "opensm/bindings/changed_ports.h"
#include "opensm/bindings/port_keys.h"

#define VHCA_OSM_BINDINGS_MAX	 65536
#define VHCA_OSM_TOMBSTONES_MAX	 65536
#define VHCA_OSM_NEVER_BOUND_MAX 16384
/* At one port, above half of all: more than any adapter has VFs. */
#define VHCA_OSM_BINDINGS_AT_MAX   256
#define VHCA_OSM_TOMBSTONES_AT_MAX 1024
/* Each binding's own, and more than there are LIDs for: their keys are declared, or were found. */
#define VHCA_OSM_PORTS_MAX 131072
struct vhca_osm_limits {
	size_t bindings, tombstones, ports, never_bound;
};

/* Is it known whose a vGUID is? */
enum vhca_osm_doubt {
	VHCA_OSM_DOUBT_NONE,
	VHCA_OSM_DOUBT_STALE,	 /* not yet: another subnet manager was master meanwhile */
	VHCA_OSM_DOUBT_DISPUTED, /* two nodes have asked for it: admin says whose it is */
};

/* Whose it is beside what the record says itself; all zero without tickets. */
struct vhca_osm_owner {
	bool kept; /* a tombstone whose vGUID is still its last port's */
	enum vhca_osm_doubt doubt;
	uint64_t other_port; /* of who had it before, and may have it again; 0 = it has settled */
};

struct vhca_osm_binding {
	uint64_t vguid; /* key; must stay first */
	uint64_t epoch;
	uint64_t port_guid; /* of a tombstone: where it was last, 0 = never known */
	uint16_t gid_index;
	uint16_t lid;	  /* as reported; 0 = unknown */
	bool withdrawn;	  /* tombstone: only vguid, epoch, port_guid, own_port and owner count */
	bool never_bound; /* a tombstone, and nothing was known of the vGUID before */
	/* a port of the subnet has, of a tombstone: had, the vGUID as its own: its keys' place */
	bool own_port;
	/* of one that is bound anew: it had such a port before, and none has been found since */
	bool had_port;
	struct vhca_osm_owner owner;
	uint16_t n_pkeys;
	uint16_t *pkeys; /* in the order of the guest's table */
	TAILQ_ENTRY(vhca_osm_binding) age;
};

/* The port that needs the binding's keys. */
static inline uint64_t vhca_osm_binding_keys_at(const struct vhca_osm_binding *b)
{
	return b->own_port ? b->vguid : b->port_guid;
}

/* A port that a node was the first to speak for. "hv1", or "token:NAME". */
#define VHCA_OSM_NODE_MAX (VHCA_NAME_MAX + 6)
struct vhca_osm_pin {
	uint64_t guid; /* key; must stay first */
	char node[VHCA_OSM_NODE_MAX];
};

struct vhca_osm_table;

/*
 * both_memberships: a port may need the full and the limited form of one key (allow_both_pkeys of
 * opensm.conf).
 */
int vhca_osm_table_new(const struct vhca_osm_limits *limits, bool both_memberships,
		       struct vhca_osm_table **ret);
struct vhca_osm_table *vhca_osm_table_free(struct vhca_osm_table *t);

/*
 * Stores a report (copied; `withdrawn` and `age` of want are ignored). port_pkeys_max: what the
 * port's table can hold, at most VHCA_OSM_PORT_PKEYS_MAX. Errors: superseded, epoch_tie,
 * both_memberships (conflict); table_full (exhausted).
 */
int vhca_osm_table_put(struct vhca_osm_table *t, const struct vhca_osm_binding *want,
		       size_t port_pkeys_max, struct vhca_error *err);
/* What the same call would return, without doing anything. */
int vhca_osm_table_check(const struct vhca_osm_table *t, const struct vhca_osm_binding *want,
			 size_t port_pkeys_max, struct vhca_error *err);
/* Have its keys room at a place where there is another port now? Errors: those of put(). */
int vhca_osm_table_check_place(const struct vhca_osm_table *t, const struct vhca_osm_binding *want,
			       size_t place_pkeys_max, struct vhca_error *err);
/*
 * Makes the record a tombstone at this epoch; an unknown vGUID gets one too. port_guid: who
 * withdraws (0 = not said). Withdrawing twice is success. Errors: superseded; epoch_tie, the owner
 * at this epoch is another port.
 */
int vhca_osm_table_withdraw(struct vhca_osm_table *t, uint64_t vguid, uint64_t epoch,
			    uint64_t port_guid, struct vhca_error *err);
/* A vGUID that is not known, or was never bound, has none. */
void vhca_osm_table_set_owner(struct vhca_osm_table *t, uint64_t vguid,
			      const struct vhca_osm_owner *owner);
/* Of a vGUID that is not known. */
int vhca_osm_table_add_tombstone(struct vhca_osm_table *t, const struct vhca_osm_binding *tombstone,
				 struct vhca_error *err);
/* As if nothing had ever been said of it. Errors: unknown_binding, still_bound. */
int vhca_osm_table_forget(struct vhca_osm_table *t, uint64_t vguid, struct vhca_error *err);
/*
 * Is another owner than the one that withdraws so the last one known, even if it has withdrawn,
 * too? What that one has left of the vGUID's (a dynamic LID) is not this one's to end.
 */
bool vhca_osm_table_has_other_owner(const struct vhca_osm_table *t, uint64_t vguid, uint64_t epoch,
				    uint64_t port_guid);
/* Replaces the keys declared for a port. Errors: both_memberships, table_full. */
int vhca_osm_table_declare(struct vhca_osm_table *t, uint64_t port_guid, const uint16_t *pkeys,
			   size_t n, size_t port_pkeys_max, struct vhca_error *err);

/* Marks keys as inherited (port_keys.h); what has no room is left out. */
int vhca_osm_table_inherit(struct vhca_osm_table *t, uint64_t port_guid, const uint16_t *pkeys,
			   size_t n, struct vhca_error *err);
/* Ends that for all ports. */
void vhca_osm_table_drop_inherited(struct vhca_osm_table *t);
/* Number of keys that only stay because they are inherited. */
size_t vhca_osm_table_inherited(const struct vhca_osm_table *t);

/*
 * The port is this node's until it is unpinned. It must not be anybody's yet. Errors: bad_request,
 * table_full.
 */
int vhca_osm_table_pin(struct vhca_osm_table *t, uint64_t port_guid, const char *node,
		       struct vhca_error *err);
/* False: it was nobody's. */
bool vhca_osm_table_unpin(struct vhca_osm_table *t, uint64_t port_guid);
/* Whose it is; NULL = nobody's. Borrowed. */
const char *vhca_osm_table_pinned(const struct vhca_osm_table *t, uint64_t port_guid);
size_t vhca_osm_table_pins(const struct vhca_osm_table *t);
const struct vhca_osm_pin *vhca_osm_table_pin_at(const struct vhca_osm_table *t, size_t i);

/* Records by key and, in GUID order, by index; borrowed until the next change. */
const struct vhca_osm_binding *vhca_osm_table_find(const struct vhca_osm_table *t, uint64_t vguid);
const struct vhca_osm_port *vhca_osm_table_port(const struct vhca_osm_table *t, uint64_t guid);
size_t vhca_osm_table_records(const struct vhca_osm_table *t); /* bindings and tombstones */
const struct vhca_osm_binding *vhca_osm_table_record(const struct vhca_osm_table *t, size_t i);
size_t vhca_osm_table_record_after(const struct vhca_osm_table *t, uint64_t vguid);
size_t vhca_osm_table_ports(const struct vhca_osm_table *t);
const struct vhca_osm_port *vhca_osm_table_port_at(const struct vhca_osm_table *t, size_t i);
size_t vhca_osm_table_port_after(const struct vhca_osm_table *t, uint64_t guid);
/*
 * Tombstones, oldest first, those that were never bound after all others: NULL starts, NULL ends.
 */
const struct vhca_osm_binding *vhca_osm_table_next_tombstone(const struct vhca_osm_table *t,
							     const struct vhca_osm_binding *prev);
size_t vhca_osm_table_bindings(const struct vhca_osm_table *t); /* without tombstones */
size_t vhca_osm_table_bindings_at(const struct vhca_osm_table *t, uint64_t port_guid);
/* Of these, how many have a port of their own. */
size_t vhca_osm_table_own_ports_at(const struct vhca_osm_table *t, uint64_t port_guid);

/* Grow with every change of what is stored, and of what any port needs. Equal = nothing changed. */
uint64_t vhca_osm_table_revision(const struct vhca_osm_table *t);
uint64_t vhca_osm_table_needs_revision(const struct vhca_osm_table *t);
/* Whose keys have changed: the table puts ports down, its owner says what has become of them. */
struct vhca_osm_changed_ports *vhca_osm_table_changed_ports(struct vhca_osm_table *t);

#endif
