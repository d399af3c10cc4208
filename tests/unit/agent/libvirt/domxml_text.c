/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/unit/agent/libvirt/domxml_text.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "tests/unit/unit.h"

struct vhca_error dom_err;
struct vhca_error dom_request_err;

struct vhca_dom_info *dom_parse_len(const char *xml, size_t len, int want)
{
	struct vhca_dom_info *info = NULL;

	dom_err = dom_request_err = (struct vhca_error)VHCA_ERROR_INIT;
	assert_int_equal(vhca_domxml_parse(xml, len, &info, &dom_request_err, &dom_err), want);
	if (want == 0) {
		assert_non_null(info);
	} else {
		assert_null(info);
		assert_string_equal(dom_err.code, "bad_domain_xml");
	}
	return info;
}

struct vhca_dom_info *dom_parse(const char *xml, int want)
{
	return dom_parse_len(xml, strlen(xml), want);
}

void dom_assert_says(const struct vhca_error *e, const char *part)
{
	if (!strstr(e->msg, part) && !strstr(e->hint, part))
		fail_msg("\"%s\" / \"%s\" does not say \"%s\"", e->msg, e->hint, part);
}

const char dom_live_xml[] = DOM_HEAD DOM_META(
	"<vhca:vf name='ib0' partition='0x8001 0xffff' guid='auto' fabric='red'/>"
	"<!-- second rail -->"
	"<vhca:vf name='ib1' partition='storage' guid='0x0002c90300a1b2c3' numa='1' "
	"pf='0000:3b:00.0'/>") "<devices>"
			       "<controller type='pci' index='0' model='pcie-root'><alias "
			       "name='pcie.0'/></controller>"
			       "<controller type='pci' index='1' model='pcie-root-port'>"
			       "<address type='pci' domain='0x0000' bus='0x00' slot='0x02' "
			       "function='0x0'/></controller>"
			       "<controller type='pci' index='2' model='pcie-root-port'/>"
			       "<controller type='pci' index='3' model='pcie-root-port'/>"
			       "<controller type='pci' index='4' model='pcie-root-port'><target "
			       "chassis='4' hotplug='off'/></controller>"
			       "<controller type='usb' index='0' model='none'/>"
			       "<interface type='network'><address type='pci' domain='0x0000' "
			       "bus='0x01' slot='0x00' function='0x0'/></interface>"
			       "<hostdev mode='subsystem' type='pci' managed='no'><driver "
			       "name='vfio'/>"
			       "<source><address domain='0x0000' bus='0x3b' slot='0x00' "
			       "function='0x2'/></source>"
			       "<alias name='ua-vhca-ib0'/>"
			       "<address type='pci' domain='0x0000' bus='0x02' slot='0x00' "
			       "function='0x0'/></hostdev>"
			       "<hostdev mode='subsystem' type='usb'><source><address bus='1' "
			       "device='3'/></source></hostdev>"
			       "<interface type='hostdev'><source><address type='pci' "
			       "domain='0x0001' bus='0x82' slot='0x1f' function='0x7'/>"
			       "</source><alias name='hostdev1'/></interface>"
			       "</devices></domain>";

char *dom_repeat(const char *head, unsigned int n, const char *before, const char *after,
		 const char *tail)
{
	size_t size = strlen(head) + strlen(tail) + n * (strlen(before) + strlen(after) + 12) + 1;
	char *xml = malloc(size);
	struct vhca_strbuf sb;

	assert_non_null(xml);
	vhca_strbuf_init(&sb, xml, size);
	vhca_strbuf_add(&sb, "%s", head);
	for (unsigned int i = 0; i < n; i++)
		vhca_strbuf_add(&sb, "%s%u%s", before, i, after);
	vhca_strbuf_add(&sb, "%s", tail);
	assert_false(sb.truncated);
	return xml;
}
