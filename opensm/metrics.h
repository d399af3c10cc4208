/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_METRICS_H
#define VHCA_OPENSM_METRICS_H
/* The mover's counters in the text format of Prometheus. */
#include <stddef.h>

#include "opensm/mover.h"

#define VHCA_OSM_METRICS_MAX 8192

/* Renders into buf; what does not fit (it does) is cut off. */
void vhca_osm_metrics_render(const struct vhca_osm_mover_stats *stats, char *buf, size_t size);

#endif
