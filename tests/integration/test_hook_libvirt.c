/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hook's scanner and the agent's parser on what libvirt itself writes: each generated domain
 * goes through libvirt, and both find in libvirt's text what is true of the domain.
 *
 *   test_hook_libvirt              10,000 domains from seed 1 on, 1,000 from VHCA_FRESH_SEED (else the clock)
 *   VHCA_SEED=S test_hook_libvirt  the one of seed S, with its text before and after libvirt
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <libvirt/libvirt.h>

#include "common/base/cleanup.h"
#include "tests/integration/domain_gen.h"
#include "tests/unit/hooks/readers.h"
#include "tests/unit/unit.h"

#define FIXED 10000
#define FRESH 1000

struct rig {
	virConnectPtr conn; /* libvirt's test driver, in this process */
	struct domain_doc doc;
	unsigned int hostdevs, requests, overflows; /* that were seen, so that none of it is idle */
};

static void free_libvirt_string(char **s)
{
	free(*s);
}

static int setup(void **state)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	rig->conn = virConnectOpen("test:///default");
	assert_non_null(rig->conn);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	virConnectClose(rig->conn);
	free(rig);
	return 0;
}

/* As hooks get it of a domain that runs, or as it lies on the disk. Caller frees it. */
static char *format_by_libvirt(struct rig *rig, uint64_t seed)
{
	static const unsigned int flags[] = {0, VIR_DOMAIN_XML_INACTIVE, VIR_DOMAIN_XML_SECURE,
					     VIR_DOMAIN_XML_SECURE | VIR_DOMAIN_XML_MIGRATABLE};
	virDomainPtr dom = virDomainCreateXML(rig->conn, rig->doc.xml, 0);
	char *xml;

	if (!dom)
		fail_msg("seed %llu: libvirt does not take it", (unsigned long long)seed);
	xml = virDomainGetXMLDesc(dom, flags[seed % VHCA_ARRAY_SIZE(flags)]);
	assert_non_null(xml);
	assert_int_equal(virDomainDestroy(dom), 0);
	virDomainFree(dom);
	return xml;
}

/* In pieces, as out of a pipe. */
static void scan_pieces(struct vhca_scan *scan, const char *xml, size_t piece)
{
	size_t len = strlen(xml);

	vhca_scan_init(scan);
	for (size_t at = 0; at < len; at += piece)
		if (!vhca_scan_feed(scan, xml + at, len - at < piece ? len - at : piece))
			return;
}

static bool doc_has_hostdev(const struct domain_doc *doc, struct vhca_bdf bdf)
{
	for (unsigned int i = 0; i < doc->n_hostdevs; i++)
		if (vhca_bdf_cmp(doc->hostdevs[i], bdf) == 0)
			return true;
	return false;
}

/* What the scanner has wrong; NULL = nothing. */
static const char *check_scan(const struct vhca_scan *scan, const struct domain_doc *doc)
{
	bool overflow = doc->n_hostdevs > VHCA_HOOK_HOSTDEVS_MAX;
	unsigned int n = overflow ? VHCA_HOOK_HOSTDEVS_MAX : doc->n_hostdevs;

	if (vhca_scan_is_complete(scan) == overflow || scan->overflow != overflow)
		return "whether it was read to its end";
	if (!scan->has_uuid || !vhca_uuid_equal(&scan->uuid, &doc->uuid))
		return "the UUID";
	if (scan->has_request != doc->has_request)
		return "the request";
	if (scan->has_away != doc->has_away || !vhca_uuid_equal(&scan->away, &doc->away))
		return "the marker";
	if (scan->n_hostdevs != n)
		return "the number of host devices";
	for (unsigned int i = 0; i < n; i++)
		if (!doc_has_hostdev(doc, scan->hostdevs[i]))
			return "a host device";
	return NULL;
}

static const char *check_info(const struct vhca_dom_info *info, const struct domain_doc *doc)
{
	if (!vhca_uuid_equal(&info->uuid, &doc->uuid))
		return "the UUID";
	if (agent_has_request(info) != doc->has_request)
		return "the request";
	if (info->has_away != doc->has_away || !vhca_uuid_equal(&info->away, &doc->away))
		return "the marker";
	if (info->n_hostdevs != doc->n_hostdevs)
		return "the number of host devices";
	for (unsigned int i = 0; i < info->n_hostdevs; i++)
		if (!doc_has_hostdev(doc, info->hostdevs[i].host))
			return "a host device";
	return NULL;
}

static void count(struct rig *rig, const struct vhca_scan *scan)
{
	rig->hostdevs += scan->n_hostdevs;
	rig->requests += scan->has_request;
	rig->overflows += scan->overflow;
}

static void check_text(struct rig *rig, const char *xml, uint64_t seed)
{
	struct vhca_error err = VHCA_ERROR_INIT, request_err = VHCA_ERROR_INIT;
	struct vhca_dom_info *info = NULL;
	const char *scanned, *parsed, *missed;
	struct vhca_scan scan;

	scan_pieces(&scan, xml, seed % 5 ? 64 * 1024 : 1 + seed % 61);
	if (vhca_domxml_parse(xml, strlen(xml), &info, &request_err, &err) < 0)
		fail_msg("seed %llu: %s", (unsigned long long)seed, err.msg);
	scanned = check_scan(&scan, &rig->doc);
	parsed = check_info(info, &rig->doc);
	missed = scan.overflow ? NULL : scan_missed(&scan, info);
	free(info);
	count(rig, &scan);
	if (scanned || parsed || missed)
		fail_msg("VHCA_SEED=%llu: the hook has wrong %s, the agent %s, the hook missed %s",
			 (unsigned long long)seed, scanned ? scanned : "nothing",
			 parsed ? parsed : "nothing", missed ? missed : "nothing");
}

static void check_seed(struct rig *rig, uint64_t seed, bool shows)
{
	VHCA_CLEANUP(free_libvirt_string) char *xml = NULL;

	domain_gen(&rig->doc, seed);
	if (shows)
		(void)fprintf(stderr, "%s\n", rig->doc.xml);
	xml = format_by_libvirt(rig, seed);
	if (shows)
		(void)fprintf(stderr, "%s\n", xml);
	check_text(rig, xml, seed);
}

static void both_find_what_is_there(void **state)
{
	const char *one = getenv("VHCA_SEED"), *given = getenv("VHCA_FRESH_SEED");
	uint64_t fresh = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
	struct rig *rig = *state;

	if (one) {
		check_seed(rig, strtoull(one, NULL, 10), true);
		return;
	}
	for (uint64_t i = 0; i < FIXED; i++)
		check_seed(rig, 1 + i, false);
	print_message("# VHCA_FRESH_SEED=%llu\n", (unsigned long long)fresh);
	for (uint64_t i = 0; i < FRESH; i++)
		check_seed(rig, fresh + i, false);
	print_message("# %d domains: %u host devices, %u requests, %u with too many host devices\n",
		      FIXED + FRESH, rig->hostdevs, rig->requests, rig->overflows);
	assert_true(rig->hostdevs > FIXED && rig->requests > FIXED / 4 && rig->overflows > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(both_find_what_is_there, setup, teardown),
	};

	return cmocka_run_group_tests_name("hook_libvirt", tests, NULL, NULL);
}
