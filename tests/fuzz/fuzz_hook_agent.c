/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hook's scanner misses nothing that the agent's XML parser finds: otherwise a domain would
 * pass the hook as none of ours and then be treated as ours. (The reverse is harmless: the agent is
 * asked and knows better.) Left out are documents that libvirt never writes and that only a full
 * parser can read: character references and other encodings than UTF-8.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "agent/libvirt/domxml.h"
#include "hooks/scan.h"

static bool is_plain(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] == '&' || data[i] >= 0x80 || data[i] == 0)
			return false;
	return !memmem(data, size, "encoding", 8);
}

static bool has_hostdev(const struct vhca_scan *scan, struct vhca_bdf bdf)
{
	for (unsigned int i = 0; i < scan->n_hostdevs; i++)
		if (vhca_bdf_cmp(scan->hostdevs[i], bdf) == 0)
			return true;
	return scan->overflow;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vhca_error err = VHCA_ERROR_INIT, request_err = VHCA_ERROR_INIT;
	struct vhca_dom_info *info = NULL;
	struct vhca_scan scan;

	if (!is_plain(data, size) ||
	    vhca_domxml_parse((const char *)data, size, &info, &request_err, &err) < 0)
		return 0;
	fuzz_verdict(request_err.kind == VHCA_ERR_NONE);
	vhca_scan_init(&scan);
	(void)vhca_scan_feed(&scan, (const char *)data, size);
	FUZZ_ASSERT(vhca_scan_is_complete(&scan) || scan.overflow ||
		    scan.n_prefixes == VHCA_SCAN_PREFIXES_MAX);
	if (vhca_scan_is_complete(&scan)) {
		FUZZ_ASSERT(scan.has_request || (!info->n_requests && !request_err.kind));
		FUZZ_ASSERT(!info->has_away ||
			    (scan.has_away && vhca_uuid_equal(&scan.away, &info->away)));
		for (unsigned int i = 0; i < info->n_hostdevs; i++)
			FUZZ_ASSERT(has_hostdev(&scan, info->hostdevs[i].host));
	}
	free(info);
	return 0;
}
