/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/metrics.h"

#include "common/base/exposition.h"

static void moves(struct vhca_exposition *e, const struct vhca_osm_mover_stats *s)
{
	vhca_exposition_begin(e, VHCA_COUNTER, "moves",
			      "Moves of LIDs that were answered, by outcome.");
	vhca_exposition_add(e, s->by_mode[VHCA_OSM_DETERMINISTIC],
			    "outcome=\"applied\",mode=\"deterministic\"");
	vhca_exposition_add(e, s->by_mode[VHCA_OSM_SKYLINE],
			    "outcome=\"applied\",mode=\"skyline\"");
	vhca_exposition_add(e, s->unchanged, "outcome=\"unchanged\"");
	vhca_exposition_add(e, s->refused, "outcome=\"refused\"");
	vhca_exposition_add(e, s->rolled_back, "outcome=\"rolled_back\"");
	vhca_exposition_add(e, s->lost, "outcome=\"repairing\"");
	vhca_exposition_counter(e, "moves_repaired", s->repaired, "Of those, acknowledged later.");
	vhca_exposition_gauge(e, "moves_repairing", s->repairing,
			      "Moves that are not acknowledged yet.");
	vhca_exposition_gauge(e, "moves_queued", s->queued, "Moves that wait or are under way.");
	vhca_exposition_begin(e, VHCA_GAUGE, "moves_oldest_seconds",
			      "Since the oldest of those was asked for.");
	vhca_exposition_add_us(e, s->oldest_us);
	vhca_exposition_gauge(e, "moves_under_way", s->under_way,
			      "Moves whose SMPs are under way.");
	vhca_exposition_counter(e, "moves_together", s->together,
				"Moves begun while another was under way.");
	vhca_exposition_gauge(e, "moves_at_once_max", s->most_at_once,
			      "Most moves that were under way at the same time.");
}

static void smps(struct vhca_exposition *e, const struct vhca_osm_mover_stats *s,
		 const struct vhca_osm_smps *others)
{
	vhca_exposition_begin(
		e, VHCA_COUNTER, "smps",
		"SMPs sent for moves (without repetitions), evictions and partitions.");
	vhca_exposition_add(e, s->lft_smps, "attribute=\"lft\"");
	vhca_exposition_add(e, s->drain_smps, "attribute=\"lft\",step=\"drain\"");
	vhca_exposition_add(e, s->port_smps, "attribute=\"port_info\"");
	vhca_exposition_add(e, others->guid_info, "attribute=\"guid_info\"");
	vhca_exposition_add(e, others->pkey_table, "attribute=\"pkey_table\"");
	vhca_exposition_counter(e, "heavy_sweeps", s->sweeps,
				"Heavy sweeps that went to their end.");
	vhca_exposition_begin(e, VHCA_COUNTER, "sweeps_waited_seconds",
			      "For which sweeps have waited for moves and keys to end.");
	vhca_exposition_add_us(e, s->sweeps_waited_us);
}

static void present(struct vhca_exposition *e, const struct vhca_osm_metrics *now)
{
	vhca_exposition_gauge(e, "master", now->master, "1: this subnet manager is the master.");
	vhca_exposition_gauge(e, "ready", now->ready, "1: as /readyz has it.");
	vhca_exposition_begin(e, VHCA_GAUGE, "ready_reasons", "1: /readyz lists this reason.");
	for (unsigned int i = 0; i < VHCA_OSM_REASONS && now->reasons[i].code; i++)
		vhca_exposition_add(e, now->reasons[i].applies, "code=\"%s\"",
				    now->reasons[i].code);
	vhca_exposition_begin(
		e, VHCA_GAUGE, "subnet_age_seconds",
		"Since OpenSM's tables could be read: more than 0 while it computes ways.");
	vhca_exposition_add_us(e, now->age_ms * 1000);
	vhca_exposition_gauge(e, "rebuilding", now->rebuilding,
			      "1: keys stay on ports only because this master found them there.");
	vhca_exposition_gauge(e, "bindings", now->bindings,
			      "Virtual GUIDs that are bound to a port.");
	vhca_exposition_gauge(e, "lids_dynamic", now->lids.dynamic, "Dynamic LIDs that are given.");
	vhca_exposition_gauge(
		e, "lids_free", now->lids.free,
		"LIDs that are no port's and kept for none, at the end of the last sweep.");
	vhca_exposition_gauge(e, "guid2lid_lines", now->lids.lines,
			      "GUIDs for which OpenSM keeps a LID, at the end of the last sweep.");
	vhca_exposition_gauge(e, "lids_kept", now->lids.kept,
			      "LIDs with ways that moves have left, not the routing engine.");
	vhca_exposition_counter(e, "lids_freed", now->lids.freed,
				"LIDs that were kept for GUIDs which have gone.");
	vhca_exposition_gauge(e, "http_connections", now->http.connections,
			      "Connections at [http] listen.");
	vhca_exposition_begin(
		e, VHCA_COUNTER, "http_connections_ended",
		"Connections that the plugin ended, by what they were late with or too many of.");
	for (unsigned int i = 0; i < VHCA_HTTP_ENDS; i++)
		vhca_exposition_add(e, now->http.ended[i], "reason=\"%s\"", vhca_http_end_names[i]);
}

void vhca_osm_metrics_take(const struct vhca_osm_service *service,
			   const struct vhca_osm_mover *mover, struct vhca_osm_metrics *ret)
{
	struct vhca_osm_status status;

	vhca_osm_service_status(service, &status);
	*ret = (struct vhca_osm_metrics){
		.master = status.master,
		.ready = status.ready,
		.rebuilding = vhca_osm_service_is_rebuilding(service),
		.age_ms = status.age_ms,
		.bindings = vhca_osm_table_bindings(vhca_osm_service_table(service)),
	};
	vhca_osm_service_smps(service, &ret->smps);
	vhca_osm_find_reasons(service, mover, ret->reasons);
	vhca_osm_mover_stats(mover, &ret->moves);
	vhca_osm_mover_counts(mover, &ret->lids);
}

void vhca_osm_metrics_render(const struct vhca_osm_metrics *now, char *buf, size_t size)
{
	struct vhca_exposition e;

	vhca_exposition_init(&e, "vhcasm", buf, size);
	present(&e, now);
	moves(&e, &now->moves);
	smps(&e, &now->moves, &now->smps);
	vhca_exposition_begin(&e, VHCA_HISTOGRAM, "move_seconds",
			      "From a move's first SMP to its last answer.");
	vhca_exposition_add_histogram(&e, &now->moves.latency, "");
	vhca_exposition_end(&e);
}
