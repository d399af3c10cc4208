/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Domain XML of any content is either refused with a message, or what was read obeys every limit
 * and can be plugged in.
 */
#include <string.h>

#include "agent/libvirt/domxml.h"
#include "tests/fuzz/fuzz.h"

static void check_request(const struct vhca_vf_request *req)
{
	FUZZ_ASSERT(vhca_name_is_valid(req->name) && vhca_name_is_valid(req->fabric));
	FUZZ_ASSERT(memchr(req->partition, '\0', sizeof(req->partition)));
	FUZZ_ASSERT(strspn(req->partition, " ") < strlen(req->partition));
	FUZZ_ASSERT(req->guid == 0 || vhca_guid_is_valid(req->guid));
	FUZZ_ASSERT(req->numa >= -1 && req->numa <= 1023);
}

static bool bdf_is_valid(struct vhca_bdf bdf)
{
	return bdf.dev <= 31 && bdf.fn <= 7;
}

static void check_requests(const struct vhca_dom_info *info)
{
	char buf[VHCA_HOSTDEV_XML_MAX];

	FUZZ_ASSERT(info->n_requests <= VHCA_DOM_VFS_MAX);
	for (unsigned int i = 0; i < info->n_requests; i++) {
		check_request(&info->requests[i]);
		for (unsigned int k = 0; k < i; k++)
			FUZZ_ASSERT(strcmp(info->requests[i].name, info->requests[k].name) != 0);
		FUZZ_ASSERT(vhca_domxml_hostdev(buf, sizeof(buf), info->requests[i].pf,
						info->requests[i].name, NULL) == 0);
	}
}

static void check_hostdevs(const struct vhca_dom_info *info)
{
	FUZZ_ASSERT(info->n_hostdevs <= VHCA_DOM_DEVS_MAX);
	for (unsigned int i = 0; i < info->n_hostdevs; i++) {
		const struct vhca_dom_hostdev *dev = &info->hostdevs[i];

		FUZZ_ASSERT(bdf_is_valid(dev->host) && bdf_is_valid(dev->guest));
		FUZZ_ASSERT(memchr(dev->alias, '\0', sizeof(dev->alias)));
		FUZZ_ASSERT(dev->path.n <= VHCA_DOM_HOPS_MAX &&
			    (dev->has_guest_addr || !dev->path.n));
		for (unsigned int h = 0; h < dev->path.n; h++)
			FUZZ_ASSERT(dev->path.hops[h].dev <= 31 && dev->path.hops[h].fn <= 7);
	}
}

static void check_copy(const char *xml, size_t size)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_dom_copy *copy = NULL;

	if (vhca_domxml_copy(xml, size, &copy, &err) < 0) {
		FUZZ_ASSERT(!copy && *err.code && err.msg[0]);
		return;
	}
	FUZZ_ASSERT(copy->n_disks <= VHCA_DOM_DISKS_MAX);
	for (unsigned int i = 0; i < copy->n_disks; i++) {
		FUZZ_ASSERT(memchr(copy->disks[i].target, '\0', sizeof(copy->disks[i].target)));
		FUZZ_ASSERT(memchr(copy->disks[i].file, '\0', sizeof(copy->disks[i].file)));
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vhca_error err = VHCA_ERROR_INIT, request_err = VHCA_ERROR_INIT;
	struct vhca_uuid none = {{0}};
	struct vhca_dom_info *info = NULL;

	check_copy((const char *)data, size);
	if (vhca_domxml_parse((const char *)data, size, &info, &request_err, &err) < 0) {
		fuzz_verdict(false);
		FUZZ_ASSERT(!info && *err.code && err.msg[0]);
		return 0;
	}
	fuzz_verdict(request_err.kind == VHCA_ERR_NONE);
	FUZZ_ASSERT(info->name[0] && memchr(info->name, '\0', sizeof(info->name)));
	FUZZ_ASSERT(info->id >= -1 && info->free_root_ports <= info->root_ports);
	FUZZ_ASSERT(info->memory.pages < VHCA_PAGES_COUNT);
	FUZZ_ASSERT(info->memory.pages == VHCA_PAGES_HUGE || !info->memory.page_kib);
	FUZZ_ASSERT(request_err.kind == VHCA_ERR_NONE || request_err.msg[0]);
	FUZZ_ASSERT(info->has_away || vhca_uuid_equal(&info->away, &none));
	check_requests(info);
	check_hostdevs(info);
	free(info);
	return 0;
}
