/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way from the guest's bus 0 to a VF, and what a domain says about VFs that its guest does not
 * let go.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/libvirt/domxml.h"
#include "common/base/cleanup.h"
#include "tests/unit/unit.h"

#define DOMAIN(meta, devices)                                                              \
	"<domain id='7'><name>vm1</name><uuid>6b3e0f5c-1111-4222-8333-0123456789ab</uuid>" \
	"<metadata>" meta "</metadata><devices>" devices "</devices></domain>"
#define AT(bus, slot, fn) \
	"<address type='pci' domain='0' bus='" bus "' slot='" slot "' function='" fn "'/>"
#define BRIDGE(model, index, at) \
	"<controller type='pci' model='" model "' index='" index "'>" at "</controller>"
#define HOSTDEV(at)                                                                          \
	"<hostdev mode='subsystem' type='pci'><source><address domain='0' bus='1' slot='0' " \
	"function='1'/></source>" at "</hostdev>"

static struct vhca_error err, request_err;

static struct vhca_dom_info *parse(const char *xml)
{
	struct vhca_dom_info *info = NULL;

	err = request_err = (struct vhca_error)VHCA_ERROR_INIT;
	assert_int_equal(vhca_domxml_parse(xml, strlen(xml), &info, &request_err, &err), 0);
	return info;
}

/* ---- paths ---- */

static struct vhca_dom_path path_in(const char *xml)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = parse(xml);

	assert_int_equal(info->n_hostdevs, 1);
	return info->hostdevs[0].path;
}

static void the_way_leads_over_the_root_port(void **state)
{
	/* libvirt's bus 5 need not be the guest's. */
	struct vhca_dom_path p = path_in(DOMAIN(
		"", HOSTDEV(AT("0x05", "0x00", "0x0")) BRIDGE("pcie-root", "0", "")
			    BRIDGE("pcie-root-port", "4", AT("0x00", "0x02", "0x3"))
				    BRIDGE("pcie-root-port", "5", AT("0x00", "0x02", "0x1"))));

	(void)state;
	assert_int_equal(p.n, 2);
	assert_int_equal(p.hops[0].dev, 2);
	assert_int_equal(p.hops[0].fn, 1);
	assert_int_equal(p.hops[1].dev, 0);
	assert_int_equal(p.hops[1].fn, 0);
}

static void bridges_are_followed_to_bus_0(void **state)
{
	struct vhca_dom_path p = path_in(
		DOMAIN("", BRIDGE("pcie-root-port", "1", AT("0x00", "0x1c", "0x0"))
				   BRIDGE("pcie-to-pci-bridge", "2", AT("0x01", "0x00", "0x0"))
					   HOSTDEV(AT("0x02", "0x0a", "0x0"))));

	(void)state;
	assert_int_equal(p.n, 3);
	assert_int_equal(p.hops[0].dev, 0x1c);
	assert_int_equal(p.hops[1].dev, 0);
	assert_int_equal(p.hops[2].dev, 0x0a);
	p = path_in(DOMAIN("", HOSTDEV(AT("0x00", "0x05", "0x0"))));
	assert_int_equal(p.n, 1);
	assert_int_equal(p.hops[0].dev, 5);
}

static void an_unknown_way_is_none(void **state)
{
	static const char *const domains[] = {
		DOMAIN("", HOSTDEV("")),
		DOMAIN("", HOSTDEV(AT("0x03", "0x00", "0x0"))),
		DOMAIN("", BRIDGE("pcie-root-port", "3", "") HOSTDEV(AT("0x03", "0x00", "0x0"))),
		/* Its bus is a root of its own. */
		DOMAIN("", BRIDGE("pcie-expander-bus", "3", AT("0x00", "0x04", "0x0"))
				   HOSTDEV(AT("0x03", "0x00", "0x0"))),
		/* A circle. */
		DOMAIN("", BRIDGE("pcie-root-port", "3", AT("0x04", "0x00", "0x0"))
				   BRIDGE("pcie-root-port", "4", AT("0x03", "0x00", "0x0"))
					   HOSTDEV(AT("0x03", "0x00", "0x0"))),
		DOMAIN("",
		       HOSTDEV("<address type='pci' domain='1' bus='0' slot='1' function='0'/>")),
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(domains); i++)
		assert_int_equal(path_in(domains[i]).n, 0);
}

/* ---- detach_escalation ---- */

#define ASKS(attribute)                                                          \
	DOMAIN("<vhca:infiniband xmlns:vhca='urn:vhcad:domain:1' " attribute ">" \
	       "<vhca:vf name='ib0' partition='1'/></vhca:infiniband>",          \
	       "")

static void escalation_is_read(void **state)
{
	static const struct {
		const char *xml;
		enum vhca_dom_escalation want;
	} cases[] = {
		{ASKS(""), VHCA_DOM_ESCALATION_UNSAID},
		{ASKS("detach_escalation='none'"), VHCA_DOM_ESCALATION_NONE},
		{ASKS("detach_escalation='guest-agent'"), VHCA_DOM_ESCALATION_GUEST_AGENT},
		{ASKS("xmlns:x='urn:x' x:detach_escalation='none'"), VHCA_DOM_ESCALATION_UNSAID},
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(cases); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = parse(cases[i].xml);

		assert_int_equal(info->escalation, cases[i].want);
		assert_int_equal(request_err.kind, VHCA_ERR_NONE);
	}
}

static void a_misspelt_attribute_refuses_the_request(void **state)
{
	static const char *const domains[] = {
		ASKS("detach_escalation='agent'"),
		ASKS("detach_escalation=''"),
		ASKS("detach-escalation='none'"),
	};

	(void)state;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(domains); i++) {
		VHCA_AUTO_FREE struct vhca_dom_info *info = parse(domains[i]);

		assert_int_equal(info->escalation, VHCA_DOM_ESCALATION_UNSAID);
		assert_int_equal(info->n_requests, 0);
		assert_string_equal(request_err.code, "bad_vf_request");
		assert_non_null(strstr(request_err.hint, "detach_escalation"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_way_leads_over_the_root_port),
		cmocka_unit_test(bridges_are_followed_to_bus_0),
		cmocka_unit_test(an_unknown_way_is_none),
		cmocka_unit_test(escalation_is_read),
		cmocka_unit_test(a_misspelt_attribute_refuses_the_request),
	};

	return cmocka_run_group_tests_name("domxml_bus", tests, NULL, NULL);
}
