/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/integration/domain_gen.h"

#include <assert.h>
#include <string.h>

#include "common/base/cleanup.h"

#define REQUEST_NS "urn:vhcad:domain:1"
#define AWAY_NS	   "urn:vhcad:away:1"

struct gen {
	uint64_t state;
	struct domain_doc *doc;
	struct vhca_strbuf sb;
	unsigned int n_disks, n_guest_addresses;
	unsigned int others; /* bit i: the other device i is there, and libvirt takes no second */
	const char *prefix;  /* that stands for our namespace; NULL = none does yet */
};

/* splitmix64 */
static uint64_t draw(struct gen *g)
{
	uint64_t z = g->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static unsigned int below(struct gen *g, unsigned int n)
{
	return (unsigned int)(draw(g) % n);
}

static bool one_in(struct gen *g, unsigned int n)
{
	return below(g, n) == 0;
}

#define PICK(g, list) ((list)[below(g, VHCA_ARRAY_SIZE(list))])
#define ADD(g, ...)   vhca_strbuf_add(&(g)->sb, __VA_ARGS__)

static struct vhca_uuid draw_uuid(struct gen *g)
{
	struct vhca_uuid ret;

	for (size_t i = 0; i < sizeof(ret.b); i++)
		ret.b[i] = (uint8_t)draw(g);
	return ret;
}

/* ---- the metadata ---- */

/* Stands in text, in comments, in CDATA and in values; it is no element in any of them. */
static const char *const decoys[] = {
	"&lt;vhca:infiniband xmlns:vhca='urn:vhcad:domain:1'/&gt;",
	"<!-- <vhca:infiniband xmlns:vhca='urn:vhcad:domain:1'/> -->",
	"<![CDATA[<vhca:infiniband xmlns:vhca='urn:vhcad:domain:1'/>]]>",
	"<![CDATA[ ]] ]]]><!-- - -> > -->",
	"<?vhca <vhca:infiniband xmlns:vhca='urn:vhcad:domain:1'/> ?>",
	"<a b='&lt;hostdev type=&quot;pci&quot;>' c=\"it's\"/>",
	"<hostdev mode='subsystem' type='pci'><source><address bus='1'/></source></hostdev>",
	"<devices><hostdev type='pci'><source><address bus='1'/></source></hostdev></devices>",
	"<uuid>00000000-0000-4000-8000-000000000000</uuid>",
	"<metadata><infiniband/></metadata>",
	"<x:undeclared y:z='1'/>",
	"]]&gt; &amp;amp; &#65;&#x42; \xc3\xa9\xe2\x82\xac",
	"<v:i xmlns:v='urn:vhcad:domain:2'/><v:i xmlns:v='urn:vhcad:domain:11'/>",
	"<v:i xmlns:v=' urn:vhcad:domain:1'/><v:i xmlns:v='urn:vhcad:domain:1&#10;'/>",
	"<v:away xmlns:v='urn:vhcad:away:1/' migration='00000000-0000-4000-8000-000000000000'/>",
	"<declared xmlns:vhca='urn:vhcad:domain:1' xmlns:x='urn:vhcad:away:1'><used/></declared>",
	"<o xmlns:vhca='urn:vhcad:domain:1'><vhca:i xmlns:vhca='urn:other'/></o>",
	"<p xmlns='urn:vhcad:domain:1'><q xmlns='' xmlns:r='urn:r'><r:s/></q></p>",
};
#define DECOY_OURS (VHCA_ARRAY_SIZE(decoys) - 1) /* whose outer element is a request */

static void add_nested(struct gen *g, unsigned int levels)
{
	for (unsigned int i = 0; i < levels; i++)
		ADD(g, "<n%u>", i % 3);
	for (unsigned int i = levels; i-- > 0;)
		ADD(g, "</n%u>", i % 3);
}

/* Of somebody else. libvirt keeps one element of each namespace, so each has its own. */
static void add_foreign(struct gen *g, unsigned int number)
{
	static const char *const prefixes[] = {"app", "vhca", "x", "a-b.c", "", "\xc3\xa9"};
	const char *prefix = PICK(g, prefixes);
	const char *colon = *prefix ? ":" : "";

	ADD(g, "<%s%snote xmlns%s%s=\"urn:other:%u\">", prefix, colon, colon, prefix, number);
	for (unsigned int n = below(g, 5); n > 0; n--)
		ADD(g, "%s", decoys[below(g, DECOY_OURS)]);
	if (one_in(g, 8))
		add_nested(g, below(g, 200));
	ADD(g, "</%s%snote>", prefix, colon);
}

/* "vhca:", or nothing where our namespace is the default. */
static const char *const our_prefixes[] = {
	"vhca",
	"v",
	"",
	"_1",
	"domain",
	"a-prefix-that-is-longer-than-what-anybody-keeps-in-a-buffer-of-sixty-four-bytes-or-so",
};

static void add_xmlns(struct gen *g, const char *prefix, const char *ns)
{
	const char *quote = one_in(g, 2) ? "'" : "\"";

	ADD(g, "%sxmlns%s%s%s=%s%s%s", one_in(g, 4) ? "\n\t" : " ", *prefix ? ":" : "", prefix,
	    one_in(g, 4) ? " " : "", quote, ns, quote);
}

static void add_vfs(struct gen *g, const char *prefix, const char *colon)
{
	static const char *const vfs[] = {
		"name='ib0' partition='0x8001'",
		"partition=\"0x8001 0xffff\"\n name=\"ib&#48;\" guid='auto'",
		"name='ib0' partition='tenants' guid='0x0002c90300a1b2c3' numa='1'",
		"name='ib1' fabric='default' partition='0x8001'",
		"name='' partition='bad'",
		"nothing='that is known'",
	};

	ADD(g, "<%s%svf %s/>", prefix, colon, PICK(g, vfs));
}

/* What is wrong in it is the agent's to say: it is a request all the same. */
static void add_request(struct gen *g)
{
	static const char *const names[] = {"infiniband", "infiniband", "infiniband", "away", "vf"};
	static const char *const spelt[] = {REQUEST_NS, "urn:vhcad:domain:&#49;",
					    "urn&#x3a;vhcad:domain:1"};
	const char *prefix = g->prefix ? g->prefix : PICK(g, our_prefixes);
	const char *colon = *prefix ? ":" : "";
	const char *name = PICK(g, names);

	g->doc->has_request = true;
	if (one_in(g, 16)) {
		ADD(g, "<p:1 xmlns='" REQUEST_NS "'/>"); /* to libxml2 "p" is no prefix here */
		return;
	}
	if (one_in(g, 16)) {
		ADD(g, "%s", decoys[DECOY_OURS]);
		return;
	}
	ADD(g, "<%s%s%s", prefix, colon, name);
	if (!g->prefix || one_in(g, 4))
		add_xmlns(g, prefix, PICK(g, spelt));
	ADD(g, "%s>", one_in(g, 4) ? " " : "");
	add_vfs(g, prefix, colon);
	ADD(g, "</%s%s%s%s>", prefix, colon, name, one_in(g, 4) ? "\n" : "");
}

static void add_away(struct gen *g)
{
	static const char *const bad[] = {"", "1", "00000000-0000-4000-8000-00000000000g"};
	const char *prefix = one_in(g, 2) ? "x" : "";
	const char *colon = *prefix ? ":" : "";

	g->doc->has_away = true;
	ADD(g, "<%s%saway", prefix, colon);
	if (one_in(g, 2))
		add_xmlns(g, prefix, AWAY_NS);
	else
		ADD(g, " other='%s' xmlns%s%s='" AWAY_NS "'", AWAY_NS, colon, prefix);
	if (one_in(g, 4)) {
		ADD(g, " migration='%s'/>", PICK(g, bad));
		return;
	}
	g->doc->away = draw_uuid(g);
	ADD(g, " autostart='no' migration='%s'><%s%svf/></%s%saway>", VHCA_UUID_STR(&g->doc->away),
	    prefix, colon, prefix, colon);
}

/* libvirt moves declarations of outer elements to <metadata>. */
static void add_metadata(struct gen *g)
{
	unsigned int n = below(g, 4), request = one_in(g, 2) ? below(g, n + 1) : UINT32_MAX;
	unsigned int away = one_in(g, 4) ? below(g, n + 1) : UINT32_MAX;

	ADD(g, "<metadata");
	if (!g->prefix && one_in(g, 4)) {
		g->prefix = PICK(g, our_prefixes);
		if (!*g->prefix) /* <metadata> itself would not be libvirt's any more */
			g->prefix = "m";
		add_xmlns(g, g->prefix, REQUEST_NS);
	}
	ADD(g, ">\n");
	for (unsigned int i = 0; i <= n; i++) {
		if (i == request)
			add_request(g);
		if (i == away)
			add_away(g);
		if (i < n)
			add_foreign(g, i);
	}
	ADD(g, "</metadata>\n");
}

/* ---- devices ---- */

/* A device of the host that this domain does not have yet. */
static struct vhca_bdf draw_bdf(struct gen *g)
{
	return (struct vhca_bdf){
		.domain = one_in(g, 8) ? (uint16_t)draw(g) : 0,
		.bus = (uint8_t)g->doc->n_hostdevs, /* different each time */
		.dev = (uint8_t)below(g, 32),
		.fn = (uint8_t)below(g, 8),
	};
}

static void add_number(struct gen *g, const char *name, unsigned int value)
{
	switch (below(g, 3)) {
	case 0:
		ADD(g, " %s='%u'", name, value);
		break;
	case 1:
		ADD(g, "\n%s='0x%x'", name, value);
		break;
	default:
		ADD(g, " %s = \"0x%04x\"", name, value);
		break;
	}
}

static void add_address(struct gen *g, struct vhca_bdf bdf, const char *type)
{
	ADD(g, "<address%s", type);
	if (bdf.domain || one_in(g, 2))
		add_number(g, "domain", bdf.domain);
	add_number(g, "bus", bdf.bus);
	add_number(g, "function", bdf.fn);
	add_number(g, "slot", bdf.dev);
	ADD(g, "/>");
}

static void add_guest_address(struct gen *g)
{
	const struct vhca_bdf bdf = {.bus = (uint8_t)(g->n_guest_addresses++ + 1), .dev = 1};

	add_address(g, bdf, " type='pci'");
}

static void add_hostdev(struct gen *g)
{
	struct vhca_bdf bdf = draw_bdf(g);

	ADD(g, "<hostdev %stype='pci'%s><driver name='vfio'/><source>",
	    one_in(g, 2) ? "mode='subsystem' " : "",
	    one_in(g, 2) ? " managed='yes'" : " managed='no'");
	add_address(g, bdf, "");
	ADD(g, "</source>");
	if (one_in(g, 2))
		ADD(g, "<alias name='ua-vhca-ib%u'/>", g->doc->n_hostdevs);
	if (one_in(g, 2))
		add_guest_address(g);
	ADD(g, "</hostdev>\n");
	g->doc->hostdevs[g->doc->n_hostdevs++] = bdf;
}

static void add_interface(struct gen *g)
{
	struct vhca_bdf bdf = draw_bdf(g);

	ADD(g, "<interface type='hostdev'%s>", one_in(g, 2) ? " managed='yes'" : "");
	if (one_in(g, 2))
		ADD(g, "<mac address='52:54:00:00:00:%02x'/>", g->doc->n_hostdevs);
	ADD(g, "<source>");
	add_address(g, bdf, " type='pci'");
	ADD(g, "</source></interface>\n");
	g->doc->hostdevs[g->doc->n_hostdevs++] = bdf;
}

/* Behind Intel's VMD: none of ours, so no reader counts it. */
static void add_far_hostdev(struct gen *g)
{
	ADD(g,
	    "<hostdev mode='subsystem' type='pci'><source><address domain='0x%x' bus='0x%02x' "
	    "slot='0x00' function='0x0'/></source></hostdev>",
	    0x10000 + below(g, 0xffff), below(g, 256));
}

static void add_other_device(struct gen *g)
{
	static const char *const devices[] = {
		"<hostdev mode='subsystem' type='usb'><source><vendor id='0x1234'/>"
		"<product id='0xbeef'/></source></hostdev>",
		"<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address "
		"uuid='6b3e1d60-0d6f-4f5e-9d38-0123456789ab'/></source></hostdev>",
		"<hostdev mode='capabilities' type='misc'><source><char>/dev/pci</char></source>"
		"</hostdev>",
		"<interface type='network'><source network='hostdev'/></interface>",
		"<interface type='bridge'><source bridge='pci'/><model type='virtio'/></interface>",
		"<interface type='user'/>",
		"<serial type='pty'/>",
		"<filesystem><source dir='/hostdev type=&apos;pci&apos;'/><target dir='/'/>"
		"</filesystem>",
		"<!-- <hostdev type='pci'><source><address bus='9'/></source></hostdev> -->",
		"<video><model type='vga'/></video>",
	};

	unsigned int i = below(g, VHCA_ARRAY_SIZE(devices));

	if (!(g->others & 1u << i))
		ADD(g, "%s\n", devices[i]);
	g->others |= 1u << i;
}

static void add_disk(struct gen *g)
{
	static const char *const files[] = {"/a&amp;b", "/&lt;hostdev type='pci'&gt;", "/d'e",
					    "/plain", "/\xc3\xa9"};

	ADD(g, "<disk type='file' device='disk'><source file=\"%s\"/><target dev='vd%c'/>",
	    PICK(g, files), 'a' + (int)g->n_disks++);
	if (one_in(g, 2))
		ADD(g, "<serial>pci</serial>");
	ADD(g, "</disk>");
}

static void add_device(struct gen *g)
{
	switch (below(g, 8)) {
	case 0:
	case 1:
		add_hostdev(g);
		break;
	case 2:
		add_interface(g);
		break;
	case 3:
		add_far_hostdev(g);
		break;
	case 4:
		add_disk(g);
		break;
	default:
		add_other_device(g);
		break;
	}
}

static void add_devices(struct gen *g)
{
	ADD(g, "<devices>");
	if (one_in(g, 64)) /* at times more than the hook's request has room for */
		for (unsigned int i = 60 + below(g, 8); i > 0; i--)
			add_hostdev(g);
	for (unsigned int i = below(g, 12); i > 0; i--)
		add_device(g);
	ADD(g, "</devices>");
}

/* ---- the domain ---- */

static void add_head(struct gen *g)
{
	g->doc->uuid = draw_uuid(g);
	ADD(g, "<name>vm &amp; %u</name>", below(g, 1000));
	ADD(g, "%s<uuid>%s</uuid>", one_in(g, 8) ? "<!-- <uuid>none</uuid> -->" : "",
	    VHCA_UUID_STR(&g->doc->uuid));
	if (one_in(g, 4))
		ADD(g, "<title>&lt;uuid&gt; it's \"x\"</title>");
	if (one_in(g, 4))
		ADD(g, "<description><![CDATA[<metadata>]]> &amp;lt;</description>");
	ADD(g, "<memory>%u</memory><os><type>hvm</type></os>", 1024 + below(g, 1 << 20));
}

void domain_gen(struct domain_doc *doc, uint64_t seed)
{
	struct gen g = {.state = seed, .doc = doc};

	memset(doc, 0, sizeof(*doc));
	vhca_strbuf_init(&g.sb, doc->xml, sizeof(doc->xml));
	ADD(&g, "<domain type='test'");
	if (one_in(&g, 8)) {
		g.prefix = "outer";
		add_xmlns(&g, g.prefix, REQUEST_NS);
	}
	ADD(&g, ">\n");
	add_head(&g);
	if (!one_in(&g, 4))
		add_metadata(&g);
	add_devices(&g);
	ADD(&g, "</domain>\n");
	assert(!g.sb.truncated);
}
