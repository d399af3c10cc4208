/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/metrics.h"

#include <inttypes.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

static void head(struct vhca_strbuf *sb, const char *name, const char *type, const char *help)
{
	vhca_strbuf_add(sb, "# HELP vhcasm_%s %s\n# TYPE vhcasm_%s %s\n", name, help, name, type);
}

static void one(struct vhca_strbuf *sb, const char *name, const char *label, uint64_t value)
{
	vhca_strbuf_add(sb, "vhcasm_%s%s %" PRIu64 "\n", name, label, value);
}

static void moves(struct vhca_strbuf *sb, const struct vhca_osm_mover_stats *s)
{
	head(sb, "moves_total", "counter", "Moves of LIDs that were answered, by outcome.");
	one(sb, "moves_total", "{outcome=\"applied\",mode=\"deterministic\"}",
	    s->by_mode[VHCA_OSM_DETERMINISTIC]);
	one(sb, "moves_total", "{outcome=\"applied\",mode=\"skyline\"}",
	    s->by_mode[VHCA_OSM_SKYLINE]);
	one(sb, "moves_total", "{outcome=\"unchanged\"}", s->unchanged);
	one(sb, "moves_total", "{outcome=\"refused\"}", s->refused);
	one(sb, "moves_total", "{outcome=\"rolled_back\"}", s->rolled_back);
	one(sb, "moves_total", "{outcome=\"repairing\"}", s->lost);
	head(sb, "moves_repaired_total", "counter", "Of those, acknowledged later.");
	one(sb, "moves_repaired_total", "", s->repaired);
	head(sb, "moves_repairing", "gauge", "Moves that are not acknowledged yet.");
	one(sb, "moves_repairing", "", s->repairing);
	head(sb, "moves_queued", "gauge", "Moves that wait or are under way.");
	one(sb, "moves_queued", "", s->queued);
}

static void together(struct vhca_strbuf *sb, const struct vhca_osm_mover_stats *s)
{
	head(sb, "moves_under_way", "gauge", "Moves whose SMPs are under way.");
	one(sb, "moves_under_way", "", s->under_way);
	head(sb, "moves_together_total", "counter", "Moves begun while another was under way.");
	one(sb, "moves_together_total", "", s->together);
	head(sb, "moves_at_once_max", "gauge", "Most moves that were under way at the same time.");
	one(sb, "moves_at_once_max", "", s->most_at_once);
}

static void smps(struct vhca_strbuf *sb, const struct vhca_osm_mover_stats *s,
		 const struct vhca_osm_smps *others)
{
	head(sb, "smps_total", "counter",
	     "SMPs sent for moves (without repetitions), evictions and partitions.");
	one(sb, "smps_total", "{attribute=\"lft\"}", s->lft_smps);
	one(sb, "smps_total", "{attribute=\"lft\",step=\"drain\"}", s->drain_smps);
	one(sb, "smps_total", "{attribute=\"port_info\"}", s->port_smps);
	one(sb, "smps_total", "{attribute=\"guid_info\"}", others->guid_info);
	one(sb, "smps_total", "{attribute=\"pkey_table\"}", others->pkey_table);
	head(sb, "heavy_sweeps_total", "counter", "Heavy sweeps that went to their end.");
	one(sb, "heavy_sweeps_total", "", s->sweeps);
}

static void latency(struct vhca_strbuf *sb, const struct vhca_osm_mover_stats *s)
{
	uint64_t n = 0;

	head(sb, "move_seconds", "histogram", "From a move's first SMP to its last answer.");
	for (size_t i = 0; i < VHCA_OSM_LATENCIES; i++) {
		unsigned int ms = vhca_osm_latency_ms[i];

		n += s->latency[i];
		if (ms)
			vhca_strbuf_add(sb,
					"vhcasm_move_seconds_bucket{le=\"%u.%03u\"} %" PRIu64 "\n",
					ms / 1000, ms % 1000, n);
		else
			vhca_strbuf_add(sb, "vhcasm_move_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n",
					n);
	}
	vhca_strbuf_add(sb, "vhcasm_move_seconds_sum %" PRIu64 ".%06u\n", s->latency_us / 1000000,
			(unsigned int)(s->latency_us % 1000000));
	one(sb, "move_seconds_count", "", n);
}

static void gauge(struct vhca_strbuf *sb, const char *name, uint64_t value, const char *help)
{
	head(sb, name, "gauge", help);
	one(sb, name, "", value);
}

static void present(struct vhca_strbuf *sb, const struct vhca_osm_metrics *now)
{
	gauge(sb, "master", now->master, "1: this subnet manager is the master.");
	head(sb, "subnet_age_seconds", "gauge",
	     "Since OpenSM's tables could be read: more than 0 while it computes ways.");
	vhca_strbuf_add(sb, "vhcasm_subnet_age_seconds %" PRIu64 ".%03u\n", now->age_ms / 1000,
			(unsigned int)(now->age_ms % 1000));
	gauge(sb, "rebuilding", now->rebuilding,
	      "1: keys stay on ports only because this master found them there.");
	gauge(sb, "bindings", now->bindings, "Virtual GUIDs that are bound to a port.");
	gauge(sb, "lids_dynamic", now->lids.dynamic, "Dynamic LIDs that are given.");
	gauge(sb, "lids_free", now->lids.free,
	      "LIDs that are no port's and kept for none, at the end of the last sweep.");
	gauge(sb, "guid2lid_lines", now->lids.lines,
	      "GUIDs for which OpenSM keeps a LID, at the end of the last sweep.");
	head(sb, "lids_freed_total", "counter", "LIDs that were kept for GUIDs which have gone.");
	one(sb, "lids_freed_total", "", now->lids.freed);
}

static void doors(struct vhca_strbuf *sb, const struct vhca_http_stats *s)
{
	gauge(sb, "http_connections", s->connections, "Connections at [http] listen.");
	head(sb, "http_connections_ended_total", "counter",
	     "Connections that the plugin ended, by what they were late with or too many of.");
	for (unsigned int i = 0; i < VHCA_HTTP_ENDS; i++)
		vhca_strbuf_add(sb,
				"vhcasm_http_connections_ended_total{reason=\"%s\"} %" PRIu64 "\n",
				vhca_http_end_names[i], s->ended[i]);
}

void vhca_osm_metrics_render(const struct vhca_osm_metrics *now, char *buf, size_t size)
{
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, size);
	present(&sb, now);
	moves(&sb, &now->moves);
	together(&sb, &now->moves);
	smps(&sb, &now->moves, &now->smps);
	latency(&sb, &now->moves);
	doors(&sb, &now->http);
}
