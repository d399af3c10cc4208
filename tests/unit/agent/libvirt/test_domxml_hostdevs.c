/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The host devices in a domain's XML, and that of one to be plugged in. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/libvirt/domxml.h"
#include "common/base/cleanup.h"
#include "tests/unit/agent/libvirt/domxml_text.h"
#include "tests/unit/unit.h"

static void reads_hostdevs_of_both_kinds(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(dom_live_xml, 0);

	(void)state;
	assert_int_equal(info->n_hostdevs, 2);
	assert_string_equal(VHCA_BDF_STR(info->hostdevs[0].host), "0000:3b:00.2");
	assert_string_equal(info->hostdevs[0].alias, "ua-vhca-ib0");
	assert_true(info->hostdevs[0].has_guest_addr);
	assert_string_equal(VHCA_BDF_STR(info->hostdevs[0].guest), "0000:02:00.0");
	assert_string_equal(VHCA_BDF_STR(info->hostdevs[1].host), "0001:82:1f.7");
	assert_string_equal(info->hostdevs[1].alias, "hostdev1");
	assert_false(info->hostdevs[1].has_guest_addr);
}

static void counts_root_ports(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(dom_live_xml, 0);

	(void)state;
	assert_int_equal(info->root_ports, 4);
	assert_int_equal(info->free_root_ports, 1); /* 1 and 2 are taken, 4 cannot be hot-plugged */
}

static struct vhca_dom_info *parse_many_hostdevs(unsigned int n, int want)
{
	VHCA_AUTO_FREE char *xml =
		dom_repeat(DOM_HEAD "<devices>", n,
			   "<hostdev mode='subsystem' type='pci'><source><address "
			   "bus='0' slot='0' function='1' domain='",
			   "'/></source></hostdev>", "</devices></domain>");

	return dom_parse(xml, want);
}

/* One domain that cannot be read holds up all of the host: what a guest can have is read. */
static void any_guest_can_be_read(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = parse_many_hostdevs(255 * 8, 0);
	struct vhca_dom_info *copy = vhca_dom_info_dup(info);

	(void)state;
	assert_non_null(copy);
	info->hostdevs[2039].host.fn = 7;
	assert_int_equal(copy->n_hostdevs, 2040);
	assert_int_equal(copy->hostdevs[2039].host.domain, 2039);
	assert_int_equal(copy->hostdevs[2039].host.fn, 1);
	free(copy);
}

/* A cut list would say "this VF is in no domain" of one that is. */
static void too_many_hostdevs_fail(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *full = parse_many_hostdevs(VHCA_DOM_DEVS_MAX, 0);

	(void)state;
	assert_int_equal(full->n_hostdevs, VHCA_DOM_DEVS_MAX);
	for (unsigned int i = 0; i < VHCA_DOM_DEVS_MAX; i++)
		assert_int_equal(full->hostdevs[i].host.domain, i);
	(void)parse_many_hostdevs(VHCA_DOM_DEVS_MAX + 1, -E2BIG);
}

/* As libvirt 9.0 writes a disk behind Intel's VMD: the kernel numbers its PCI domains from 0x10000
 * (drivers/pci/controller/vmd.c), libvirt's <address domain> has 32 bits. */
#define BEHIND_VMD                                                                           \
	"<hostdev mode='subsystem' type='pci' managed='yes'><driver name='vfio'/><source>"   \
	"<address domain='0x10000' bus='0xe1' slot='0x00' function='0x0'/></source>"         \
	"<alias name='hostdev0'/><address type='pci' domain='0x0000' bus='0x05' slot='0x00'" \
	" function='0x0'/></hostdev>"

static void device_behind_vmd_is_none_of_ours(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(
		DOM_HEAD "<devices>" BEHIND_VMD
			 "<hostdev mode='subsystem' type='pci'><source><address domain='0x0000' "
			 "bus='0x3b' slot='0x00' function='0x2'/></source></hostdev>" BEHIND_VMD
			 "</devices></domain>",
		0);

	(void)state;
	assert_int_equal(info->n_hostdevs, 1);
	assert_string_equal(VHCA_BDF_STR(info->hostdevs[0].host), "0000:3b:00.2");
	assert_true(info->has_far_hostdev);
}

/* What a network with <forward mode='hostdev'> has given, and what Nova writes. */
static void managed_hostdevs_are_read(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(
		DOM_HEAD
		"<devices><interface type='hostdev' managed='yes'><driver name='vfio'/><source>"
		"<address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x2'/>"
		"</source><alias name='hostdev0'/></interface>"
		"<hostdev mode='subsystem' type='pci' managed='yes'><source><address "
		"domain='0x0000' bus='0x01' slot='0x00' function='0x3'/></source></hostdev>"
		"</devices></domain>",
		0);

	(void)state;
	assert_int_equal(info->n_hostdevs, 2);
	assert_string_equal(VHCA_BDF_STR(info->hostdevs[0].host), "0000:01:00.2");
	assert_string_equal(VHCA_BDF_STR(info->hostdevs[1].host), "0000:01:00.3");
}

static void unreadable_hostdevs_fail(void **state)
{
#define DEV(inner)                                                                               \
	DOM_HEAD "<devices><hostdev mode='subsystem' type='pci'>" inner "</hostdev></devices></" \
		 "domain>"
	static const char *const forms[] = {
		DEV(""),
		DEV("<source/>"),
		DEV("<source><address domain='0' bus='0x100' slot='0' function='0'/></source>"),
		DEV("<source><address domain='0' bus='1' slot='32' function='0'/></source>"),
		DEV("<source><address domain='0' bus='1' slot='0' function='8'/></source>"),
		DEV("<source><address domain='x' bus='1' slot='0' function='0'/></source>"),
		DEV("<source><address domain='0' slot='0' function='0'/></source>"),
		DEV("<source><address domain='0' bus='1' slot='0' function='0'/></source>"
		    "<address type='pci' bus='zz' slot='0' function='0'/>"),
	};
#undef DEV

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++) {
		(void)dom_parse(forms[i], -EINVAL);
		dom_assert_says(&dom_err, "PCI host device");
	}
}

static void long_alias_is_not_ours(void **state)
{
	char xml[1024], alias[201] = "";
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;

	(void)state;
	memset(alias, 'a', 200);
	(void)snprintf(xml, sizeof(xml),
		       DOM_HEAD "<devices><hostdev mode='subsystem' type='pci'><source>"
				"<address domain='0' bus='1' slot='0' function='1'/></source>"
				"<alias name='%s'/></hostdev></devices></domain>",
		       alias);
	info = dom_parse(xml, 0);
	assert_int_equal(info->n_hostdevs, 1);
	assert_string_equal(info->hostdevs[0].alias, "");
}

static void hostdev_for_hotplug(void **state)
{
	char buf[VHCA_HOSTDEV_XML_MAX];
	struct vhca_bdf host = {.domain = 0, .bus = 0x3b, .dev = 0x1f, .fn = 7};
	struct vhca_bdf guest = {.bus = 2};

	(void)state;
	assert_int_equal(vhca_domxml_hostdev(buf, sizeof(buf), host, "ib0", NULL), 0);
	assert_string_equal(
		buf,
		"<hostdev mode='subsystem' type='pci' managed='no'><driver name='vfio'/>"
		"<source><address domain='0x0000' bus='0x3b' slot='0x1f' function='0x7'/></source>"
		"<alias name='ua-vhca-ib0'/></hostdev>");
	assert_int_equal(vhca_domxml_hostdev(buf, sizeof(buf), host, "ib0", &guest), 0);
	assert_non_null(strstr(buf, "<address type='pci' domain='0x0000' bus='0x02' slot='0x00' "
				    "function='0x0'/></hostdev>"));
	assert_int_equal(vhca_domxml_hostdev(buf, 100, host, "ib0", NULL), -ENOBUFS);
	assert_int_equal(vhca_domxml_hostdev(buf, sizeof(buf), host, "'/><x", NULL), -EINVAL);
	assert_int_equal(vhca_domxml_hostdev(buf, sizeof(buf), host, "", NULL), -EINVAL);
}

/* What we plug in is what we find again. */
static void hostdev_round_trip(void **state)
{
	char buf[VHCA_HOSTDEV_XML_MAX], xml[2048];
	char name[VHCA_NAME_MAX] = "";
	struct vhca_bdf host = {.domain = 0xffff, .bus = 0xff, .dev = 0x1f, .fn = 7};
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	assert_int_equal(vhca_domxml_hostdev(buf, sizeof(buf), host, name, &host), 0);
	(void)snprintf(xml, sizeof(xml), DOM_HEAD "<devices>%s</devices></domain>", buf);
	info = dom_parse(xml, 0);
	assert_int_equal(info->n_hostdevs, 1);
	assert_int_equal(vhca_bdf_cmp(info->hostdevs[0].host, host), 0);
	assert_int_equal(vhca_bdf_cmp(info->hostdevs[0].guest, host), 0);
	assert_string_equal(info->hostdevs[0].alias + strlen(VHCA_ALIAS_PREFIX), name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_hostdevs_of_both_kinds),
		cmocka_unit_test(counts_root_ports),
		cmocka_unit_test(any_guest_can_be_read),
		cmocka_unit_test(too_many_hostdevs_fail),
		cmocka_unit_test(device_behind_vmd_is_none_of_ours),
		cmocka_unit_test(managed_hostdevs_are_read),
		cmocka_unit_test(unreadable_hostdevs_fail),
		cmocka_unit_test(long_alias_is_not_ours),
		cmocka_unit_test(hostdev_for_hotplug),
		cmocka_unit_test(hostdev_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
