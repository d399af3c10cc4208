/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * opensm/state_file, base_file, partitions, plugin_conf: the texts that the plugin reads and
 * writes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "opensm/bindings/base_file.h"
#include "opensm/bindings/conf.h"
#include "opensm/bindings/partitions.h"
#include "opensm/bindings/state_file.h"
#include "opensm/lids/dynamic.h"
#include "tests/unit/unit.h"

static const struct vhca_osm_limits limits = {1000, 1000, 1000, 1000};

static struct vhca_osm_table *new_table(bool both)
{
	struct vhca_osm_table *t = NULL;

	assert_int_equal(vhca_osm_table_new(&limits, both, &t), 0);
	return t;
}

static void put(struct vhca_osm_table *t, uint64_t vguid, uint64_t port, uint16_t pkey)
{
	struct vhca_osm_binding b = {.vguid = vguid,
				     .epoch = vguid + 3,
				     .port_guid = port,
				     .gid_index = 2,
				     .lid = 17,
				     .n_pkeys = pkey ? 1 : 0,
				     .pkeys = &pkey};

	assert_int_equal(vhca_osm_table_put(t, &b, 126, NULL), 0);
}

/* ---- state ---- */

#define STATE                                                     \
	"vhcasm-state 2\n"                                        \
	"t 0x0000000000000003 6 0x00000000000000aa\n"             \
	"n 0x0000000000000009 4 0x0000000000000000\n"             \
	"b 0x0000000000000001 4 0x00000000000000aa 2 17 0x8001\n" \
	"b 0x0000000000000002 5 0x00000000000000bb 2 17 -\n"      \
	"m 0x00000000000000aa 0x0007,0x8005\n"                    \
	"i 0x00000000000000aa 0x8001,0x8005,0x8009\n"             \
	"p 0x00000000000000aa hv1\n"                              \
	"p 0x00000000000000bb token:hv_2\n"                       \
	"end 8\n"

static void state_survives_the_file(void **state)
{
	struct vhca_osm_table *t = new_table(false), *u = new_table(false);
	const uint16_t declared[] = {0x8005, 0x0007}, inherited[] = {0x8009, 0x8005, 0x8001};
	VHCA_AUTO_FREE char *text = NULL, *again = NULL;
	size_t len;

	(void)state;
	assert_int_equal(vhca_osm_table_withdraw(t, 9, 4, 0, NULL), 0);
	put(t, 3, 0xaa, 0x8001);
	assert_int_equal(vhca_osm_table_withdraw(t, 3, 6, 0, NULL), 0);
	put(t, 2, 0xbb, 0);
	put(t, 1, 0xaa, 0x8001);
	assert_int_equal(vhca_osm_table_declare(t, 0xaa, declared, 2, 126, NULL), 0);
	assert_int_equal(vhca_osm_table_inherit(t, 0xaa, inherited, 3, NULL), 0);
	assert_int_equal(vhca_osm_table_pin(t, 0xbb, "token:hv_2", NULL), 0);
	assert_int_equal(vhca_osm_table_pin(t, 0xaa, "hv1", NULL), 0);
	assert_int_equal(vhca_osm_state_format(t, &text, &len), 0);
	assert_string_equal(text, STATE);
	assert_int_equal(len, strlen(STATE));
	assert_int_equal(vhca_osm_state_parse(text, u, NULL), 0);
	assert_int_equal(vhca_osm_state_format(u, &again, &len), 0);
	assert_string_equal(again, STATE);
	(void)vhca_osm_table_free(t);
	(void)vhca_osm_table_free(u);
}

/* Whose a vGUID is beside what its record says; without tickets there is no such line. */
static void owners_survive_the_file(void **state)
{
	static const char with[] = "vhcasm-state 2\n"
				   "t 0x0000000000000003 6 0x00000000000000aa\n"
				   "t 0x0000000000000004 6 0x0000000000000000\n"
				   "b 0x0000000000000001 4 0x00000000000000aa 2 17 -\n"
				   "b 0x0000000000000002 5 0x00000000000000bb 2 17 -\n"
				   "o 0x0000000000000001 0x00000000000000bb\n"
				   "u 0x0000000000000001\n"
				   "u 0x0000000000000002\n"
				   "o 0x0000000000000003 0x0000000000000000\n"
				   "d 0x0000000000000004\n"
				   "end 9\n";
	struct vhca_osm_table *t = new_table(false);
	VHCA_AUTO_FREE char *text = strdup(with), *again = NULL;
	const struct vhca_osm_owner *owner;
	size_t len;

	(void)state;
	assert_int_equal(vhca_osm_state_parse(text, t, NULL), 0);
	owner = &vhca_osm_table_find(t, 1)->owner;
	assert_true(!owner->kept && owner->other_port == 0xbb);
	assert_int_equal(owner->doubt, VHCA_OSM_DOUBT_STALE);
	owner = &vhca_osm_table_find(t, 3)->owner;
	assert_true(owner->kept && owner->other_port == 0 && owner->doubt == VHCA_OSM_DOUBT_NONE);
	owner = &vhca_osm_table_find(t, 4)->owner;
	assert_true(!owner->kept && owner->doubt == VHCA_OSM_DOUBT_DISPUTED);
	assert_int_equal(vhca_osm_state_format(t, &again, &len), 0);
	assert_string_equal(again, with);
	(void)vhca_osm_table_free(t);
}

/* More than the first piece of memory, and numbers as large as they get. */
static void a_large_state_survives_too(void **state)
{
	struct vhca_osm_table *t = new_table(false), *u = new_table(false);
	VHCA_AUTO_FREE char *text = NULL, *again = NULL;
	uint16_t pkeys[] = {0xffff, 0x8001};
	struct vhca_osm_binding b = {.epoch = INT64_MAX,
				     .port_guid = UINT64_C(0xfedcba9876543210),
				     .gid_index = UINT16_MAX,
				     .lid = UINT16_MAX,
				     .n_pkeys = 2,
				     .pkeys = pkeys};
	size_t len, again_len;

	(void)state;
	for (uint64_t i = 1; i <= 1000; i++) {
		b.vguid = i << 32;
		assert_int_equal(vhca_osm_table_put(t, &b, 126, NULL), 0);
	}
	assert_int_equal(vhca_osm_state_format(t, &text, &len), 0);
	assert_non_null(strstr(text, "\nb 0x000003e800000000 9223372036854775807 "
				     "0xfedcba9876543210 65535 65535 0xffff,0x8001\nend 1000\n"));
	assert_int_equal(strlen(text), len);
	again = strdup(text);
	assert_int_equal(vhca_osm_state_parse(again, u, NULL), 0);
	free(again);
	assert_int_equal(vhca_osm_state_format(u, &again, &again_len), 0);
	assert_string_equal(again, text);
	(void)vhca_osm_table_free(t);
	(void)vhca_osm_table_free(u);
}

static void expect_damaged(const char *text, const char *where)
{
	struct vhca_osm_table *t = new_table(false);
	struct vhca_error err = VHCA_ERROR_INIT;
	VHCA_AUTO_FREE char *copy = strdup(text);

	assert_true(vhca_osm_state_parse(copy, t, &err) < 0);
	assert_string_equal(err.code, "state_damaged");
	if (!strstr(err.msg, where))
		fail_msg("\"%s\" does not say \"%s\"", err.msg, where);
	(void)vhca_osm_table_free(t);
}

static void damaged_state_is_refused(void **state)
{
	static const char *const lines[] = {
		"x 1 2 3",
		"b 0x1 4 0xaa 2 17",
		"b 0x1 4 0xaa 2 17 0x8001 0x8002",
		"b 0x1 4 0xaa 2 17 0x8001,",
		"b 0x1 4 0xaa 2 65536 0x8001",
		"b 0x1 -4 0xaa 2 17 0x8001",
		"b 0x0 4 0xaa 2 17 0x8001",
		"b 0x1 4 0xaa 2 17 0x0000",
		"t 0x1 4",
		"m 0x0 0x8001",
		"p 0xaa",
		"p 0x0 hv1",
		"p 0xaa hv.1",
		"p 0xaa token:",
		"o 0x1 0xaa",
		"u 0x1",
		"u 0x1 0x2",
		"d",
		"end 7",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(lines); i++) {
		char text[256];

		(void)snprintf(text, sizeof(text), "vhcasm-state 2\n%s\nend 1\n", lines[i]);
		expect_damaged(text, "line 2");
	}
	expect_damaged("", "line 1");
	expect_damaged("vhcasm-state 1\nend 0\n", "line 1");
	expect_damaged("vhcasm-state 3\nend 0\n", "line 1");
	expect_damaged("vhcasm-state 2\n", "end is missing");
	expect_damaged("vhcasm-state 2\nend 0\nend 0\n", "line 3");
	expect_damaged("vhcasm-state 2\np 0xaa hv1\np 0xaa hv2\nend 2\n", "line 3");
	/* Nobody is no other party of a binding's; what was never bound has no owner. */
	expect_damaged("vhcasm-state 2\nb 0x1 4 0xaa 2 17 -\no 0x1 0x0\nend 2\n", "line 3");
	expect_damaged("vhcasm-state 2\nn 0x1 4 0xaa\no 0x1 0x0\nend 2\n", "line 3");
	expect_damaged("vhcasm-state 2\nt 0x1 4 0xaa\no 0x1 0x0\no 0x1 0x0\nend 3\n", "line 4");
	expect_damaged("vhcasm-state 2\nt 0x1 4 0xaa\nu 0x1\nd 0x1\nend 3\n", "line 4");
	/* The same GUID twice, of whatever kind. */
	expect_damaged("vhcasm-state 2\nt 0x1 4 0x0\nb 0x1 4 0xaa 2 17 -\nend 2\n", "line 3");
}

static void a_truncated_state_is_refused_at_every_byte(void **state)
{
	(void)state;
	for (size_t len = 0; len + 1 < strlen(STATE); len++) {
		VHCA_AUTO_FREE char *text = strndup(STATE, len);
		struct vhca_osm_table *t = new_table(false);

		assert_true(vhca_osm_state_parse(text, t, NULL) < 0);
		(void)vhca_osm_table_free(t);
	}
}

/* ---- base file ---- */

static void base_file_is_understood(void **state)
{
	static const char text[] = "# comment; with: everything\n"
				   "Default=0x7fff, ipoib, mtu=5 : ALL=limited, SELF=full ;\n"
				   "storage = 0x0012 , sl=3,defmember=full :\n"
				   "   0x0002c90300a1b2c3,\n"
				   "   mgid=ff12:401b::ffff:ffff,Q_Key=0x1,sl=2\n"
				   "   12 = both ; 0x8013:ALL_CAS;";
	struct vhca_osm_base base;
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)state;
	assert_int_equal(vhca_osm_base_parse("b", text, &base, &err), 0);
	assert_int_equal(base.n, 3);
	assert_int_equal(vhca_osm_base_find(&base, 0x7fff)->sl, 0);
	assert_int_equal(vhca_osm_base_find(&base, 0x12)->sl, 3);
	assert_non_null(vhca_osm_base_find(&base, 0x13));
	assert_null(vhca_osm_base_find(&base, 0x14));
	assert_int_equal(base.text[strlen(base.text) - 1], '\n');
	vhca_osm_base_done(&base);
}

static void base_file_mistakes_are_named(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"Default=0x7fff ipoib ALL=full;", "b:1: no partition definition"},
		{"\nA=0x1:ALL=full", "does not end"},
		{VHCA_OSM_GENERATED "\nA=0x1:ALL=full;\n", "written by libvhcasm.so"},
		{"A=0x1:ALL=full\nB=0x2:ALL;", "b:2: membership"},
		{"tenant:ALL=full;", "must have a number"},
		{"A=0x8000:ALL;", "must have a number"},
		{"A=010:ALL;", "must have a number"},
		{"A=0x1,indx0:ALL;", "indx0"},
		{"A=0x1,ipo:ALL;", "unknown partition flag: ipo"},
		{"A=0x1,sl=16:ALL;", "sl must be"},
		{"A=0x1,mtu=x:ALL;", "mtu"},
		{"A=0x1,ipoib=1:ALL;", "takes no value"},
		{"A=0x1,defmember=some:ALL;", "defmember"},
		{"A=0x1:SEL;", "not a port GUID: SEL"},
		{"A=0x1:0x0;", "not a port GUID"},
		{"A=0x1:ALL=ful;", "membership"},
		{";", "no partition definition"},
		{"A=0x1:ALL\n;B=0x2:ALL;", "b:2: a semicolon"},
		{"A=0x1:mgid=ff12::1;B=0x2:ALL;", "line of an mgid"},
		{"A=0x1:mgid=ff12::1;", "needs a flag"},
		{"A=0x1:ALL;\r\n", "no partition definition"},
		{"A=0x1:mgid;", "multicast GID: mgid"},
		{"A=0x1:mgid=fe80::1;", "multicast GID: fe80::1"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		struct vhca_osm_base base = {0};
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_true(vhca_osm_base_parse("b", cases[i].text, &base, &err) < 0);
		assert_string_equal(err.code, "bad_base_file");
		if (!strstr(err.msg, cases[i].message))
			fail_msg("\"%s\": \"%s\"", cases[i].text, err.msg);
		assert_null(base.text);
	}
}

/* ---- partitions ---- */

static struct vhca_osm_policy default_policy(void)
{
	struct vhca_osm_conf conf;

	vhca_osm_conf_set_defaults(&conf);
	return conf.policy;
}

static void expect_partitions(const struct vhca_osm_table *t, const char *base_text,
			      const struct vhca_osm_policy *policy, const char *expected)
{
	struct vhca_osm_base base = {0};
	VHCA_AUTO_FREE char *text = NULL;
	const char *body;
	size_t len;

	if (base_text)
		assert_int_equal(vhca_osm_base_parse("b", base_text, &base, NULL), 0);
	assert_int_equal(vhca_osm_partitions_render(t, &base, policy, &text, &len), 0);
	assert_int_equal(len, strlen(text));
	body = strchr(text, '\n') + 1; /* after the "written by" line */
	assert_string_equal(body, expected);
	vhca_osm_base_done(&base);
}

#define MARK "# Needed by bindings and declarations:\n"

static void without_needs_the_rule_is_opensms(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	struct vhca_osm_policy policy = default_policy();

	(void)state;
	expect_partitions(t, NULL, &policy, "Default=0x7fff,ipoib:ALL=full;\n" MARK);
	expect_partitions(t, "# nothing\n", &policy, "Default=0x7fff,ipoib:ALL=full;\n" MARK);
	policy.default_limited = true;
	expect_partitions(t, NULL, &policy, "Default=0x7fff,ipoib:ALL=limited,SELF=full;\n" MARK);
	expect_partitions(t, "A=0x5:ALL;", &policy, "A=0x5:ALL;\n" MARK);
	(void)vhca_osm_table_free(t);
}

static void needs_become_statements(void **state)
{
	struct vhca_osm_table *t = new_table(true);
	struct vhca_osm_policy policy = default_policy();

	(void)state;
	policy.both_memberships = true;
	put(t, 1, 0xbb, 0x8001);
	put(t, 2, 0xaa, 0x8001);
	put(t, 3, 0xaa, 0x0001);
	put(t, 4, 0xaa, 0x0002);
	expect_partitions(
		t, "st=0x2,sl=4:SELF;", &policy,
		"st=0x2,sl=4:SELF;\n" MARK
		"vhca_0001=0x0001,ipoib:0x00000000000000aa=both,0x00000000000000bb=full;\n"
		"vhca_0002=0x0002,sl=4:0x00000000000000aa=limited;\n");
	policy.ipoib = false;
	expect_partitions(t, NULL, &policy,
			  "Default=0x7fff,ipoib:ALL=full;\n" MARK
			  "vhca_0001=0x0001:0x00000000000000aa=both,0x00000000000000bb=full;\n"
			  "vhca_0002=0x0002:0x00000000000000aa=limited;\n");
	(void)vhca_osm_table_free(t);
}

static void the_default_partition_is_left_alone(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	struct vhca_osm_policy policy = default_policy();

	(void)state;
	put(t, 1, 0xaa, 0xffff);
	put(t, 2, 0xbb, 0x7fff);
	expect_partitions(t, NULL, &policy, "Default=0x7fff,ipoib:ALL=full;\n" MARK);
	assert_int_equal(vhca_osm_policy_parse_allowed(&policy, "0x1-0x7fff", NULL), 0);
	/* A full member is never made limited. */
	expect_partitions(t, NULL, &policy,
			  "Default=0x7fff,ipoib:ALL=full;\n" MARK
			  "vhca_7fff=0x7fff:0x00000000000000aa=full;\n");
	(void)vhca_osm_table_free(t);
}

static void lines_stay_short(void **state)
{
	struct vhca_osm_table *t = new_table(false);
	struct vhca_osm_policy policy = default_policy();
	VHCA_AUTO_FREE char *text = NULL;
	size_t len, lines = 0, members = 0;

	(void)state;
	for (uint64_t g = 1; g <= 200; g++)
		put(t, g, 0x0002c90300000000 + g, 0x0001);
	assert_int_equal(vhca_osm_partitions_render(t, NULL, &policy, &text, &len), 0);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		struct vhca_osm_base check;

		assert_true(strlen(line) < 4000);
		if (strncmp(line, "vhca_0001=", 10) != 0)
			continue;
		lines++;
		for (const char *p = line; (p = strstr(p, "=limited")); p++)
			members++;
		/* Each line is a statement of its own that our own checker accepts. */
		assert_int_equal(vhca_osm_base_parse("t", line, &check, NULL), 0);
		vhca_osm_base_done(&check);
	}
	assert_int_equal(lines, 4);
	assert_int_equal(members, 200);
	(void)vhca_osm_table_free(t);
}

/* ---- configuration ---- */

/* "*a*, *b* and *c* are read again", in the code's order. */
static void the_man_page_says_what_is_read_again(void **state)
{
	const char *source = getenv("VHCA_SOURCE_DIR"), *key, *next;
	VHCA_AUTO_FREE char *page = NULL;
	char path[512], want[256];
	struct vhca_strbuf sb;
	size_t len;

	(void)state;
	assert_non_null(source);
	(void)snprintf(path, sizeof(path), "%s/docs/man/libvhcasm.7.rst", source);
	assert_int_equal(vhca_read_file(path, 1 << 20, &page, &len), 0);
	vhca_strbuf_init(&sb, want, sizeof(want));
	for (size_t i = 0; (key = vhca_osm_conf_read_again(i)); i++) {
		next = vhca_osm_conf_read_again(i + 1);
		if (i > 0)
			vhca_strbuf_add(&sb, next ? ", " : " and ");
		vhca_strbuf_add(&sb, "*%s*", key);
	}
	vhca_strbuf_add(&sb, " are read again");
	assert_non_null(strstr(page, want));
}

static void shipped_configuration_equals_the_defaults(void **state)
{
	const char *source = getenv("VHCA_SOURCE_DIR");
	struct vhca_osm_conf shipped, defaults;
	struct vhca_error err = VHCA_ERROR_INIT;
	char path[512];

	(void)state;
	assert_non_null(source);
	(void)snprintf(path, sizeof(path), "%s/opensm/vhcasm.conf", source);
	vhca_osm_conf_set_defaults(&defaults);
	if (vhca_osm_conf_load(path, &shipped, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(shipped.listen, defaults.listen);
	assert_int_equal(shipped.socket_mode, defaults.socket_mode);
	assert_string_equal(shipped.state_dir, defaults.state_dir);
	assert_string_equal(shipped.base_file, defaults.base_file);
	assert_int_equal(shipped.policy.n_allowed, defaults.policy.n_allowed);
	assert_memory_equal(shipped.policy.allowed, defaults.policy.allowed,
			    defaults.policy.n_allowed * sizeof(struct vhca_osm_range));
	assert_int_equal(shipped.inherit_s, defaults.inherit_s);
	assert_int_equal(shipped.tickets, defaults.tickets);
	assert_int_equal(shipped.settle_s, defaults.settle_s);
	assert_int_equal(shipped.policy.ipoib, defaults.policy.ipoib);
	assert_int_equal(shipped.policy.default_limited, defaults.policy.default_limited);
	assert_int_equal(shipped.lids_move, defaults.lids_move);
	assert_false(defaults.lids_move);
	assert_int_equal(shipped.drain, defaults.drain);
	assert_int_equal(shipped.dynamic, defaults.dynamic);
	assert_int_equal(shipped.keep_s, defaults.keep_s);
}

static int load_text(const char *text, struct vhca_osm_conf *ret, struct vhca_error *err)
{
	char path[] = "/tmp/test_osm_files.XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (int)strlen(text));
	(void)close(fd);
	r = vhca_osm_conf_load(path, ret, err);
	(void)unlink(path);
	return r;
}

static void configuration_is_read(void **state)
{
	struct vhca_osm_conf conf;

	(void)state;
	assert_int_equal(load_text("[http]\nlisten = 192.168.77.1:8515\nsocket_mode = 600\n"
				   "[state]\ndir = /x\n"
				   "[partitions]\nbase_file = /y\nallowed = 0x10 0x20-0x2f\n"
				   "default_members = limited\nipoib = no\n"
				   "[lids]\nenable = yes\ndrain = yes\ndynamic = 32768\n",
				   &conf, NULL),
			 0);
	assert_string_equal(conf.listen, "192.168.77.1:8515");
	assert_int_equal(conf.socket_mode, 0600);
	assert_string_equal(conf.state_dir, "/x");
	assert_string_equal(conf.base_file, "/y");
	assert_true(conf.policy.default_limited);
	assert_false(conf.policy.ipoib);
	assert_true(conf.lids_move);
	assert_true(conf.drain);
	assert_int_equal(conf.dynamic, VHCA_OSM_DYNAMIC_MAX);
	assert_true(vhca_osm_policy_allows(&conf.policy, 0x8010));
	assert_true(vhca_osm_policy_allows(&conf.policy, 0x002f));
	assert_false(vhca_osm_policy_allows(&conf.policy, 0x8011));
	assert_false(vhca_osm_policy_allows(&conf.policy, 0x0030));
}

static void agents_are_listed(void **state)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_conf conf;

	(void)state;
	assert_int_equal(load_text("[lids]\nenable = yes\n", &conf, NULL), 0);
	assert_false(conf.agents.listed);
	assert_int_equal(load_text("[agents]\n", &conf, NULL), 0);
	assert_true(conf.agents.listed);
	assert_null(vhca_osm_agents_find(&conf.agents, "cert:hv1"));
	assert_int_equal(load_text("[agents]\nhv2 = cert:HV2.example.ORG\nhv1 = cert:10.0.0.1\n"
				   "hv3 = cert-sha256:00ff 0x0002c90300000b01  "
				   "0x0002c90300000a01\n",
				   &conf, NULL),
			 0);
	assert_int_equal(conf.agents.n, 3);
	assert_string_equal(vhca_osm_agents_at(&conf.agents, UINT64_C(0x0002c90300000a01))->node,
			    "hv3");
	assert_string_equal(vhca_osm_agents_at(&conf.agents, UINT64_C(0x0002c90300000b01))->node,
			    "hv3");
	assert_null(vhca_osm_agents_at(&conf.agents, 1));
	assert_int_equal(vhca_osm_agents_find(&conf.agents, "cert:10.0.0.1")->n_ports, 0);
	assert_string_equal(vhca_osm_agents_find(&conf.agents, "cert:10.0.0.1")->node, "hv1");
	assert_string_equal(vhca_osm_agents_find(&conf.agents, "cert:hv2.example.org")->node,
			    "hv2");
	assert_null(vhca_osm_agents_find(&conf.agents, "cert:hv2"));
	assert_null(vhca_osm_agents_find(&conf.agents, "address:10.0.0.1"));
	vhca_osm_conf_done(&conf);
	assert_true(load_text("[agents]\na = cert:a 0x11\nb = cert:b 0x12 0x11\n", &conf, &err) <
		    0);
	assert_non_null(strstr(err.msg, ": \"0x0000000000000011\" stands twice in [agents]"));
}

static void all_agents_have_room_and_no_more(void **state)
{
	struct vhca_osm_agents agents = {.listed = true};
	struct vhca_error err = VHCA_ERROR_INIT;
	char node[32], certificate[64];

	(void)state;
	for (unsigned int i = 0; i <= VHCA_OSM_AGENTS_MAX; i++) {
		(void)snprintf(node, sizeof(node), "hv%u", i);
		(void)snprintf(certificate, sizeof(certificate), "cert:hv%u", i);
		assert_int_equal(vhca_osm_agents_add(&agents, node, certificate, &err) < 0,
				 i == VHCA_OSM_AGENTS_MAX);
	}
	assert_string_equal(err.msg, "more than 4096 in [agents]");
	assert_int_equal(vhca_osm_agents_sort(&agents, &err), 0);
	assert_string_equal(vhca_osm_agents_find(&agents, "cert:hv4095")->node, "hv4095");
	agents.list[7] = agents.list[8];
	assert_true(vhca_osm_agents_sort(&agents, &err) < 0);
	assert_non_null(strstr(err.msg, "stands twice in [agents]"));
	vhca_osm_agents_done(&agents);
}

static void lids_that_move_need_leave(void **state)
{
	static const char *const cases[] = {"[lids]\ndynamic = 4\n",
					    "[lids]\nenable = no\ndrain = yes\n"};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		struct vhca_error err = VHCA_ERROR_INIT;
		struct vhca_osm_conf conf;

		assert_true(load_text(cases[i], &conf, &err) < 0);
		assert_non_null(strstr(err.msg, "without enable = yes"));
	}
}

static void wrong_configuration_is_named(void **state)
{
	static const char *const cases[][2] = {
		{"[http]\nlisten = somewhere\n", "listen"},
		{"[http]\nsocket_mode = 888\n", "socket_mode"},
		{"[state]\ndir = var/lib\n", "absolute"},
		{"[partitions]\nallowed = 0x7fff-0x1\n", "allowed"},
		{"[partitions]\nallowed = 0x8001\n", "allowed"},
		{"[partitions]\nallowed = 0\n", "allowed"},
		{"[partitions]\ndefault_members = both\n", "neither"},
		{"[partitions]\nipoib = maybe\n", "ipoib"},
		{"[partitions]\ninherit = 86401\n", "inherit"},
		{"[lids]\nenable = maybe\n", "enable"},
		{"[lids]\ndrain = perhaps\n", "drain"},
		{"[lids]\ndynamic = 32769\n", "dynamic"},
		{"[partitions]\ncolour = red\n", "no such key"},
		{"[paint]\nallowed = 1\n", "no such key"},
		{"[agents]\nhv.1 = cert:a\n", "hv.1: \"hv.1\" is no name"},
		{"[agents]\nhv1 = hv1.example.org\n", "is not cert:NAME or cert-sha256:HEX"},
		{"[agents]\nhv1 = cert:\n", "is not cert:NAME"},
		{"[agents]\nhv1 = cert:a b\n", "\"b\" is no port GUID"},
		{"[agents]\nhv1 = cert:a 0x0\n", "\"0x0\" is no port GUID"},
		{"[agents]\nhv1 = cert:a 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8 0x9 0xa 0xb 0xc 0xd 0xe "
		 "0xf 0x10 0x11\n",
		 "\"0x11\" is one port too many"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		struct vhca_osm_conf conf;
		struct vhca_error err = VHCA_ERROR_INIT;

		assert_true(load_text(cases[i][0], &conf, &err) < 0);
		assert_string_equal(err.code, "bad_config");
		if (!strstr(err.msg, cases[i][1]) || !strstr(err.msg, ":2"))
			fail_msg("\"%s\"", err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_survives_the_file),
		cmocka_unit_test(owners_survive_the_file),
		cmocka_unit_test(a_large_state_survives_too),
		cmocka_unit_test(damaged_state_is_refused),
		cmocka_unit_test(a_truncated_state_is_refused_at_every_byte),
		cmocka_unit_test(base_file_is_understood),
		cmocka_unit_test(base_file_mistakes_are_named),
		cmocka_unit_test(without_needs_the_rule_is_opensms),
		cmocka_unit_test(needs_become_statements),
		cmocka_unit_test(the_default_partition_is_left_alone),
		cmocka_unit_test(lines_stay_short),
		cmocka_unit_test(the_man_page_says_what_is_read_again),
		cmocka_unit_test(shipped_configuration_equals_the_defaults),
		cmocka_unit_test(configuration_is_read),
		cmocka_unit_test(agents_are_listed),
		cmocka_unit_test(all_agents_have_room_and_no_more),
		cmocka_unit_test(lids_that_move_need_leave),
		cmocka_unit_test(wrong_configuration_is_named),
	};

	return cmocka_run_group_tests_name("osm_files", tests, NULL, NULL);
}
