/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/histogram.h"

const uint64_t vhca_histogram_bounds_us[VHCA_HISTOGRAM_BOUNDS] = {
	500,	1000,	2000,	 5000,	  10000,   20000,    50000,    100000,
	200000, 500000, 1000000, 2000000, 5000000, 10000000, 30000000, 60000000,
};

void vhca_histogram_add(struct vhca_histogram *h, uint64_t us)
{
	unsigned int i = 0;

	while (i < VHCA_HISTOGRAM_BOUNDS && us > vhca_histogram_bounds_us[i])
		i++;
	h->counts[i]++;
	h->sum_us += us;
}
