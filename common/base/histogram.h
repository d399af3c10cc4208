/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_HISTOGRAM_H
#define VHCA_BASE_HISTOGRAM_H
/* How long things took, counted on one scale for all of them. Zeroed memory is an empty one. */
#include <stdint.h>

#define VHCA_HISTOGRAM_BOUNDS 16
/* Upper bounds, included; what is longer comes behind the last. */
extern const uint64_t vhca_histogram_bounds_us[VHCA_HISTOGRAM_BOUNDS];

struct vhca_histogram {
	uint64_t counts[VHCA_HISTOGRAM_BOUNDS + 1];
	uint64_t sum_us;
};
/* Never fails: what is beyond the scale has a bucket, too. */
void vhca_histogram_add(struct vhca_histogram *h, uint64_t us);

#endif
