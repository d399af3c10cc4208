/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the hook's scanner and the agent's XML parser find in one document (readers.h). Left out are
 * documents that libvirt never writes and that only a full parser can read: character references
 * and other encodings than UTF-8.
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/hooks/readers.h"

static bool is_plain(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] == '&' || data[i] >= 0x80 || data[i] == 0)
			return false;
	return !memmem(data, size, "encoding", 8);
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
	if (vhca_scan_is_complete(&scan))
		FUZZ_ASSERT(!scan_missed(&scan, info));
	free(info);
	return 0;
}
