/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_METRICS_H
#define VHCA_OPENSM_HTTP_METRICS_H
/* What the plugin has counted, and what is now, in the text of OpenMetrics. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/http/server.h"
#include "opensm/bindings/subnet.h"
#include "opensm/http/readiness.h"
#include "opensm/lids/mover.h"

#define VHCA_OSM_METRICS_MAX 12288

struct vhca_osm_metrics {
	struct vhca_osm_mover_stats moves;
	struct vhca_osm_smps smps;
	bool master, ready, rebuilding;
	struct vhca_osm_reason reasons[VHCA_OSM_REASONS]; /* code NULL: there are fewer */
	uint64_t age_ms;				  /* of what is known of the subnet */
	size_t bindings;
	struct vhca_osm_lid_counts lids;
	struct vhca_http_stats http;
};

/* All but http, which is zero. */
void vhca_osm_metrics_take(const struct vhca_osm_service *service,
			   const struct vhca_osm_mover *mover, struct vhca_osm_metrics *ret);
/* Renders into buf; what does not fit (it does) is cut off. */
void vhca_osm_metrics_render(const struct vhca_osm_metrics *now, char *buf, size_t size);

#endif
