/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/domxml.h"

#include "common/base/cleanup.h"
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UUID_TEXT "6b3e0f5c-1111-4222-8333-0123456789ab"
#define HEAD                                                                   \
	"<domain type='kvm' id='7'><name>vm1</name><uuid>" UUID_TEXT "</uuid>" \
	"<memory unit='KiB'>1048576</memory>"
#define META(inner)                                                         \
	"<metadata><vhca:infiniband xmlns:vhca='urn:vhcad:domain:1'>" inner \
	"</vhca:infiniband></metadata>"
#define ONE_VF(attrs) HEAD META("<vhca:vf " attrs "/>") "</domain>"

static struct vhca_error err, request_err;

static struct vhca_dom_info *parse_len(const char *xml, size_t len, int want)
{
	struct vhca_dom_info *info = NULL;

	err = request_err = (struct vhca_error)VHCA_ERROR_INIT;
	assert_int_equal(vhca_domxml_parse(xml, len, &info, &request_err, &err), want);
	if (want == 0) {
		assert_non_null(info);
	} else {
		assert_null(info);
		assert_string_equal(err.code, "bad_domain_xml");
	}
	return info;
}

static struct vhca_dom_info *parse(const char *xml, int want)
{
	return parse_len(xml, strlen(xml), want);
}

static void assert_says(const struct vhca_error *e, const char *part)
{
	if (!strstr(e->msg, part) && !strstr(e->hint, part))
		fail_msg("\"%s\" / \"%s\" does not say \"%s\"", e->msg, e->hint, part);
}

/* The live XML of a q35 guest, shortened, as libvirt 9.0 writes it. */
static const char live_xml[] = HEAD META(
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

static void reads_head(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = parse(live_xml, 0);

	(void)state;
	assert_string_equal(info->name, "vm1");
	assert_string_equal(VHCA_UUID_STR(&info->uuid), UUID_TEXT);
	assert_int_equal(info->id, 7);
	assert_int_equal(info->memory.kib, 1048576);
}

/* What stands after <memory> in the guest's XML. */
static struct vhca_guest_memory memory_of(const char *inner)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;
	char xml[1024];

	(void)snprintf(xml, sizeof(xml), HEAD "%s</domain>", inner);
	info = parse(xml, 0);
	assert_int_equal(info->memory.kib, 1048576);
	return info->memory;
}

static void reads_what_pins_the_memory(void **state)
{
	struct vhca_guest_memory m = memory_of("");

	(void)state;
	assert_int_equal(m.pages, VHCA_PAGES_ORDINARY);
	assert_int_equal(m.hard_limit_kib, 0);
	m = memory_of("<memtune><soft_limit unit='KiB'>7</soft_limit>"
		      "<hard_limit unit='KiB'>2097152</hard_limit></memtune>");
	assert_int_equal(m.hard_limit_kib, 2097152);
	assert_false(m.is_pinned);
	m = memory_of("<numatune><memory mode='strict' nodeset='1'/></numatune>");
	assert_true(m.is_pinned);
	assert_int_equal(m.node, 1);
	assert_false(
		memory_of("<numatune><memory mode='strict' nodeset='0-1'/></numatune>").is_pinned);
	/* A limit that cannot be read hides nothing of the domain. */
	m = memory_of("<memtune><hard_limit unit='KiB'>much</hard_limit></memtune>");
	assert_int_equal(m.hard_limit_kib, 0);
	m = memory_of("<memoryBacking><locked/></memoryBacking>");
	assert_int_equal(m.pages, VHCA_PAGES_ORDINARY);
}

static void reads_what_pins_the_cpus(void **state)
{
	static const struct {
		const char *xml, *cpus;
	} rows[] = {
		{"", ""},
		{"<vcpu placement='static'>2</vcpu>", ""},
		{"<vcpu>2</vcpu><cputune><vcpupin vcpu='0' cpuset='4-7,^5'/>"
		 "<vcpupin vcpu='1' cpuset='8'/></cputune>",
		 "4,6-8"},
		{"<vcpu>2</vcpu><cputune><vcpupin vcpu='0' cpuset='4'/></cputune>", ""},
		{"<vcpu cpuset='1,3'>2</vcpu><cputune><vcpupin vcpu='0' cpuset='4'/></cputune>",
		 "1,3-4"},
		{"<vcpu cpuset='1,3'>2</vcpu>", "1,3"},
		{"<vcpu>1</vcpu><cputune><vcpupin vcpu='0' cpuset='x'/></cputune>", ""},
		{"<vcpu>1</vcpu><cputune><vcpupin vcpu='0'/></cputune>", ""},
		{"<vcpu cpuset='1'>many</vcpu>", ""},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rows); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;
		struct vhca_cpus want;
		char xml[1024];

		(void)snprintf(xml, sizeof(xml), HEAD "%s</domain>", rows[i].xml);
		info = parse(xml, 0);
		assert_int_equal(vhca_cpus_parse(rows[i].cpus, &want), 0);
		assert_memory_equal(&info->cpus, &want, sizeof(want));
	}
}

#define HUGE(inner) "<memoryBacking><hugepages>" inner "</hugepages></memoryBacking>"
#define CELLS(n)    "<cpu><numa>" n "</numa></cpu>"

static void reads_the_size_of_huge_pages(void **state)
{
	static const struct {
		const char *xml;
		enum vhca_pages pages;
		uint64_t page_kib;
	} cases[] = {
		{"<memoryBacking><hugepages/></memoryBacking>", VHCA_PAGES_HUGE, 0},
		{HUGE("<page size='2048' unit='KiB'/>"), VHCA_PAGES_HUGE, 2048},
		/* as Nova writes it: one for each node of the guest */
		{HUGE("<page size='1048576' unit='KiB' nodeset='0'/>") CELLS("<cell id='0'/>"),
		 VHCA_PAGES_HUGE, 1048576},
		{HUGE("<page size='2048' unit='KiB' nodeset='0'/><page size='2048' unit='KiB' "
		      "nodeset='1'/>") CELLS("<cell id='0'/><cell id='1'/>"),
		 VHCA_PAGES_HUGE, 2048},
		/* the other node has ordinary pages */
		{HUGE("<page size='2048' unit='KiB' nodeset='0'/>")
			 CELLS("<cell id='0'/><cell id='1'/>"),
		 VHCA_PAGES_MIXED, 0},
		{HUGE("<page size='2048' unit='KiB' nodeset='0'/><page size='1048576' unit='KiB' "
		      "nodeset='1'/>") CELLS("<cell id='0'/><cell id='1'/>"),
		 VHCA_PAGES_MIXED, 0},
		{HUGE("<page size='2' unit='M'/>"), VHCA_PAGES_MIXED, 0},
		{HUGE("<page/>"), VHCA_PAGES_MIXED, 0},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		struct vhca_guest_memory m = memory_of(cases[i].xml);

		assert_int_equal(m.pages, cases[i].pages);
		assert_int_equal(m.page_kib, cases[i].page_kib);
	}
}

static void the_sm_may_choose_the_guid(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info =
		parse(ONE_VF("name='ib0' partition='1' guid='sm'"), 0);

	(void)state;
	assert_int_equal(request_err.kind, VHCA_ERR_NONE);
	assert_true(info->requests[0].guid == VHCA_GUID_BY_SM);
}

static void reads_two_requests(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = parse(live_xml, 0);
	const struct vhca_vf_request *a = &info->requests[0], *b = &info->requests[1];

	(void)state;
	assert_int_equal(request_err.kind, VHCA_ERR_NONE);
	assert_int_equal(info->n_requests, 2);
	assert_string_equal(a->name, "ib0");
	assert_string_equal(a->partition, "0x8001 0xffff");
	assert_string_equal(a->fabric, "red");
	assert_int_equal(a->guid, 0);
	assert_int_equal(a->numa, -1);
	assert_false(a->has_pf);
	assert_string_equal(b->name, "ib1");
	assert_string_equal(b->fabric, "default");
	assert_true(b->guid == UINT64_C(0x0002c90300a1b2c3));
	assert_int_equal(b->numa, 1);
	assert_true(b->has_pf);
	assert_string_equal(VHCA_BDF_STR(b->pf), "0000:3b:00.0");
}

static void reads_hostdevs_of_both_kinds(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = parse(live_xml, 0);

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
	VHCA_AUTO_FREE struct vhca_dom_info *info = parse(live_xml, 0);

	(void)state;
	assert_int_equal(info->root_ports, 4);
	assert_int_equal(info->free_root_ports, 1); /* 1 and 2 are taken, 4 cannot be hot-plugged */
}

static void inactive_domain_has_no_id(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info =
		parse("<domain type='kvm'><name>a</name><uuid>" UUID_TEXT "</uuid></domain>", 0);

	(void)state;
	assert_int_equal(info->id, -1);
	assert_int_equal(info->n_requests, 0);
	assert_int_equal(info->n_hostdevs, 0);
}

static void cuts_a_long_name(void **state)
{
	char xml[1024], name[301] = "";
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;

	(void)state;
	memset(name, 'n', 300);
	(void)snprintf(xml, sizeof(xml),
		       "<domain><name>%s</name><uuid>" UUID_TEXT "</uuid></domain>", name);
	info = parse(xml, 0);
	assert_int_equal(strlen(info->name), sizeof(info->name) - 1);
}

static void prefix_of_namespace_is_free(void **state)
{
	static const char *const forms[] = {
		HEAD "<metadata><x:infiniband xmlns:x='urn:vhcad:domain:1'>"
		     "<x:vf name='ib0' partition='0x8001'/></x:infiniband></metadata></domain>",
		HEAD "<metadata><infiniband xmlns='urn:vhcad:domain:1'>"
		     "<vf name='ib0' partition='0x8001'/></infiniband></metadata></domain>",
		HEAD "<metadata><app:a xmlns:app='urn:app'><app:vf name='no'/></app:a>"
		     "<x:infiniband xmlns:x='urn:vhcad:domain:1' xmlns:o='urn:other'>"
		     "<x:vf name='ib0' o:note='mine' "
		     "partition='0x8001'/></x:infiniband></metadata></domain>",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = parse(forms[i], 0);

		assert_int_equal(request_err.kind, VHCA_ERR_NONE);
		assert_int_equal(info->n_requests, 1);
		assert_string_equal(info->requests[0].name, "ib0");
	}
}

static void other_namespaces_ask_for_nothing(void **state)
{
	static const char *const forms[] = {
		HEAD
		"<metadata><vhca:infiniband xmlns:vhca='urn:vhcad:domain:2'>"
		"<vhca:vf name='ib0' partition='0x8001'/></vhca:infiniband></metadata></domain>",
		HEAD "<metadata><infiniband><vf name='ib0' "
		     "partition='1'/></infiniband></metadata></domain>",
		HEAD "<description>&lt;vhca:vf name='ib0'/&gt;</description></domain>",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = parse(forms[i], 0);

		assert_int_equal(request_err.kind, VHCA_ERR_NONE);
		assert_int_equal(info->n_requests, 0);
	}
}

#define AWAY_TEXT   "0c6c1b6e-2222-4333-8444-ba9876543210"
#define AWAY(attrs) "<metadata><a:away xmlns:a='urn:vhcad:away:1' " attrs "/></metadata></domain>"

static void reads_the_marker_of_a_migration(void **state)
{
	static const struct {
		const char *xml;
		bool away, id, autostart;
	} cases[] = {
		{HEAD AWAY("migration='" AWAY_TEXT "'"), true, true},
		{HEAD AWAY("migration='" AWAY_TEXT "' autostart='yes'"), true, true, true},
		{HEAD AWAY("migration='" AWAY_TEXT "' autostart='no'"), true, true},
		{HEAD "<metadata><away xmlns='urn:vhcad:away:1' migration='" AWAY_TEXT
		      "'/></metadata></domain>",
		 true, true},
		/* An unreadable one still says that the VFs are away. */
		{HEAD AWAY("migration='7'"), true, false},
		{HEAD AWAY(""), true, false},
		{HEAD AWAY("a:migration='" AWAY_TEXT "'"), true, false},
		{HEAD "</domain>", false, false},
		{HEAD "<metadata/></domain>", false, false},
		{HEAD "<metadata><away migration='" AWAY_TEXT "'/></metadata></domain>", false,
		 false},
		{HEAD "<metadata><a:home xmlns:a='urn:vhcad:away:1'/></metadata></domain>", false,
		 false},
		{HEAD "<a:away xmlns:a='urn:vhcad:away:1' migration='" AWAY_TEXT "'/></domain>",
		 false, false},
	};
	struct vhca_uuid id, zero = {{0}};

	(void)state;
	assert_int_equal(vhca_uuid_parse(AWAY_TEXT, &id), 0);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = parse(cases[i].xml, 0);

		if (info->has_away != cases[i].away || info->away_autostart != cases[i].autostart ||
		    !vhca_uuid_equal(&info->away, cases[i].id ? &id : &zero))
			fail_msg("case %zu", i);
		assert_int_equal(info->n_requests, 0);
		assert_int_equal(request_err.kind, VHCA_ERR_NONE);
	}
}

/* Both namespaces under one prefix, as libvirt writes them. */
static void marker_stands_beside_the_request(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info =
		parse(HEAD "<metadata><vhca:infiniband xmlns:vhca='urn:vhcad:domain:1'>"
			   "<vhca:vf name='ib0' partition='0x8001'/></vhca:infiniband>"
			   "<vhca:away xmlns:vhca='urn:vhcad:away:1' migration='" AWAY_TEXT
			   "'/></metadata></domain>",
		      0);

	(void)state;
	assert_true(info->has_away);
	assert_int_equal(info->n_requests, 1);
	assert_int_equal(request_err.kind, VHCA_ERR_NONE);
}

static void bad_requests_name_the_place(void **state)
{
	static const struct {
		const char *xml, *says, *and;
	} cases[] = {
		{ONE_VF("partition='1'"), "attribute name is missing", "letters, digits"},
		{ONE_VF("name='' partition='1'"), "name=\"\"", "1 to 31"},
		{ONE_VF("name='a b' partition='1'"), "name=\"a b\"", "letters"},
		{ONE_VF("name='ib0:1' partition='1'"), "name=\"ib0:1\"", "letters"},
		{ONE_VF("name='ib0'"), "attribute partition is missing", "P_Keys"},
		{ONE_VF("name='ib0' partition=''"), "partition=\"\"", "P_Keys"},
		{ONE_VF("name='ib0' partition='   '"), "partition=\"   \"", "P_Keys"},
		{ONE_VF("name='ib0' partition='0x8001,0xffff'"), "partition=\"0x8001,0xffff\"",
		 "separated by blanks"},
		{ONE_VF("name='ib0' partition='1' guid='0'"), "guid=\"0\"", "auto, sm"},
		{ONE_VF("name='ib0' partition='1' guid='0x0'"), "guid=\"0x0\"", "auto, sm"},
		{ONE_VF("name='ib0' partition='1' guid='0x0102c90300a1b2c3'"), "guid=", "unicast"},
		{ONE_VF("name='ib0' partition='1' guid='Auto'"), "guid=\"Auto\"", "auto, sm"},
		{ONE_VF("name='ib0' partition='1' guid='mac:fa:16:3e:12:34'"),
		 "guid=\"mac:", "or mac:"},
		{ONE_VF("name='ib0' partition='1' fabric=''"), "fabric=\"\"", "letters"},
		{ONE_VF("name='ib0' partition='1' pf='03:00.0'"), "pf=\"03:00.0\"", "0000:03:00.0"},
		{ONE_VF("name='ib0' partition='1' numa='-1'"), "numa=\"-1\"", "0 to 1023"},
		{ONE_VF("name='ib0' partition='1' numa='1024'"), "numa=\"1024\"", "0 to 1023"},
		{ONE_VF("name='ib0' partition='1' gid='auto'"), "unknown attribute gid", "guid"},
		{HEAD META("<vhca:vf name='a' partition='1'/><vhca:vf name='a' "
			   "partition='2'/>") "</domain>",
		 "number 2: name=\"a\" is used twice", ""},
		{HEAD META("<vhca:port name='a'/>") "</domain>", "unknown element <port>",
		 "vhca:vf"},
		{HEAD META("<vf name='a' partition='1'/>") "</domain>", "unknown element <vf>",
		 "vhca:vf"},
		{HEAD "<metadata><v:ib xmlns:v='urn:vhcad:domain:1'/></metadata></domain>",
		 "unknown element <ib>", "vhca:infiniband"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = parse(cases[i].xml, 0);

		assert_int_equal(request_err.kind, VHCA_ERR_INVALID);
		assert_string_equal(request_err.code, "bad_vf_request");
		assert_says(&request_err, "vm1");
		assert_says(&request_err, cases[i].says);
		assert_says(&request_err, cases[i].and);
		assert_says(&request_err, "is given no VF");
		assert_string_not_equal(request_err.hint, ""); /* what to write instead */
		assert_int_equal(info->n_requests, 0);
		assert_int_equal(info->request_error.kind, VHCA_ERR_INVALID);
	}
}

/* In words it is refused as a whole, and so it is; what the domain has is not hidden by that. */
static void bad_request_refuses_all_and_hides_no_device(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = parse(
		HEAD META(
			"<vhca:vf name='ib0' partition='1'/><vhca:vf name='ib1' partition='' />"
			"<vhca:vf name='ib2' partition='2'/>") "<devices><hostdev mode='subsystem' "
							       "type='pci'><source>"
							       "<address domain='0' bus='0x3b' "
							       "slot='0' function='1'/>"
							       "</source></hostdev></devices></"
							       "domain>",
		0);

	(void)state;
	assert_string_equal(request_err.msg, "domain vm1 is given no VF: <vhca:vf> number 2: "
					     "partition=\"\" is not valid");
	assert_int_equal(info->n_requests, 0);
	assert_int_equal(info->n_hostdevs, 1);
	assert_string_equal(info->hostdevs[0].alias, "");
}

static void bad_request_fails_who_cannot_take_it(void **state)
{
	static const char xml[] = ONE_VF("name='ib0'");
	struct vhca_dom_info *info = NULL;

	(void)state;
	assert_int_equal(vhca_domxml_parse(xml, strlen(xml), &info, NULL, &err), -EINVAL);
	assert_null(info);
	assert_string_equal(err.code, "bad_vf_request");
}

/* n copies of `piece` (with one %u) between head and tail. */
static char *repeat(const char *head, unsigned int n, const char *before, const char *after,
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

static struct vhca_dom_info *parse_many_vfs(unsigned int n)
{
	VHCA_AUTO_FREE char *xml =
		repeat(HEAD "<metadata><v:infiniband xmlns:v='urn:vhcad:domain:1'>", n,
		       "<v:vf partition='1' name='n", "'/>", "</v:infiniband></metadata></domain>");

	return parse(xml, 0);
}

static void requests_are_bounded(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *full = parse_many_vfs(VHCA_DOM_VFS_MAX);
	VHCA_AUTO_FREE struct vhca_dom_info *over = NULL;

	(void)state;
	assert_int_equal(request_err.kind, VHCA_ERR_NONE);
	assert_int_equal(full->n_requests, VHCA_DOM_VFS_MAX);
	over = parse_many_vfs(VHCA_DOM_VFS_MAX + 1);
	assert_says(&request_err, "more than 16");
	assert_int_equal(over->n_requests, 0);
}

static struct vhca_dom_info *parse_many_hostdevs(unsigned int n, int want)
{
	VHCA_AUTO_FREE char *xml = repeat(HEAD "<devices>", n,
					  "<hostdev mode='subsystem' type='pci'><source><address "
					  "bus='0' slot='0' function='1' domain='",
					  "'/></source></hostdev>", "</devices></domain>");

	return parse(xml, want);
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
	VHCA_AUTO_FREE struct vhca_dom_info *info =
		parse(HEAD "<devices>" BEHIND_VMD
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
	VHCA_AUTO_FREE struct vhca_dom_info *info = parse(
		HEAD
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
#define DEV(inner)                                                                           \
	HEAD "<devices><hostdev mode='subsystem' type='pci'>" inner "</hostdev></devices></" \
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
		(void)parse(forms[i], -EINVAL);
		assert_says(&err, "PCI host device");
	}
}

static void long_alias_is_not_ours(void **state)
{
	char xml[1024], alias[201] = "";
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;

	(void)state;
	memset(alias, 'a', 200);
	(void)snprintf(xml, sizeof(xml),
		       HEAD "<devices><hostdev mode='subsystem' type='pci'><source>"
			    "<address domain='0' bus='1' slot='0' function='1'/></source>"
			    "<alias name='%s'/></hostdev></devices></domain>",
		       alias);
	info = parse(xml, 0);
	assert_int_equal(info->n_hostdevs, 1);
	assert_string_equal(info->hostdevs[0].alias, "");
}

static void garbage_is_refused(void **state)
{
	static const char *const forms[] = {
		"garbage",
		"<domain>",
		"<domain/>",
		"<network><name>vm1</name><uuid>" UUID_TEXT "</uuid></network>",
		"<domain><name>vm1</name></domain>",
		"<domain><name/><uuid>" UUID_TEXT "</uuid></domain>",
		"<domain><name>vm1</name><uuid>1234</uuid></domain>",
		"<domain><name>vm1</name><uuid>" UUID_TEXT
		"</uuid><memory unit='MiB'>1</memory></domain>",
		"<domain><name>vm1</name><uuid>" UUID_TEXT "</uuid><memory>x</memory></domain>",
		HEAD "</domain><domain/>",
		HEAD "<devices></domain>",
		HEAD "<x:y/></domain>\xff\xfe",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++)
		(void)parse(forms[i], -EINVAL);
	(void)parse_len("", 0, -EFBIG);
}

static void every_cut_of_a_document_is_refused(void **state)
{
	(void)state;
	for (size_t len = 1; len < sizeof(live_xml) - 1; len++)
		(void)parse_len(live_xml, len, -EINVAL);
}

static void doctype_is_refused(void **state)
{
	static const char *const forms[] = {
		"<!DOCTYPE domain>" HEAD "</domain>",
		"<!DOCTYPE domain SYSTEM 'file:///etc/passwd'>" HEAD "</domain>",
		"<!DOCTYPE domain [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>" HEAD
		"<description>&x;</description></domain>",
		"<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'>"
		"<!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;'>"
		"<!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;'><!ENTITY e "
		"'&d;&d;&d;&d;&d;&d;&d;&d;'>]>" HEAD
		"<description a='&e;&e;&e;'>&e;</description></domain>",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++) {
		(void)parse(forms[i], -EINVAL);
		assert_says(&err, "DOCTYPE");
	}
	(void)parse(HEAD "<description>&undeclared;</description></domain>", -EINVAL);
}

static void deep_and_large_documents_are_bounded(void **state)
{
	VHCA_AUTO_FREE char *deep = malloc(300000), *large = malloc(VHCA_XML_MAX + 2);

	(void)state;
	assert_non_null(deep);
	assert_non_null(large);
	for (size_t i = 0; i < 300000; i += 3)
		memcpy(deep + i, "<a>", 3);
	(void)parse_len(deep, 300000, -EINVAL);
	memset(large, ' ', VHCA_XML_MAX + 1);
	memcpy(large, HEAD "</domain>", strlen(HEAD "</domain>"));
	(void)parse_len(large, VHCA_XML_MAX + 1, -EFBIG);
	free(parse_len(large, VHCA_XML_MAX, 0));
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
	(void)snprintf(xml, sizeof(xml), HEAD "<devices>%s</devices></domain>", buf);
	info = parse(xml, 0);
	assert_int_equal(info->n_hostdevs, 1);
	assert_int_equal(vhca_bdf_cmp(info->hostdevs[0].host, host), 0);
	assert_int_equal(vhca_bdf_cmp(info->hostdevs[0].guest, host), 0);
	assert_string_equal(info->hostdevs[0].alias + strlen(VHCA_ALIAS_PREFIX), name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_head),
		cmocka_unit_test(reads_what_pins_the_memory),
		cmocka_unit_test(reads_what_pins_the_cpus),
		cmocka_unit_test(reads_the_size_of_huge_pages),
		cmocka_unit_test(the_sm_may_choose_the_guid),
		cmocka_unit_test(reads_two_requests),
		cmocka_unit_test(reads_hostdevs_of_both_kinds),
		cmocka_unit_test(counts_root_ports),
		cmocka_unit_test(inactive_domain_has_no_id),
		cmocka_unit_test(cuts_a_long_name),
		cmocka_unit_test(prefix_of_namespace_is_free),
		cmocka_unit_test(other_namespaces_ask_for_nothing),
		cmocka_unit_test(reads_the_marker_of_a_migration),
		cmocka_unit_test(marker_stands_beside_the_request),
		cmocka_unit_test(bad_requests_name_the_place),
		cmocka_unit_test(bad_request_refuses_all_and_hides_no_device),
		cmocka_unit_test(bad_request_fails_who_cannot_take_it),
		cmocka_unit_test(requests_are_bounded),
		cmocka_unit_test(any_guest_can_be_read),
		cmocka_unit_test(too_many_hostdevs_fail),
		cmocka_unit_test(device_behind_vmd_is_none_of_ours),
		cmocka_unit_test(managed_hostdevs_are_read),
		cmocka_unit_test(unreadable_hostdevs_fail),
		cmocka_unit_test(long_alias_is_not_ours),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(every_cut_of_a_document_is_refused),
		cmocka_unit_test(doctype_is_refused),
		cmocka_unit_test(deep_and_large_documents_are_bounded),
		cmocka_unit_test(hostdev_for_hotplug),
		cmocka_unit_test(hostdev_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
