/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_EXPOSITION_H
#define VHCA_BASE_EXPOSITION_H
/*
 * Text of OpenMetrics 1.0, which Prometheus scrapes. Numbers are integers, and times are written
 * from integers, so that no digit depends on how a double is printed.
 */
#include <stdint.h>

#include "common/base/histogram.h"
#include "common/base/text.h"

#define VHCA_EXPOSITION_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

enum vhca_metric {
	VHCA_GAUGE,
	VHCA_COUNTER, /* its samples are written with _total */
	VHCA_HISTOGRAM,
};

struct vhca_exposition {
	struct vhca_strbuf text;
	const char *program; /* begins every name */
	const char *name;    /* of the family that was begun last */
	enum vhca_metric type;
};

/* program is borrowed. What does not fit into buf is cut off: text.truncated. */
void vhca_exposition_init(struct vhca_exposition *e, const char *program, char *buf, size_t size);
/* A family; its samples follow. The name is borrowed; one that ends with _seconds has that unit. */
void vhca_exposition_begin(struct vhca_exposition *e, enum vhca_metric type, const char *name,
			   const char *help);
/* A sample; labels as they stand between the braces, "" = none. */
void vhca_exposition_add(struct vhca_exposition *e, uint64_t value, const char *labels, ...)
	__attribute__((format(printf, 3, 4)));
void vhca_exposition_add_us(struct vhca_exposition *e, uint64_t us);
void vhca_exposition_add_histogram(struct vhca_exposition *e, const struct vhca_histogram *h,
				   const char *labels);
/* A family of one sample without labels. */
void vhca_exposition_gauge(struct vhca_exposition *e, const char *name, uint64_t value,
			   const char *help);
void vhca_exposition_counter(struct vhca_exposition *e, const char *name, uint64_t value,
			     const char *help);
void vhca_exposition_end(struct vhca_exposition *e);

#endif
