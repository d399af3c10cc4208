/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A base file of any content is refused with its line, or the partition file made from it passes
 * the same check.
 */
#include <string.h>

#include "common/base/cleanup.h"
#include "opensm/bindings/base_file.h"
#include "opensm/bindings/conf.h"
#include "opensm/bindings/partitions.h"
#include "tests/fuzz/fuzz.h"

static struct vhca_osm_table *some_needs(void)
{
	static const struct vhca_osm_limits limits = {8, 8, 8};
	static const uint16_t pkeys[] = {0x0001, 0x8002, 0x8123, 0xffff};
	struct vhca_osm_table *t = NULL;

	FUZZ_ASSERT(vhca_osm_table_new(&limits, false, &t) == 0);
	FUZZ_ASSERT(vhca_osm_table_declare(t, 0x1234, pkeys, 4, 126, NULL) == 0);
	return t;
}

static void check_accepted(const struct vhca_osm_base *base)
{
	struct vhca_osm_table *t = some_needs();
	struct vhca_osm_conf conf;
	struct vhca_osm_base whole = {0};
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;

	vhca_osm_conf_set_defaults(&conf);
	FUZZ_ASSERT(vhca_osm_partitions_render(t, base, &conf.policy, &text, &len) == 0);
	/* By its first line it is the plugin's own, and no administrator's. */
	FUZZ_ASSERT(vhca_osm_base_parse("g", text, &whole, NULL) < 0);
	FUZZ_ASSERT(vhca_osm_base_parse("g", strchr(text, '\n') + 1, &whole, NULL) == 0);
	/* Needs of three partitions; the default one is left to the base part. */
	FUZZ_ASSERT(whole.n == (base->n ? base->n : 1) + 3);
	for (size_t i = 0; i < base->n; i++)
		FUZZ_ASSERT(vhca_osm_base_find(&whole, base->prtns[i].pkey_base)->sl ==
			    vhca_osm_base_find(base, base->prtns[i].pkey_base)->sl);
	vhca_osm_base_done(&whole);
	(void)vhca_osm_table_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	VHCA_AUTO_FREE char *text = strndup(size ? (const char *)data : "", size);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_base base = {0};

	if (vhca_osm_base_parse("f", text, &base, &err) < 0) {
		fuzz_verdict(false);
		FUZZ_ASSERT(!base.text && !base.prtns && strncmp(err.msg, "f:", 2) == 0);
		return 0;
	}
	fuzz_verdict(true);
	check_accepted(&base);
	vhca_osm_base_done(&base);
	return 0;
}
