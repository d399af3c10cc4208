/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "hooks/scan.h"
#include "tests/unit/unit.h"

#define UUID "6b3e1d60-0d6f-4f5e-9d38-0123456789ab"
#define NS   "xmlns:vhca='urn:vhcad:domain:1'"
#define AWAY "0f2d7a52-8c1b-4f0e-a5d7-9b8c7d6e5f40"
#define NSA  "xmlns:x='urn:vhcad:away:1'"
#define NIL  "00000000-0000-0000-0000-000000000000"
#define DEV(src)                                                             \
	"<domain><devices><hostdev mode='subsystem' type='pci'><source>" src \
	"</source></hostdev></devices></domain>"
#define META(x) "<domain><metadata>" x "</metadata></domain>"

static void scan_all(struct vhca_scan *scan, const char *xml)
{
	vhca_scan_init(scan);
	(void)vhca_scan_feed(scan, xml, strlen(xml));
}

static unsigned int count_hostdevs(const char *xml)
{
	struct vhca_scan scan;

	scan_all(&scan, xml);
	assert_true(vhca_scan_is_complete(&scan));
	return scan.n_hostdevs;
}

static bool has_request(const char *xml)
{
	struct vhca_scan scan;

	scan_all(&scan, xml);
	assert_true(vhca_scan_is_complete(&scan));
	return scan.has_request;
}

static bool is_complete(const char *xml)
{
	struct vhca_scan scan;

	scan_all(&scan, xml);
	return vhca_scan_is_complete(&scan);
}

/* As libvirt 9.0 writes it, with what could lead a scanner astray. */
static const char live_xml[] =
	"<domain type='qemu' id='3' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>\n"
	"  <name>a &lt; b</name>\n"
	"  <uuid>" UUID "</uuid>\n"
	"  <metadata>\n"
	"    <app:note xmlns:app=\"urn:other\">no &amp; <![CDATA[<vhca:vf "
	"xmlns:vhca='urn:vhcad:domain:1'/>]]></app:note>\n"
	"    <vhca:infiniband xmlns:vhca=\"urn:vhcad:domain:1\">\n"
	"      <vhca:vf name=\"ib0\" partition=\"0x8001\"/>\n"
	"    </vhca:infiniband>\n"
	"    <x:away xmlns:x=\"urn:vhcad:away:1\" migration=\"" AWAY "\"/>\n"
	"  </metadata>\n"
	"  <devices>\n"
	"    <!-- <hostdev type='pci'><source><address bus='0x09'/></source></hostdev> -->\n"
	"    <hostdev mode='subsystem' type='pci' managed='no'>\n"
	"      <driver name='vfio'/>\n"
	"      <source>\n"
	"        <address domain='0x0000' bus='0x01' slot='0x00' function='0x2'/>\n"
	"      </source>\n"
	"      <alias name='ua-vhca-ib0'/>\n"
	"      <address type='pci' domain='0x0000' bus='0x07' slot='0x00' function='0x0'/>\n"
	"    </hostdev>\n"
	"    <hostdev mode='subsystem' type='usb'><source><address bus='1' "
	"device='3'/></source></hostdev>\n"
	"    <interface type='hostdev'><source>\n"
	"      <address type='pci' domain='0x0001' bus='0xaf' slot='0x1f' "
	"function='0x7'/></source></interface>\n"
	"    <interface type='network'><source network='default'/></interface>\n"
	"  </devices>\n"
	"</domain>\n";

static void check_live(const struct vhca_scan *scan)
{
	assert_true(vhca_scan_is_complete(scan));
	assert_true(scan->has_uuid);
	assert_string_equal(VHCA_UUID_STR(&scan->uuid), UUID);
	assert_true(scan->has_request);
	assert_true(scan->has_away);
	assert_string_equal(VHCA_UUID_STR(&scan->away), AWAY);
	assert_int_equal(scan->n_hostdevs, 2);
	assert_string_equal(VHCA_BDF_STR(scan->hostdevs[0]), "0000:01:00.2");
	assert_string_equal(VHCA_BDF_STR(scan->hostdevs[1]), "0001:af:1f.7");
}

static void live_xml_is_understood(void **state)
{
	struct vhca_scan scan;

	(void)state;
	scan_all(&scan, live_xml);
	check_live(&scan);
}

static void pieces_may_be_cut_anywhere(void **state)
{
	size_t len = strlen(live_xml);
	struct vhca_scan scan;

	(void)state;
	for (size_t cut = 0; cut <= len; cut++) {
		vhca_scan_init(&scan);
		(void)vhca_scan_feed(&scan, live_xml, cut);
		(void)vhca_scan_feed(&scan, live_xml + cut, len - cut);
		check_live(&scan);
	}
	vhca_scan_init(&scan);
	for (size_t i = 0; i < len; i++)
		(void)vhca_scan_feed(&scan, live_xml + i, 1);
	check_live(&scan);
}

/* Cut off anywhere: never complete, and what was seen before stands. */
static void missing_end_keeps_what_was_seen(void **state)
{
	size_t last = strlen(live_xml) - 1; /* without the newline */
	const char *hostdev = strstr(live_xml, "function='0x2'/>") + strlen("function='0x2'/>");
	struct vhca_scan scan;

	(void)state;
	for (size_t cut = 0; cut < last; cut++) {
		vhca_scan_init(&scan);
		assert_true(vhca_scan_feed(&scan, live_xml, cut));
		assert_false(vhca_scan_is_complete(&scan));
		assert_int_equal(scan.n_hostdevs >= 1, live_xml + cut >= hostdev);
	}
}

static void feeding_stops_at_the_end(void **state)
{
	struct vhca_scan scan;

	(void)state;
	vhca_scan_init(&scan);
	assert_true(vhca_scan_feed(&scan, "<domain>", 8));
	assert_false(vhca_scan_feed(&scan, "</domain>", 9));
	assert_false(vhca_scan_feed(&scan, "<domain>", 8));
	assert_true(vhca_scan_is_complete(&scan));
}

static void address_forms(void **state)
{
	(void)state;
	assert_int_equal(count_hostdevs(DEV(
				 "<address bus=\"0x01\"\n\tslot = '0' function='1' domain='0'/>")),
			 1);
	assert_int_equal(
		count_hostdevs(DEV(
			"<address function='0x7' slot='31' bus='255' domain='65535'></address>")),
		1);
	assert_int_equal(count_hostdevs(DEV("<address/>")),
			 1); /* libvirt's default is 0000:00:00.0 */
	assert_int_equal(count_hostdevs(DEV("<address domain='0x10000' bus='0x01'/>")), 0);
	assert_int_equal(count_hostdevs(DEV("<address bus='0x100'/>")), 0);
	assert_int_equal(count_hostdevs(DEV("<address slot='0x20'/>")), 0);
	assert_int_equal(count_hostdevs(DEV("<address function='8'/>")), 0);
	assert_int_equal(count_hostdevs(DEV("<address bus='&one;'/>")), 0);
	assert_int_equal(count_hostdevs(DEV("<address bus='-1'/>")), 0);
	assert_int_equal(count_hostdevs(DEV("<x:address bus='1'/>")), 0);
	/* nothing of one address is left for the next */
	assert_int_equal(count_hostdevs(DEV("<address bus='0x100'/><address bus='1'/>")), 1);
	assert_int_equal(count_hostdevs(DEV("<x><address bus='1'/></x>")), 0);
}

static void missing_parts_are_zero(void **state)
{
	struct vhca_scan scan;

	(void)state;
	scan_all(&scan, DEV("<address domain='1' bus='2' slot='3' function='4'/><address/>"));
	assert_int_equal(scan.n_hostdevs, 2);
	assert_string_equal(VHCA_BDF_STR(scan.hostdevs[0]), "0001:02:03.4");
	assert_string_equal(VHCA_BDF_STR(scan.hostdevs[1]), "0000:00:00.0");
}

static void only_pci_hostdevs_count(void **state)
{
#define IN(open, close) \
	"<domain><devices>" open "<source><address bus='1'/></source>" close "</devices></domain>"
	(void)state;
	assert_int_equal(count_hostdevs(IN("<hostdev type='pci' mode='subsystem'>", "</hostdev>")),
			 1);
	assert_int_equal(count_hostdevs(IN("<interface type='hostdev'>", "</interface>")), 1);
	assert_int_equal(count_hostdevs(IN("<hostdev type='usb'>", "</hostdev>")), 0);
	assert_int_equal(count_hostdevs(IN("<hostdev>", "</hostdev>")), 0);
	assert_int_equal(count_hostdevs(IN("<hostdev xtype='pci'>", "</hostdev>")), 0);
	assert_int_equal(count_hostdevs(IN("<hostdev x:type='pci'>", "</hostdev>")), 0);
	assert_int_equal(count_hostdevs(IN("<hostdev type:x='pci'>", "</hostdev>")), 0);
	assert_int_equal(count_hostdevs(IN("<interface type='bridge'>", "</interface>")), 0);
	assert_int_equal(count_hostdevs(IN("<disk type='pci'>", "</disk>")), 0);
	assert_int_equal(
		count_hostdevs("<pool><devices><hostdev type='pci'><source><address/></source>"
			       "</hostdev></devices></pool>"),
		0);
	assert_int_equal(count_hostdevs("<domain><x><devices><hostdev type='pci'><source><address/>"
					"</source></hostdev></devices></x></domain>"),
			 0);
}

/* An interface of a network with <forward mode='hostdev'>, as libvirt writes it before and after it
 * has taken a device from the network's pool. */
static void a_network_has_given_a_device(void **state)
{
	static const char prepare[] =
		"<domain><devices><interface type='network'><mac address='52:54:00:6d:90:02'/>"
		"<source network='vfs' portid='" UUID "'/><model type='virtio'/></interface>"
		"</devices></domain>";
	static const char start[] =
		"<domain><devices><interface type='hostdev' managed='yes'>"
		"<mac address='52:54:00:6d:90:02'/><driver name='vfio'/><source>"
		"<address type='pci' domain='0x0000' bus='0x01' slot='0x00' function='0x2'/>"
		"</source><model type='virtio'/><alias name='hostdev0'/>"
		"<address type='pci' domain='0x0000' bus='0x07' slot='0x00' function='0x0'/>"
		"</interface></devices></domain>";
	struct vhca_scan scan;

	(void)state;
	assert_int_equal(count_hostdevs(prepare), 0);
	scan_all(&scan, start);
	assert_true(vhca_scan_is_complete(&scan));
	assert_int_equal(scan.n_hostdevs, 1);
	assert_string_equal(VHCA_BDF_STR(scan.hostdevs[0]), "0000:01:00.2");
}

static void who_binds_the_driver_is_all_the_same(void **state)
{
	(void)state;
	assert_int_equal(count_hostdevs(IN("<hostdev type='pci' managed='yes'>", "</hostdev>")), 1);
	assert_int_equal(count_hostdevs(IN("<hostdev type='pci' managed='no'>", "</hostdev>")), 1);
	assert_int_equal(
		count_hostdevs(IN("<interface type='hostdev' managed='yes'>", "</interface>")), 1);
}

static void too_many_hostdevs_are_said(void **state)
{
	static char xml[16 * 1024];
	struct vhca_strbuf sb;
	struct vhca_scan scan;

	(void)state;
	vhca_strbuf_init(&sb, xml, sizeof(xml));
	vhca_strbuf_add(&sb, "<domain><devices>");
	for (int i = 0; i <= VHCA_HOOK_HOSTDEVS_MAX; i++)
		vhca_strbuf_add(
			&sb, "<hostdev type='pci'><source><address bus='%d'/></source></hostdev>",
			i);
	vhca_strbuf_add(&sb, "</devices></domain>");
	assert_false(sb.truncated);
	scan_all(&scan, xml);
	assert_int_equal(scan.n_hostdevs, VHCA_HOOK_HOSTDEVS_MAX);
	assert_int_equal(scan.hostdevs[VHCA_HOOK_HOSTDEVS_MAX - 1].bus, VHCA_HOOK_HOSTDEVS_MAX - 1);
	assert_false(vhca_scan_is_complete(&scan));
}

static void namespaces_are_resolved(void **state)
{
	(void)state;
	assert_true(has_request(META("<vhca:infiniband " NS "/>")));
	assert_true(has_request(META("<infiniband xmlns='urn:vhcad:domain:1'/>")));
	assert_true(has_request(META("<any:thing xmlns:any='urn:vhcad:domain:1'></any:thing>")));
	assert_true(has_request("<domain " NS "><metadata><vhca:infiniband/></metadata></domain>"));
	assert_true(has_request(META("<o:x xmlns:o='urn:o'><vhca:i " NS "/></o:x>")));
	/* an inner declaration hides the outer one, until it ends */
	assert_false(has_request(META("<x " NS "><vhca:i xmlns:vhca='urn:other'/></x>")));
	assert_true(has_request(META("<x " NS "><y xmlns:vhca='urn:other'/><vhca:i/></x>")));
	assert_false(has_request(META("<x><y " NS "/><vhca:i/></x>")));
	assert_false(has_request(META("<x " NS "><y xmlns='urn:other' xmlns:vhca='o'><vhca:i/></y>"
				      "</x>")));
	/* as libxml2 has it: a prefix is not undeclared, and "p:1" has none */
	assert_true(has_request(META("<x " NS "><y xmlns:vhca=''><vhca:i/></y></x>")));
	assert_true(has_request(META("<p:1 xmlns='urn:vhcad:domain:1'/>")));
	assert_true(has_request(META("<p: xmlns='urn:vhcad:domain:1'/>")));
	assert_false(has_request(META("<p:1 xmlns:p='urn:vhcad:domain:1'/>")));
	assert_true(has_request(META("<p:_ xmlns:p='urn:vhcad:domain:1'/>")));
	assert_true(has_request(META("<p:\xc3\xa9 xmlns:p='urn:vhcad:domain:1'/>")));
}

static void what_is_no_request(void **state)
{
	(void)state;
	assert_false(
		has_request("<domain " NS "><vhca:infiniband/></domain>")); /* not in metadata */
	assert_false(has_request("<domain " NS "><metadata/><vhca:infiniband/></domain>"));
	assert_false(has_request("<domain><x><metadata><vhca:i " NS "/></metadata></x></domain>"));
	assert_false(has_request(META("<vhca:infiniband/>")));	 /* undeclared */
	assert_false(has_request(META("<infiniband " NS "/>"))); /* declared, not used */
	assert_false(has_request(META("<v:i xmlns:v='urn:vhcad:domain:2'/>")));
	assert_false(has_request(META("<v:i xmlns:v='urn:vhcad:domain:11'/>")));
	assert_false(has_request(META("<v:i xmlns:v='urn:vhcad:domain:&#49;'/>")));
	assert_false(has_request(META("<v:i x:v='urn:vhcad:domain:1'/>")));
	assert_false(has_request(META("&lt;vhca:i " NS "/&gt;")));
	assert_false(has_request(META("<!-- <vhca:i " NS "/> -->")));
	assert_false(has_request(
		META("<!-- -- > ---><x/>"))); /* the end of a comment, after a false one */
	assert_false(has_request(META("<?x <vhca:i " NS "/> ?"
				      "?>")));
	assert_false(has_request(META("<![CDATA[<vhca:i " NS "/> ]] ]>]]]>")));
	assert_false(has_request(META("<x y='"
				      "&lt;vhca:i>"
				      "'/>")));
}

/* The id in the marker, in a buffer of the caller; NULL if there is no marker. */
static const char *find_away(const char *xml, char buf[static VHCA_UUID_STRLEN])
{
	struct vhca_scan scan;

	scan_all(&scan, xml);
	assert_true(vhca_scan_is_complete(&scan));
	assert_false(scan.has_request);
	return scan.has_away ? vhca_uuid_format(buf, &scan.away) : NULL;
}

static void marker_names_the_migration(void **state)
{
	static const struct {
		const char *xml, *id;
	} rows[] = {
		{META("<x:away " NSA " migration='" AWAY "'/>"), AWAY},
		{META("<x:away migration = \"" AWAY "\" " NSA "></x:away>"), AWAY},
		{META("<away xmlns='urn:vhcad:away:1' migration='" AWAY "' more='1'/>"), AWAY},
		{"<domain " NSA "><metadata><x:away migration='" AWAY "'/></metadata></domain>",
		 AWAY},
		{META("<x:away " NSA " migration='" AWAY "'><x:vf migration='" UUID "'/></x:away>"),
		 AWAY},
		/* of two the first counts */
		{META("<x:away " NSA " migration='" AWAY "'/><x:away " NSA " migration='" UUID
		      "'/>"),
		 AWAY},
		{META("<x:note " NSA " migration='" UUID "'/><x:away " NSA " migration='" AWAY
		      "'/>"),
		 AWAY},
		/* a marker that names no migration is one all the same */
		{META("<x:away " NSA "/>"), NIL},
		{META("<x:away " NSA " migration='1'/>"), NIL},
		{META("<x:away " NSA " migration='" AWAY "x'/>"), NIL},
		{META("<x:away " NSA " migration='" AWAY AWAY "'/>"), NIL},
		{META("<x:away " NSA " migration='&id;'/>"), NIL},
		{META("<x:away " NSA " x:migration='" AWAY "'/>"), NIL},
		{META("<x:away " NSA " id='" AWAY "'/>"), NIL},
	};
	char buf[VHCA_UUID_STRLEN];

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rows); i++) {
		const char *id = find_away(rows[i].xml, buf);

		if (!id || strcmp(id, rows[i].id) != 0)
			fail_msg("%s: %s", rows[i].xml, id ? id : "no marker");
	}
}

static void what_is_no_marker(void **state)
{
	static const char *const rows[] = {
		"<domain " NSA "><x:away migration='" AWAY "'/></domain>", /* not in the metadata */
		"<domain " NSA "><metadata/><x:away migration='" AWAY "'/></domain>",
		META("<x:away migration='" AWAY "'/>"),	      /* undeclared */
		META("<away " NSA " migration='" AWAY "'/>"), /* declared, not used */
		META("<x:away xmlns:x='urn:vhcad:away:2' migration='" AWAY "'/>"),
		META("<x:gone " NSA " migration='" AWAY "'/>"),
		META("<a " NSA "><x:away migration='" AWAY "'/></a>"), /* libvirt's are children */
		META("<a " NSA "><x:away xmlns:x='urn:other' migration='" AWAY "'/></a>"),
		META("<a><b " NSA "/><x:away migration='" AWAY "'/></a>"),
		META("<!-- <x:away " NSA " migration='" AWAY "'/> -->"),
		META("<![CDATA[<x:away " NSA " migration='" AWAY "'/>]]>"),
	};
	char buf[VHCA_UUID_STRLEN];

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(rows); i++)
		if (find_away(rows[i], buf))
			fail_msg("%s", rows[i]);
}

/* Neither namespace hides the other, whichever prefix it has. */
static void request_and_marker_are_told_apart(void **state)
{
	struct vhca_scan scan;

	(void)state;
	scan_all(&scan, META("<vhca:infiniband " NS " migration='" AWAY "'/>"));
	assert_true(scan.has_request);
	assert_false(scan.has_away);
	scan_all(&scan, META("<vhca:away xmlns:vhca='urn:vhcad:away:1' migration='" AWAY
			     "'/><vhca:infiniband " NS "/>"));
	assert_true(scan.has_request);
	assert_true(scan.has_away);
	assert_string_equal(VHCA_UUID_STR(&scan.away), AWAY);
	/* what another element said is not taken for the marker's */
	scan_all(&scan, META("<x:away migration='" AWAY "'/><x:away " NSA "/>"));
	assert_string_equal(VHCA_UUID_STR(&scan.away), NIL);
}

static void long_prefixes_are_no_obstacle(void **state)
{
	char prefix[300], xml[1200];
	struct vhca_strbuf sb;

	(void)state;
	memset(prefix, 'p', sizeof(prefix) - 1);
	prefix[sizeof(prefix) - 1] = '\0';
	vhca_strbuf_init(&sb, xml, sizeof(xml));
	vhca_strbuf_add(&sb, META("<%s:i xmlns:%s='urn:vhcad:domain:1'/>"), prefix, prefix);
	assert_true(has_request(xml));
}

static void other_declarations_are_not_counted(void **state)
{
	char xml[2048];
	struct vhca_strbuf sb;

	(void)state;
	vhca_strbuf_init(&sb, xml, sizeof(xml));
	vhca_strbuf_add(&sb, "<domain");
	for (int i = 0; i <= VHCA_SCAN_PREFIXES_MAX; i++)
		vhca_strbuf_add(&sb, " xmlns:p%d='urn:other'", i);
	vhca_strbuf_add(&sb, "><metadata><vhca:i " NS "/></metadata></domain>");
	assert_true(has_request(xml));
}

static void many_declarations_stop_the_scan(void **state)
{
	char xml[2048];
	struct vhca_strbuf sb;
	struct vhca_scan scan;

	(void)state;
	vhca_strbuf_init(&sb, xml, sizeof(xml));
	vhca_strbuf_add(&sb, "<domain><metadata><vhca:i " NS);
	for (int i = 0; i <= VHCA_SCAN_PREFIXES_MAX; i++)
		vhca_strbuf_add(&sb, " xmlns:p%d='urn:vhcad:domain:1'", i);
	vhca_strbuf_add(&sb, "/></metadata></domain>");
	scan_all(&scan, xml);
	assert_false(vhca_scan_is_complete(&scan));
}

static bool find_uuid(const char *xml)
{
	struct vhca_scan scan;

	scan_all(&scan, xml);
	assert_true(vhca_scan_is_complete(&scan));
	return scan.has_uuid && strcmp(VHCA_UUID_STR(&scan.uuid), UUID) == 0;
}

static void uuid_is_the_domains(void **state)
{
	(void)state;
	assert_true(find_uuid("<domain><uuid>\n " UUID "\t</uuid></domain>"));
	assert_true(find_uuid(
		"<domain><uuid>6b3e1d60<!-- x -->-0d6f-4f5e-9d38-0123456789AB</uuid></domain>"));
	assert_true(find_uuid(
		"<domain><sysinfo><uuid>00000000-0000-0000-0000-000000000000</uuid></sysinfo>"
		"<uuid>" UUID "</uuid></domain>"));
	assert_true(find_uuid("<domain><uuid>" UUID
			      "</uuid><uuid>11111111-0000-0000-0000-000000000000</uuid></domain>"));
	assert_false(find_uuid("<domain><uuid><![CDATA[" UUID "]]></uuid></domain>"));
	assert_true(find_uuid("<domain><uuid>x</uuid><uuid>" UUID "</uuid></domain>"));
	assert_false(find_uuid("<domain><uuid>" UUID "<![CDATA[]]></uuid></domain>"));
	assert_false(find_uuid("<domain><uuid>&uuid;</uuid></domain>"));
	assert_false(find_uuid("<domain><uuid>" UUID UUID "</uuid></domain>"));
	assert_false(find_uuid("<domain><uuid/></domain>"));
	assert_false(find_uuid("<domain><metadata><uuid>" UUID "</uuid></metadata></domain>"));
}

static void declarations_and_entities_are_skipped(void **state)
{
	static const char laughs[] = "\xef\xbb\xbf<?xml version='1.0' encoding='UTF-8'?>\n"
				     "<!DOCTYPE domain [\n"
				     "  <!-- it's <nothing> -->\n"
				     "  <?pi it's ]>?>\n"
				     "  <!ENTITY lol \"lol ]> <domain>\">\n"
				     "  <!ENTITY lol1 '&lol;&lol;&lol;&lol;&lol;&lol;&lol;&lol;'>\n"
				     "  <!ENTITY xxe SYSTEM \"file:///etc/passwd\">\n"
				     "  <!ELEMENT domain (#PCDATA)>\n"
				     "]>\n"
				     "<domain><name>&lol1;</name><uuid>" UUID
				     "</uuid><metadata>&xxe;</metadata></domain>";

	(void)state;
	assert_true(find_uuid(laughs));
	assert_true(find_uuid("<!DOCTYPE domain><domain><uuid>" UUID "</uuid></domain>"));
	assert_true(
		find_uuid("<!DOCTYPE domain SYSTEM 'a>b'><domain><uuid>" UUID "</uuid></domain>"));
}

static void broken_text_stops_the_scan(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"garbage",
		"<",
		"<>",
		"< domain/>",
		"<domain",
		"<domain>",
		"</domain>",
		"<domain/",
		"<domain></domian>",
		"<domain></domain",
		"<domain></ domain>",
		"<domain></domain x>",
		"<domain a></domain>",
		"<domain a=b></domain>",
		"<domain a='b></domain>",
		"<domain a='<'></domain>",
		"<domain 'a'></domain>",
		"<domain / ></domain>",
		"<domain><a><b></a></b></domain>",
		"<domain><![CDATA[ ]]</domain>",
		"<domain><!-- --</domain>",
		"<domain><!-x></domain>",
		"<domain><![cdata[ ]]></domain>",
		"<domain><!DOCTYPE x></domain>",
		"<domain><? ></domain>",
		"<![CDATA[x]]><domain/>",
		"</domain><domain/>",
		"<domain a x='b'/>",
		"<domain a= x'b'/>",
		"<!DOCTYPE x [<bad>]><domain/>",
		"<!DOCTYPE x [ '>' ] <domain/>",
		("<domain><!\xff"
		 "DOCTYPE></domain>"),
		"<domain><!&></domain>",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(bad); i++)
		if (is_complete(bad[i]))
			fail_msg("taken for complete: %s", bad[i]);
	assert_true(is_complete("<domain/>"));
	assert_true(is_complete("<domain a = 'b>' c=\"'\"  ></domain\n>"));
}

static void nul_bytes_match_nothing(void **state)
{
	static const char xml[] = "<domain><uuid>" UUID "\0</uuid><metadata>"
				  "<v:i xmlns:v='urn:vhcad:domain:1\0'/></metadata></domain>";
	struct vhca_scan scan;

	(void)state;
	vhca_scan_init(&scan);
	(void)vhca_scan_feed(&scan, xml, sizeof(xml) - 1);
	assert_true(vhca_scan_is_complete(&scan));
	assert_false(scan.has_uuid);
	assert_false(scan.has_request);

	vhca_scan_init(&scan);
	(void)vhca_scan_feed(&scan, "<domain><!\0-- --></domain>", 27);
	assert_false(vhca_scan_is_complete(&scan));
}

static void nesting_is_bounded(void **state)
{
	char xml[VHCA_SCAN_DEPTH_MAX * 8];
	struct vhca_scan scan;

	(void)state;
	for (int depth = VHCA_SCAN_DEPTH_MAX; depth <= VHCA_SCAN_DEPTH_MAX + 1; depth++) {
		struct vhca_strbuf sb;

		vhca_strbuf_init(&sb, xml, sizeof(xml));
		for (int i = 0; i < depth; i++)
			vhca_strbuf_add(&sb, "<a>");
		for (int i = 0; i < depth; i++)
			vhca_strbuf_add(&sb, "</a>");
		assert_false(sb.truncated);
		scan_all(&scan, xml);
		assert_int_equal(vhca_scan_is_complete(&scan), depth == VHCA_SCAN_DEPTH_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live_xml_is_understood),
		cmocka_unit_test(pieces_may_be_cut_anywhere),
		cmocka_unit_test(missing_end_keeps_what_was_seen),
		cmocka_unit_test(feeding_stops_at_the_end),
		cmocka_unit_test(address_forms),
		cmocka_unit_test(missing_parts_are_zero),
		cmocka_unit_test(only_pci_hostdevs_count),
		cmocka_unit_test(a_network_has_given_a_device),
		cmocka_unit_test(who_binds_the_driver_is_all_the_same),
		cmocka_unit_test(too_many_hostdevs_are_said),
		cmocka_unit_test(namespaces_are_resolved),
		cmocka_unit_test(what_is_no_request),
		cmocka_unit_test(marker_names_the_migration),
		cmocka_unit_test(what_is_no_marker),
		cmocka_unit_test(request_and_marker_are_told_apart),
		cmocka_unit_test(long_prefixes_are_no_obstacle),
		cmocka_unit_test(other_declarations_are_not_counted),
		cmocka_unit_test(many_declarations_stop_the_scan),
		cmocka_unit_test(uuid_is_the_domains),
		cmocka_unit_test(declarations_and_entities_are_skipped),
		cmocka_unit_test(broken_text_stops_the_scan),
		cmocka_unit_test(nul_bytes_match_nothing),
		cmocka_unit_test(nesting_is_bounded),
	};

	return cmocka_run_group_tests_name("hook_scan", tests, NULL, NULL);
}
