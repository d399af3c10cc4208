/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_SERVICE_H
#define VHCA_OPENSM_BINDINGS_SERVICE_H
/*
 * The plugin without HTTP and without OpenSM: checks reports against the subnet, keeps the table
 * durable, and writes the partition file that OpenSM reads in every heavy sweep.
 *
 * Order of a change: table in memory -> state file (commit, before the answer) -> partition file ->
 * heavy sweep. The last two are delayed a little, so that a burst of reports costs one sweep. After
 * a crash at any point the state file rules: the partition file is rendered from it again before
 * OpenSM's first sweep.
 *
 * Everything is called by one thread, except the three vhca_osm_service_on_*() functions: those
 * come from OpenSM's sweeper, only set atomics and never wait.
 */
#include <stdint.h>

#include "opensm/bindings/eviction.h"
#include "opensm/bindings/nodes.h"
#include "opensm/bindings/conf.h"
#include "opensm/bindings/subnet.h"
#include "opensm/bindings/table.h"
#include "opensm/bindings/view.h"

struct vhca_osm_service;

/*
 * A report's epoch is below the first of these, or above the known one by no more than the second.
 * A take-over goes to the next multiple of 2^32, by the agent's own report, and a stand-by that
 * takes over may have missed any number of them. So no request brings a vGUID to its last epoch,
 * and to get there step by step takes 2^27 of them.
 */
#define VHCA_OSM_EPOCH_FREE (UINT64_C(1) << 48)
#define VHCA_OSM_EPOCH_JUMP (UINT64_C(1) << 36)

/*
 * Loads the state, checks the base file, writes the partition file. Blocking. conf is copied, ops
 * and ctx are borrowed. Fails when another process uses the state directory.
 */
int vhca_osm_service_new(const struct vhca_osm_conf *conf, const struct vhca_osm_subnet_ops *ops,
			 void *ctx, struct vhca_osm_service **ret, struct vhca_error *err);
struct vhca_osm_service *vhca_osm_service_free(struct vhca_osm_service *s);

/* The file that OpenSM has to read (borrowed): STATE_DIR/partitions.conf. */
const char *vhca_osm_service_partition_file(const struct vhca_osm_service *s);
/* The same for a configuration, into buf of at least VHCA_OSM_PATH_MAX bytes. */
#define VHCA_OSM_PATH_MAX 256
char *vhca_osm_partition_path(const struct vhca_osm_conf *conf, char buf[static VHCA_OSM_PATH_MAX]);

/* ---- reports; in memory until vhca_osm_service_commit() ---- */
/*
 * May it speak for the port? Errors: not_master; those of vhca_osm_node_check(); table_full, of a
 * new port of a node that has VHCA_OSM_NODE_PORTS_MAX, and none that has left the subnet.
 */
int vhca_osm_service_check_speaker(const struct vhca_osm_service *s, const struct vhca_osm_node *by,
				   uint64_t port_guid, struct vhca_error *err);
/*
 * What that has allowed was accepted: a port of the subnet that is nobody's is this node's from now
 * on. One that has left the subnet goes for it if there is no other room.
 */
int vhca_osm_service_pin(struct vhca_osm_service *s, const struct vhca_osm_node *by,
			 uint64_t port_guid, struct vhca_error *err);
/* May it withdraw the vGUID? Errors: those of check_speaker(); not_the_owner. */
int vhca_osm_service_check_withdrawer(const struct vhca_osm_service *s,
				      const struct vhca_osm_node *by, uint64_t vguid,
				      uint64_t epoch, uint64_t port_guid, struct vhca_error *err);
/*
 * The port is whose agent speaks for it next. A stand-by, too, has pins of its own. Error:
 * unknown_pin.
 */
int vhca_osm_service_unpin(struct vhca_osm_service *s, uint64_t port_guid, struct vhca_error *err);

/* Takes over a binding, and evicts its alias as eviction.h says; from_port as there. Beside the
 * table's errors: not_master, unknown_port, unknown_partition, guid_is_a_port, epoch_too_high. */
int vhca_osm_service_put(struct vhca_osm_service *s, const struct vhca_osm_binding *want,
			 uint64_t from_port, struct vhca_osm_eviction *ret, struct vhca_error *err);
/* What the same call would do and return, without doing anything. */
int vhca_osm_service_prepare(const struct vhca_osm_service *s, const struct vhca_osm_binding *want,
			     uint64_t from_port, struct vhca_osm_eviction *ret,
			     struct vhca_error *err);
/*
 * Have its keys room where its vGUID's own port goes to? vport: of the HCA with its port, as in
 * lid_ops.h. Of a place that is none, somebody else says so. Errors: the table's.
 */
int vhca_osm_service_check_place(const struct vhca_osm_service *s,
				 const struct vhca_osm_binding *want, uint16_t vport,
				 struct vhca_error *err);
int vhca_osm_service_withdraw(struct vhca_osm_service *s, uint64_t vguid, uint64_t epoch,
			      uint64_t port_guid, struct vhca_error *err);
/* Nothing fences it any more: for an epoch that nobody can go on from. Errors: the table's. */
int vhca_osm_service_forget(struct vhca_osm_service *s, uint64_t vguid, struct vhca_error *err);
int vhca_osm_service_declare(struct vhca_osm_service *s, uint64_t port_guid, const uint16_t *pkeys,
			     size_t n, struct vhca_error *err);
/*
 * Makes everything so far durable; nothing to do = 0. Blocking (fsync). Error: state_not_saved;
 * what is in memory stays and publish() tries again.
 */
int vhca_osm_service_commit(struct vhca_osm_service *s, struct vhca_error *err);

/* ---- reading ---- */
const struct vhca_osm_table *vhca_osm_service_table(const struct vhca_osm_service *s);
/* Would reports, and what looks at single ports, wait for OpenSM's lock now? */
bool vhca_osm_service_is_busy(const struct vhca_osm_service *s);
void vhca_osm_service_status(const struct vhca_osm_service *s, struct vhca_osm_status *ret);
void vhca_osm_service_smps(const struct vhca_osm_service *s, struct vhca_osm_smps *ret);
void vhca_osm_service_view(const struct vhca_osm_service *s, const struct vhca_osm_binding *b,
			   struct vhca_osm_view *ret);
/*
 * What keeps reports from the disk or the partition file from being up to date, "" = nothing.
 * Borrowed.
 */
const char *vhca_osm_service_problem(const struct vhca_osm_service *s);

/* True if a sweep has taken over all that was reported. */
bool vhca_osm_service_in_effect(const struct vhca_osm_service *s);

/*
 * True if OpenSM has read all that was reported about the port's keys. It may not have been sent
 * them yet.
 */
bool vhca_osm_service_has_shown(const struct vhca_osm_service *s, uint64_t port_guid);
/*
 * Has the port got all that it needs, as far as the subnet manager knows? Not if OpenSM has left
 * something out, for want of room or because it could not read the partition file. Error:
 * keys_on_the_way, which names a key.
 */
int vhca_osm_service_check_keys(const struct vhca_osm_service *s, uint64_t port_guid,
				struct vhca_error *err);

/* True while keys stay on ports only because they were found there: agents have time to report. */
bool vhca_osm_service_is_rebuilding(const struct vhca_osm_service *s);

/* ---- publication ---- */
/*
 * Does what is due: re-reads the base file, writes the partition file, asks for a sweep. now:
 * vhca_now_ms() scale. Blocking.
 */
void vhca_osm_service_publish(struct vhca_osm_service *s, uint64_t now);
/* When publish() is to be called next; UINT64_MAX = when something happens. */
uint64_t vhca_osm_service_deadline(const struct vhca_osm_service *s);

/* ---- taking over ---- */
/* True if there was no state at the start and nothing was inherited or reported since. */
bool vhca_osm_service_is_new(const struct vhca_osm_service *s);
/* To be called when this becomes master without knowing the bindings, between discovery and the
 * partition file's reading: keeps the allowed keys that ports have now, until conf's `inherit`
 * time has passed, and writes the partition file at once. The state is the caller's to commit.
 * -EAGAIN: not all of them, or not in the file; OpenSM must not read that, and problem() says why.
 * Blocking. */
int vhca_osm_service_inherit(struct vhca_osm_service *s, uint64_t now);

/* ---- vhcasm.conf, read again ---- */
/* From now on agents may ask for other keys. What they were given stays. */
void vhca_osm_service_allow(struct vhca_osm_service *s, const struct vhca_osm_policy *policy,
			    uint64_t now);
/* What is wrong with the file that was not taken, "" = nothing: a problem(). */
void vhca_osm_service_conf_problem(struct vhca_osm_service *s, const char *problem);

/* ---- from OpenSM's sweeper thread; the owner's thread is to be woken after each ---- */
void vhca_osm_service_on_sweep_start(struct vhca_osm_service *s);
void vhca_osm_service_on_discovered(
	struct vhca_osm_service *s); /* the partition file is read next */
void vhca_osm_service_on_subnet_up(struct vhca_osm_service *s);
/* After that, and when OpenSM can be had to do something between sweeps again. */
void vhca_osm_service_on_sweep_over(struct vhca_osm_service *s);

#endif
