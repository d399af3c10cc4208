/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file of dynamic LIDs of any content is refused, or means the same after it was written and read
 * again.
 */
#include <string.h>

#include "common/base/cleanup.h"
#include "opensm/lids/dynamic.h"
#include "tests/fuzz/fuzz.h"

static void check_accepted(const struct vhca_osm_dynamic_lids *t)
{
	struct vhca_osm_dynamic_lids u = {0};
	VHCA_AUTO_FREE char *text = NULL;
	size_t len;

	FUZZ_ASSERT(vhca_osm_dynamic_lids_format(t, &text, &len) == 0);
	FUZZ_ASSERT(strlen(text) == len);
	FUZZ_ASSERT(vhca_osm_dynamic_lids_parse(text, &u, NULL) == 0);
	FUZZ_ASSERT(u.n == t->n);
	for (size_t i = 0; i < t->n; i++) {
		FUZZ_ASSERT(u.rows[i].vguid == t->rows[i].vguid && u.rows[i].lid == t->rows[i].lid);
		FUZZ_ASSERT(u.rows[i].pf_guid == t->rows[i].pf_guid);
		FUZZ_ASSERT(vhca_osm_dynamic_lids_find(t, u.rows[i].vguid) == &t->rows[i]);
		FUZZ_ASSERT(vhca_osm_dynamic_lids_find_lid(t, u.rows[i].lid) == &t->rows[i]);
	}
	vhca_osm_dynamic_lids_done(&u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	VHCA_AUTO_FREE char *text = strndup(size ? (const char *)data : "", size);
	struct vhca_osm_dynamic_lids t = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = vhca_osm_dynamic_lids_parse(text, &t, &err);

	fuzz_verdict(r == 0);
	if (r < 0)
		FUZZ_ASSERT(strcmp(err.code, "state_damaged") == 0 && err.hint[0]);
	else
		check_accepted(&t);
	vhca_osm_dynamic_lids_done(&t);
	return 0;
}
