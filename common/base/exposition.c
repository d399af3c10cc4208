/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "common/base/exposition.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LABELS_MAX 192
#define UNIT	   "seconds"

static const char *const type_names[] = {
	[VHCA_GAUGE] = "gauge",
	[VHCA_COUNTER] = "counter",
	[VHCA_HISTOGRAM] = "histogram",
};

void vhca_exposition_init(struct vhca_exposition *e, const char *program, char *buf, size_t size)
{
	*e = (struct vhca_exposition){.program = program};
	vhca_strbuf_init(&e->text, buf, size);
}

void vhca_exposition_begin(struct vhca_exposition *e, enum vhca_metric type, const char *name,
			   const char *help)
{
	const char *unit = strrchr(name, '_');

	e->name = name;
	e->type = type;
	vhca_strbuf_add(&e->text, "# TYPE %s_%s %s\n", e->program, name, type_names[type]);
	if (unit && strcmp(unit + 1, UNIT) == 0)
		vhca_strbuf_add(&e->text, "# UNIT %s_%s " UNIT "\n", e->program, name);
	vhca_strbuf_add(&e->text, "# HELP %s_%s %s\n", e->program, name, help);
}

static void add_name(struct vhca_exposition *e, const char *suffix, const char *labels)
{
	vhca_strbuf_add(&e->text, "%s_%s%s%s%s%s ", e->program, e->name, suffix,
			labels[0] ? "{" : "", labels, labels[0] ? "}" : "");
}

void vhca_exposition_add(struct vhca_exposition *e, uint64_t value, const char *labels, ...)
{
	char text[LABELS_MAX];
	va_list ap;

	va_start(ap, labels);
	(void)vsnprintf(text, sizeof(text), labels, ap);
	va_end(ap);
	add_name(e, e->type == VHCA_COUNTER ? "_total" : "", text);
	vhca_strbuf_add(&e->text, "%" PRIu64 "\n", value);
}

/* "0.0005", "2.0": as OpenMetrics wants the bounds of buckets. */
static const char *seconds(uint64_t us, char buf[static 32])
{
	size_t len =
		(size_t)snprintf(buf, 32, "%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);

	while (buf[len - 1] == '0' && buf[len - 2] != '.')
		buf[--len] = '\0';
	return buf;
}

void vhca_exposition_add_us(struct vhca_exposition *e, uint64_t us)
{
	char text[32];

	add_name(e, e->type == VHCA_COUNTER ? "_total" : "", "");
	vhca_strbuf_add(&e->text, "%s\n", seconds(us, text));
}

static void add_bucket(struct vhca_exposition *e, const char *labels, const char *bound, uint64_t n)
{
	char text[LABELS_MAX];

	(void)snprintf(text, sizeof(text), "%s%sle=\"%s\"", labels, labels[0] ? "," : "", bound);
	add_name(e, "_bucket", text);
	vhca_strbuf_add(&e->text, "%" PRIu64 "\n", n);
}

void vhca_exposition_add_histogram(struct vhca_exposition *e, const struct vhca_histogram *h,
				   const char *labels)
{
	uint64_t n = 0;
	char text[32];

	for (unsigned int i = 0; i < VHCA_HISTOGRAM_BOUNDS; i++) {
		n += h->counts[i];
		add_bucket(e, labels, seconds(vhca_histogram_bounds_us[i], text), n);
	}
	n += h->counts[VHCA_HISTOGRAM_BOUNDS];
	add_bucket(e, labels, "+Inf", n);
	add_name(e, "_sum", labels);
	vhca_strbuf_add(&e->text, "%s\n", seconds(h->sum_us, text));
	add_name(e, "_count", labels);
	vhca_strbuf_add(&e->text, "%" PRIu64 "\n", n);
}

void vhca_exposition_gauge(struct vhca_exposition *e, const char *name, uint64_t value,
			   const char *help)
{
	vhca_exposition_begin(e, VHCA_GAUGE, name, help);
	vhca_exposition_add(e, value, "%s", "");
}

void vhca_exposition_counter(struct vhca_exposition *e, const char *name, uint64_t value,
			     const char *help)
{
	vhca_exposition_begin(e, VHCA_COUNTER, name, help);
	vhca_exposition_add(e, value, "%s", "");
}

void vhca_exposition_end(struct vhca_exposition *e)
{
	vhca_strbuf_add(&e->text, "# EOF\n");
}
