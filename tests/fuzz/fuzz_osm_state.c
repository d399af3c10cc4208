/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A state file of any content is refused, or means the same after it was written and read again. */
#include <string.h>

#include "common/base/cleanup.h"
#include "opensm/bindings/state_file.h"
#include "tests/fuzz/fuzz.h"

static struct vhca_osm_table *new_table(void)
{
	static const struct vhca_osm_limits limits = {64, 64, 64, 64};
	struct vhca_osm_table *t = NULL;

	FUZZ_ASSERT(vhca_osm_table_new(&limits, true, &t) == 0);
	return t;
}

static void check_accepted(const struct vhca_osm_table *t)
{
	struct vhca_osm_table *u = new_table();
	VHCA_AUTO_FREE char *text = NULL, *scratch = NULL, *again = NULL;
	size_t len, len_again;

	FUZZ_ASSERT(vhca_osm_state_format(t, &text, &len) == 0);
	scratch = strdup(text);
	FUZZ_ASSERT(vhca_osm_state_parse(scratch, u, NULL) == 0);
	FUZZ_ASSERT(vhca_osm_state_format(u, &again, &len_again) == 0);
	FUZZ_ASSERT(len == len_again && strcmp(text, again) == 0);
	FUZZ_ASSERT(vhca_osm_table_bindings(u) == vhca_osm_table_bindings(t));
	(void)vhca_osm_table_free(u);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	VHCA_AUTO_FREE char *text = strndup(size ? (const char *)data : "", size);
	struct vhca_osm_table *t = new_table();
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = vhca_osm_state_parse(text, t, &err);

	fuzz_verdict(r == 0);
	if (r < 0)
		FUZZ_ASSERT(strcmp(err.code, "state_damaged") == 0 && err.hint[0]);
	else
		check_accepted(t);
	(void)vhca_osm_table_free(t);
	return 0;
}
