/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The hook's scanner finds the same in a document however the pipe cuts it into pieces. */
#include <string.h>

#include "hooks/scan.h"
#include "tests/fuzz/fuzz.h"

static void feed(struct vhca_scan *scan, const char *data, size_t size, size_t piece)
{
	vhca_scan_init(scan);
	for (size_t at = 0; at < size; at += piece)
		if (!vhca_scan_feed(scan, data + at, size - at < piece ? size - at : piece))
			return;
}

static void compare(const struct vhca_scan *a, const struct vhca_scan *b)
{
	FUZZ_ASSERT(vhca_scan_is_complete(a) == vhca_scan_is_complete(b));
	FUZZ_ASSERT(a->has_request == b->has_request && a->overflow == b->overflow);
	FUZZ_ASSERT(a->has_uuid == b->has_uuid);
	FUZZ_ASSERT(!a->has_uuid || vhca_uuid_equal(&a->uuid, &b->uuid));
	FUZZ_ASSERT(a->has_away == b->has_away && vhca_uuid_equal(&a->away, &b->away));
	FUZZ_ASSERT(a->n_hostdevs == b->n_hostdevs && a->n_hostdevs <= VHCA_HOOK_HOSTDEVS_MAX);
	for (unsigned int i = 0; i < a->n_hostdevs; i++)
		FUZZ_ASSERT(vhca_bdf_cmp(a->hostdevs[i], b->hostdevs[i]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vhca_scan whole, pieces;

	feed(&whole, (const char *)data, size, size ? size : 1);
	feed(&pieces, (const char *)data, size, 1);
	compare(&whole, &pieces);
	fuzz_verdict(vhca_scan_is_complete(&whole));
	feed(&pieces, (const char *)data, size, 7);
	compare(&whole, &pieces);
	return 0;
}
