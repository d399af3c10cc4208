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

#include "opensm/bindings/conf.h"
#include "opensm/bindings/reports.h"
#include "opensm/bindings/subnet.h"
#include "opensm/bindings/table.h"

struct vhca_osm_service;

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

/* What takes reports over, in memory until vhca_osm_service_commit(). Borrowed. */
struct vhca_osm_reports *vhca_osm_service_reports(struct vhca_osm_service *s);
/*
 * Makes everything so far durable; nothing to do = 0. Blocking (fsync). Error: state_not_saved;
 * what is in memory stays and publish() tries again.
 */
int vhca_osm_service_commit(struct vhca_osm_service *s, struct vhca_error *err);

/* ---- reading ---- */
const struct vhca_osm_table *vhca_osm_service_table(const struct vhca_osm_service *s);
const struct vhca_osm_subnet *vhca_osm_service_subnet(const struct vhca_osm_service *s);
/* Would reports, and what looks at single ports, wait for OpenSM's lock now? */
bool vhca_osm_service_is_busy(const struct vhca_osm_service *s);
void vhca_osm_service_status(const struct vhca_osm_service *s, struct vhca_osm_status *ret);
void vhca_osm_service_smps(const struct vhca_osm_service *s, struct vhca_osm_smps *ret);
/*
 * What keeps reports from the disk or the partition file from being up to date, "" = nothing.
 * Borrowed.
 */
const char *vhca_osm_service_problem(const struct vhca_osm_service *s);

/* True if a sweep has taken over all that was reported. */
bool vhca_osm_service_in_effect(const struct vhca_osm_service *s);

/*
 * Has OpenSM read all that was reported about the port's keys? It may not have sent them yet.
 * Error: keys_on_the_way, with the problem() if there is one.
 */
int vhca_osm_service_check_shown(const struct vhca_osm_service *s, uint64_t port_guid,
				 struct vhca_error *err);
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
/* Which vGUIDs have ports of their own since the last sweep. OpenSM's tables can be had. */
void vhca_osm_service_find_own_ports(struct vhca_osm_service *s);
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
