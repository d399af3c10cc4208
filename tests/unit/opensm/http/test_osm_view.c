/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* opensm/http/view: what is said of a binding, from the fabric and the SA. */
#include <string.h>

#include "opensm/bindings/service.h"
#include "opensm/http/view.h"
#include "tests/unit/opensm/plugin.h"
#include "tests/unit/unit.h"

/* ---- view ---- */

static const struct vhca_osm_view *view(struct plugin *p)
{
	static struct vhca_osm_view v;

	vhca_osm_view_get(vhca_osm_service_subnet(p->service),
			  vhca_osm_table_find(vhca_osm_service_table(p->service), FALSE_GUID), &v);
	return &v;
}

static void state_follows_the_sa(void **state)
{
	struct plugin *p = *state;

	assert_string_equal(plugin_put(p, 1, FALSE_PORT_A, 0x8001), "");
	p->subnet.pkeys[0] = 0x8001;
	assert_int_equal(view(p)->state, VHCA_OSM_PENDING);
	assert_int_equal(view(p)->n_findings, 0);
	p->subnet.alias_known = true;
	p->subnet.alias = (struct vhca_osm_alias){FALSE_PORT_A, 3};
	assert_int_equal(view(p)->state, VHCA_OSM_GRANTED);
	assert_int_equal(view(p)->n_findings, 0);
	p->subnet.alias = (struct vhca_osm_alias){FALSE_PORT_A, 4};
	assert_int_equal(view(p)->state, VHCA_OSM_PENDING);
	assert_non_null(strstr(view(p)->findings[0], "at index 4"));
	p->subnet.alias = (struct vhca_osm_alias){FALSE_PORT_B, 3};
	assert_int_equal(view(p)->state, VHCA_OSM_ELSEWHERE);
	assert_non_null(strstr(view(p)->findings[0], "0x0002c90300000b01"));
	p->subnet.alias = (struct vhca_osm_alias){FALSE_PORT_B, -1};
	assert_non_null(strstr(view(p)->findings[0], "at no index"));
	assert_int_equal(vhca_osm_report_withdraw(plugin_reports(p), FALSE_GUID, 1, 0, NULL), 0);
	assert_int_equal(view(p)->state, VHCA_OSM_WITHDRAWN);
	assert_int_equal(view(p)->n_findings, 0);
}

static void findings_name_what_differs(void **state)
{
	struct plugin *p = *state;
	struct vhca_osm_eviction ev;
	uint16_t pkeys[] = {0x8001, 0x8002, 0x0003};
	struct vhca_osm_binding b = {.vguid = FALSE_GUID,
				     .epoch = 1,
				     .port_guid = FALSE_PORT_A,
				     .lid = 9,
				     .n_pkeys = 3,
				     .pkeys = pkeys};

	assert_int_equal(vhca_osm_report_put(plugin_reports(p), &b, 0, &ev, NULL), 0);
	p->subnet.ports[0].state = 2;
	p->subnet.pkeys[0] = 0x8002;
	assert_int_equal(view(p)->lid, 5);
	assert_int_equal(view(p)->n_findings, 3);
	assert_non_null(strstr(view(p)->findings[0], "reported LID 9"));
	assert_non_null(strstr(view(p)->findings[1], "Initialize, not Active"));
	assert_non_null(strstr(view(p)->findings[2], ": 0x8001 0x0003."));
	p->subnet.ports[0] = (struct vhca_osm_port_info){0};
	assert_int_equal(view(p)->lid, 0);
	assert_non_null(strstr(view(p)->findings[1], "unknown state"));
}

static void a_port_that_left_is_named(void **state)
{
	struct plugin *p = *state;
	struct vhca_osm_binding gone = {.vguid = FALSE_GUID, .epoch = 1, .port_guid = 0x4711};
	struct vhca_osm_view v;

	vhca_osm_view_get(vhca_osm_service_subnet(p->service), &gone, &v);
	assert_int_equal(v.n_findings, 1);
	assert_non_null(strstr(v.findings[0], "not in the subnet"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(state_follows_the_sa, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(findings_name_what_differs, plugin_setup,
						plugin_teardown),
		cmocka_unit_test_setup_teardown(a_port_that_left_is_named, plugin_setup,
						plugin_teardown),
	};

	return cmocka_run_group_tests_name("osm_view", tests, NULL, NULL);
}
