/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a domain's XML says of the domain and of its wishes, and which XML is refused. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/libvirt/domxml.h"
#include "common/base/cleanup.h"
#include "tests/unit/agent/libvirt/domxml_text.h"
#include "tests/unit/unit.h"

static void reads_head(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(dom_live_xml, 0);

	(void)state;
	assert_string_equal(info->name, "vm1");
	assert_string_equal(VHCA_UUID_STR(&info->uuid), DOM_UUID);
	assert_int_equal(info->id, 7);
	assert_int_equal(info->memory.kib, 1048576);
}

static void the_sm_may_choose_the_guid(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info =
		dom_parse(DOM_ONE_VF("name='ib0' partition='1' guid='sm'"), 0);

	(void)state;
	assert_int_equal(dom_request_err.kind, VHCA_ERR_NONE);
	assert_true(info->requests[0].guid == VHCA_GUID_BY_SM);
}

static void reads_two_requests(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(dom_live_xml, 0);
	const struct vhca_vf_request *a = &info->requests[0], *b = &info->requests[1];

	(void)state;
	assert_int_equal(dom_request_err.kind, VHCA_ERR_NONE);
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

static void inactive_domain_has_no_id(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info =
		dom_parse("<domain type='kvm'><name>a</name><uuid>" DOM_UUID "</uuid></domain>", 0);

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
		       "<domain><name>%s</name><uuid>" DOM_UUID "</uuid></domain>", name);
	info = dom_parse(xml, 0);
	assert_int_equal(strlen(info->name), sizeof(info->name) - 1);
}

static void prefix_of_namespace_is_free(void **state)
{
	static const char *const forms[] = {
		DOM_HEAD "<metadata><x:infiniband xmlns:x='urn:vhcad:domain:1'>"
			 "<x:vf name='ib0' partition='0x8001'/></x:infiniband></metadata></domain>",
		DOM_HEAD "<metadata><infiniband xmlns='urn:vhcad:domain:1'>"
			 "<vf name='ib0' partition='0x8001'/></infiniband></metadata></domain>",
		DOM_HEAD "<metadata><app:a xmlns:app='urn:app'><app:vf name='no'/></app:a>"
			 "<x:infiniband xmlns:x='urn:vhcad:domain:1' xmlns:o='urn:other'>"
			 "<x:vf name='ib0' o:note='mine' "
			 "partition='0x8001'/></x:infiniband></metadata></domain>",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(forms[i], 0);

		assert_int_equal(dom_request_err.kind, VHCA_ERR_NONE);
		assert_int_equal(info->n_requests, 1);
		assert_string_equal(info->requests[0].name, "ib0");
	}
}

static void other_namespaces_ask_for_nothing(void **state)
{
	static const char *const forms[] = {
		DOM_HEAD
		"<metadata><vhca:infiniband xmlns:vhca='urn:vhcad:domain:2'>"
		"<vhca:vf name='ib0' partition='0x8001'/></vhca:infiniband></metadata></domain>",
		DOM_HEAD "<metadata><infiniband><vf name='ib0' "
			 "partition='1'/></infiniband></metadata></domain>",
		DOM_HEAD "<description>&lt;vhca:vf name='ib0'/&gt;</description></domain>",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(forms[i], 0);

		assert_int_equal(dom_request_err.kind, VHCA_ERR_NONE);
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
		{DOM_HEAD AWAY("migration='" AWAY_TEXT "'"), true, true},
		{DOM_HEAD AWAY("migration='" AWAY_TEXT "' autostart='yes'"), true, true, true},
		{DOM_HEAD AWAY("migration='" AWAY_TEXT "' autostart='no'"), true, true},
		{DOM_HEAD "<metadata><away xmlns='urn:vhcad:away:1' migration='" AWAY_TEXT
			  "'/></metadata></domain>",
		 true, true},
		/* An unreadable one still says that the VFs are away. */
		{DOM_HEAD AWAY("migration='7'"), true, false},
		{DOM_HEAD AWAY(""), true, false},
		{DOM_HEAD AWAY("a:migration='" AWAY_TEXT "'"), true, false},
		{DOM_HEAD "</domain>", false, false},
		{DOM_HEAD "<metadata/></domain>", false, false},
		{DOM_HEAD "<metadata><away migration='" AWAY_TEXT "'/></metadata></domain>", false,
		 false},
		{DOM_HEAD "<metadata><a:home xmlns:a='urn:vhcad:away:1'/></metadata></domain>",
		 false, false},
		{DOM_HEAD "<a:away xmlns:a='urn:vhcad:away:1' migration='" AWAY_TEXT "'/></domain>",
		 false, false},
	};
	struct vhca_uuid id, zero = {{0}};

	(void)state;
	assert_int_equal(vhca_uuid_parse(AWAY_TEXT, &id), 0);
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(cases[i].xml, 0);

		if (info->has_away != cases[i].away || info->away_autostart != cases[i].autostart ||
		    !vhca_uuid_equal(&info->away, cases[i].id ? &id : &zero))
			fail_msg("case %zu", i);
		assert_int_equal(info->n_requests, 0);
		assert_int_equal(dom_request_err.kind, VHCA_ERR_NONE);
	}
}

/* Both namespaces under one prefix, as libvirt writes them. */
static void marker_stands_beside_the_request(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info =
		dom_parse(DOM_HEAD "<metadata><vhca:infiniband xmlns:vhca='urn:vhcad:domain:1'>"
				   "<vhca:vf name='ib0' partition='0x8001'/></vhca:infiniband>"
				   "<vhca:away xmlns:vhca='urn:vhcad:away:1' migration='" AWAY_TEXT
				   "'/></metadata></domain>",
			  0);

	(void)state;
	assert_true(info->has_away);
	assert_int_equal(info->n_requests, 1);
	assert_int_equal(dom_request_err.kind, VHCA_ERR_NONE);
}

static void bad_requests_name_the_place(void **state)
{
	static const struct {
		const char *xml, *says, *and;
	} cases[] = {
		{DOM_ONE_VF("partition='1'"), "attribute name is missing", "letters, digits"},
		{DOM_ONE_VF("name='' partition='1'"), "name=\"\"", "1 to 31"},
		{DOM_ONE_VF("name='a b' partition='1'"), "name=\"a b\"", "letters"},
		{DOM_ONE_VF("name='ib0:1' partition='1'"), "name=\"ib0:1\"", "letters"},
		{DOM_ONE_VF("name='ib0'"), "attribute partition is missing", "P_Keys"},
		{DOM_ONE_VF("name='ib0' partition=''"), "partition=\"\"", "P_Keys"},
		{DOM_ONE_VF("name='ib0' partition='   '"), "partition=\"   \"", "P_Keys"},
		{DOM_ONE_VF("name='ib0' partition='0x8001,0xffff'"), "partition=\"0x8001,0xffff\"",
		 "separated by blanks"},
		{DOM_ONE_VF("name='ib0' partition='1' guid='0'"), "guid=\"0\"", "auto, sm"},
		{DOM_ONE_VF("name='ib0' partition='1' guid='0x0'"), "guid=\"0x0\"", "auto, sm"},
		{DOM_ONE_VF("name='ib0' partition='1' guid='0x0102c90300a1b2c3'"),
		 "guid=", "unicast"},
		{DOM_ONE_VF("name='ib0' partition='1' guid='Auto'"), "guid=\"Auto\"", "auto, sm"},
		{DOM_ONE_VF("name='ib0' partition='1' guid='mac:fa:16:3e:12:34'"),
		 "guid=\"mac:", "or mac:"},
		{DOM_ONE_VF("name='ib0' partition='1' fabric=''"), "fabric=\"\"", "letters"},
		{DOM_ONE_VF("name='ib0' partition='1' pf='03:00.0'"), "pf=\"03:00.0\"",
		 "0000:03:00.0"},
		{DOM_ONE_VF("name='ib0' partition='1' numa='-1'"), "numa=\"-1\"", "0 to 1023"},
		{DOM_ONE_VF("name='ib0' partition='1' numa='1024'"), "numa=\"1024\"", "0 to 1023"},
		{DOM_ONE_VF("name='ib0' partition='1' gid='auto'"), "unknown attribute gid",
		 "guid"},
		{DOM_HEAD DOM_META("<vhca:vf name='a' partition='1'/><vhca:vf name='a' "
				   "partition='2'/>") "</domain>",
		 "number 2: name=\"a\" is used twice", ""},
		{DOM_HEAD DOM_META("<vhca:port name='a'/>") "</domain>", "unknown element <port>",
		 "vhca:vf"},
		{DOM_HEAD DOM_META("<vf name='a' partition='1'/>") "</domain>",
		 "unknown element <vf>", "vhca:vf"},
		{DOM_HEAD "<metadata><v:ib xmlns:v='urn:vhcad:domain:1'/></metadata></domain>",
		 "unknown element <ib>", "vhca:infiniband"},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(cases[i].xml, 0);

		assert_int_equal(dom_request_err.kind, VHCA_ERR_INVALID);
		assert_string_equal(dom_request_err.code, "bad_vf_request");
		dom_assert_says(&dom_request_err, "vm1");
		dom_assert_says(&dom_request_err, cases[i].says);
		dom_assert_says(&dom_request_err, cases[i].and);
		dom_assert_says(&dom_request_err, "is given no VF");
		assert_string_not_equal(dom_request_err.hint, ""); /* what to write instead */
		assert_int_equal(info->n_requests, 0);
		assert_int_equal(info->request_error.kind, VHCA_ERR_INVALID);
	}
}

/* In words it is refused as a whole, and so it is; what the domain has is not hidden by that. */
static void bad_request_refuses_all_and_hides_no_device(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = dom_parse(
		DOM_HEAD DOM_META(
			"<vhca:vf name='ib0' partition='1'/><vhca:vf name='ib1' partition='' />"
			"<vhca:vf name='ib2' partition='2'/>") "<devices><hostdev mode='subsystem' "
							       "type='pci'><source>"
							       "<address domain='0' bus='0x3b' "
							       "slot='0' function='1'/>"
							       "</source></hostdev></devices></"
							       "domain>",
		0);

	(void)state;
	assert_string_equal(dom_request_err.msg, "domain vm1 is given no VF: <vhca:vf> number 2: "
						 "partition=\"\" is not valid");
	assert_int_equal(info->n_requests, 0);
	assert_int_equal(info->n_hostdevs, 1);
	assert_string_equal(info->hostdevs[0].alias, "");
}

static void bad_request_fails_who_cannot_take_it(void **state)
{
	static const char xml[] = DOM_ONE_VF("name='ib0'");
	struct vhca_dom_info *info = NULL;

	(void)state;
	assert_int_equal(vhca_domxml_parse(xml, strlen(xml), &info, NULL, &dom_err), -EINVAL);
	assert_null(info);
	assert_string_equal(dom_err.code, "bad_vf_request");
}

static struct vhca_dom_info *parse_many_vfs(unsigned int n)
{
	VHCA_AUTO_FREE char *xml = dom_repeat(
		DOM_HEAD "<metadata><v:infiniband xmlns:v='urn:vhcad:domain:1'>", n,
		"<v:vf partition='1' name='n", "'/>", "</v:infiniband></metadata></domain>");

	return dom_parse(xml, 0);
}

static void requests_are_bounded(void **state)
{
	VHCA_AUTO_FREE struct vhca_dom_info *full = parse_many_vfs(VHCA_DOM_VFS_MAX);
	VHCA_AUTO_FREE struct vhca_dom_info *over = NULL;

	(void)state;
	assert_int_equal(dom_request_err.kind, VHCA_ERR_NONE);
	assert_int_equal(full->n_requests, VHCA_DOM_VFS_MAX);
	over = parse_many_vfs(VHCA_DOM_VFS_MAX + 1);
	dom_assert_says(&dom_request_err, "more than 16");
	assert_int_equal(over->n_requests, 0);
}

static void garbage_is_refused(void **state)
{
	static const char *const forms[] = {
		"garbage",
		"<domain>",
		"<domain/>",
		"<network><name>vm1</name><uuid>" DOM_UUID "</uuid></network>",
		"<domain><name>vm1</name></domain>",
		"<domain><name/><uuid>" DOM_UUID "</uuid></domain>",
		"<domain><name>vm1</name><uuid>1234</uuid></domain>",
		"<domain><name>vm1</name><uuid>" DOM_UUID
		"</uuid><memory unit='MiB'>1</memory></domain>",
		"<domain><name>vm1</name><uuid>" DOM_UUID "</uuid><memory>x</memory></domain>",
		DOM_HEAD "</domain><domain/>",
		DOM_HEAD "<devices></domain>",
		DOM_HEAD "<x:y/></domain>\xff\xfe",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++)
		(void)dom_parse(forms[i], -EINVAL);
	(void)dom_parse_len("", 0, -EFBIG);
}

static void every_cut_of_a_document_is_refused(void **state)
{
	(void)state;
	for (size_t len = 1; len < strlen(dom_live_xml); len++)
		(void)dom_parse_len(dom_live_xml, len, -EINVAL);
}

static void doctype_is_refused(void **state)
{
	static const char *const forms[] = {
		"<!DOCTYPE domain>" DOM_HEAD "</domain>",
		"<!DOCTYPE domain SYSTEM 'file:///etc/passwd'>" DOM_HEAD "</domain>",
		"<!DOCTYPE domain [<!ENTITY x SYSTEM 'file:///etc/passwd'>]>" DOM_HEAD
		"<description>&x;</description></domain>",
		"<!DOCTYPE d [<!ENTITY a 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'>"
		"<!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;'><!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;'>"
		"<!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;'><!ENTITY e "
		"'&d;&d;&d;&d;&d;&d;&d;&d;'>]>" DOM_HEAD
		"<description a='&e;&e;&e;'>&e;</description></domain>",
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(forms); i++) {
		(void)dom_parse(forms[i], -EINVAL);
		dom_assert_says(&dom_err, "DOCTYPE");
	}
	(void)dom_parse(DOM_HEAD "<description>&undeclared;</description></domain>", -EINVAL);
}

static void deep_and_large_documents_are_bounded(void **state)
{
	VHCA_AUTO_FREE char *deep = malloc(300000), *large = malloc(VHCA_XML_MAX + 2);

	(void)state;
	assert_non_null(deep);
	assert_non_null(large);
	for (size_t i = 0; i < 300000; i += 3)
		memcpy(deep + i, "<a>", 3);
	(void)dom_parse_len(deep, 300000, -EINVAL);
	memset(large, ' ', VHCA_XML_MAX + 1);
	memcpy(large, DOM_HEAD "</domain>", strlen(DOM_HEAD "</domain>"));
	(void)dom_parse_len(large, VHCA_XML_MAX + 1, -EFBIG);
	free(dom_parse_len(large, VHCA_XML_MAX, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_head),
		cmocka_unit_test(the_sm_may_choose_the_guid),
		cmocka_unit_test(reads_two_requests),
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
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(every_cut_of_a_document_is_refused),
		cmocka_unit_test(doctype_is_refused),
		cmocka_unit_test(deep_and_large_documents_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
