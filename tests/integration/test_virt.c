/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The libvirt adapter against a real libvirtd of our own, which serves libvirt's test driver on a
 * socket in a temporary directory: connections, events, XML, loss and return of the daemon. What
 * the test driver lacks (attach, detach) is in tests/unit/agent/libvirt/test_virt_call.c.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <libvirt/libvirt.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "tests/integration/virt_rig.h"
#include "tests/unit/unit.h"

#define MANY	    24
#define OTHER_XMLNS "urn:vhcad:test"

/* ---- calls ---- */

static void virt_on_info(void *arg, int rc, const struct vhca_dom_info *info,
			 const struct vhca_error *request_err, const struct vhca_error *err)
{
	struct virt_answer *a = arg;

	a->called++;
	a->rc = rc;
	a->err = *err;
	a->request_err = *request_err;
	assert_int_equal(rc == 0, info != NULL);
	if (info)
		a->info = *info;
}

static struct virt_answer *virt_rig_info(struct virt_rig *rig, struct vhca_uuid uuid,
					 struct virt_answer *a)
{
	*a = (struct virt_answer){0};
	vhca_virt_info(rig->virt, &uuid, virt_on_info, a);
	virt_rig_wait_answer(rig, a);
	return a;
}

/* ---- cases ---- */

static void lists_active_domains(void **state)
{
	struct virt_rig *rig = *state;
	struct virt_answer a;

	assert_true(vhca_virt_connected(rig->virt));
	virt_rig_list(rig, &a);
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.n, 1);
	assert_string_equal(a.info.name, "test");
	assert_true(a.info.id > 0);
	assert_int_equal(a.info.memory.kib, 8388608);
	assert_int_equal(virt_rig_info(rig, a.info.uuid, &(struct virt_answer){0})->rc, 0);
}

static void reports_lifecycle(void **state)
{
	struct virt_rig *rig = *state;
	virConnectPtr conn = virt_rig_operator(rig);
	virDomainPtr dom = virt_rig_domain(conn);
	const struct vhca_virt_event_data *e;
	struct virt_answer a;

	virt_rig_list(rig, &a);
	assert_int_equal(virDomainSuspend(dom), 0);
	e = virt_rig_wait_event(rig, 0, VHCA_VIRT_SUSPENDED);
	assert_int_equal(e->detail, VIR_DOMAIN_EVENT_SUSPENDED_PAUSED);
	assert_true(virt_rig_list(rig, &a)->info.paused);
	assert_int_equal(virDomainResume(dom), 0);
	e = virt_rig_wait_event(rig, 0, VHCA_VIRT_RESUMED);
	assert_int_equal(e->detail, VIR_DOMAIN_EVENT_RESUMED_UNPAUSED);
	assert_false(virt_rig_list(rig, &a)->info.paused);
	assert_int_equal(virDomainDestroy(dom), 0);
	e = virt_rig_wait_event(rig, 0, VHCA_VIRT_STOPPED);
	assert_int_equal(e->detail, VIR_DOMAIN_EVENT_STOPPED_DESTROYED);
	assert_string_equal(e->name, "test");
	assert_true(vhca_uuid_equal(&e->uuid, &a.info.uuid));
	assert_int_equal(virDomainCreate(dom), 0);
	e = virt_rig_wait_event(rig, 0, VHCA_VIRT_STARTED);
	assert_int_equal(e->detail, VIR_DOMAIN_EVENT_STARTED_BOOTED);
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

static void stopped_domain_is_not_active(void **state)
{
	struct virt_rig *rig = *state;
	virConnectPtr conn = virt_rig_operator(rig);
	virDomainPtr dom = virt_rig_domain(conn);
	struct vhca_uuid nobody = {{1}};
	struct virt_answer a;

	virt_rig_list(rig, &a);
	assert_int_equal(virDomainDestroy(dom), 0);
	virt_rig_info(rig, a.info.uuid, &a);
	assert_int_equal(a.rc, -ENOENT);
	assert_string_equal(a.err.code, "domain_gone");
	assert_int_equal(virt_rig_list(rig, &a)->n, 0);
	virt_rig_info(rig, nobody, &a);
	assert_int_equal(a.rc, -ESRCH);
	assert_string_equal(a.err.code, "domain_gone");
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

static void set_metadata(virDomainPtr dom, const char *xml, const char *key, const char *uri)
{
	assert_int_equal(virDomainSetMetadata(dom, VIR_DOMAIN_METADATA_ELEMENT, xml, key, uri,
					      VIR_DOMAIN_AFFECT_LIVE),
			 0);
}

static void reports_our_metadata_only(void **state)
{
	struct virt_rig *rig = *state;
	virConnectPtr conn = virt_rig_operator(rig);
	virDomainPtr dom = virt_rig_domain(conn);
	unsigned int n = 0;
	struct virt_answer a;

	virt_rig_list(rig, &a);
	set_metadata(dom, "<x/>", "x", OTHER_XMLNS);
	set_metadata(dom, "<infiniband><vf name='ib0' partition='0x8001'/></infiniband>", "vhca",
		     VHCA_DOMAIN_NS);
	(void)virt_rig_wait_event(rig, 0, VHCA_VIRT_METADATA);
	set_metadata(dom, "<infiniband><vf name='ib0'/></infiniband>", "vhca", VHCA_DOMAIN_NS);
	assert_int_equal(virDomainDestroy(dom), 0);
	(void)virt_rig_wait_event(rig, 0, VHCA_VIRT_STOPPED);
	for (unsigned int i = 0; i < rig->n_events; i++)
		n += rig->events[i].event == VHCA_VIRT_METADATA;
	assert_int_equal(n, 2);
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

static void reads_the_request(void **state)
{
	struct virt_rig *rig = *state;
	virConnectPtr conn = virt_rig_operator(rig);
	virDomainPtr dom = virt_rig_domain(conn);
	struct virt_answer a;

	set_metadata(dom, "<infiniband><vf name='ib0' partition='0x8001 0xffff'/></infiniband>",
		     "vhca", VHCA_DOMAIN_NS);
	virt_rig_list(rig, &a);
	assert_int_equal(a.info.n_requests, 1);
	assert_string_equal(a.info.requests[0].partition, "0x8001 0xffff");
	set_metadata(dom, "<infiniband><vf name='ib0'/></infiniband>", "vhca", VHCA_DOMAIN_NS);
	virt_rig_info(rig, a.info.uuid, &a);
	assert_int_equal(a.rc, 0);
	assert_string_equal(a.request_err.code, "bad_vf_request");
	virt_rig_list(rig, &a);
	assert_int_equal(a.rc, 0);
	assert_string_equal(a.info.request_error.code, "bad_vf_request");
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

/* libvirtd hands out no string of more than 4 MiB (REMOTE_STRING_MAX,
 * src/remote/remote_protocol.x), and two of less make one domain of more. */
static void grow(virDomainPtr dom, const char *uri)
{
	static const char head[] = "<x>", tail[] = "</x>";
	size_t len = 2500 * 1024;
	VHCA_AUTO_FREE char *xml = malloc(len);

	assert_non_null(xml);
	memset(xml, 'x', len);
	memcpy(xml, head, strlen(head));
	memcpy(xml + len - sizeof(tail), tail, sizeof(tail));
	set_metadata(dom, xml, "x", uri);
}

static void domain_too_large_is_unreadable(void **state)
{
	struct virt_rig *rig = *state;
	virConnectPtr conn = virt_rig_operator(rig);
	virDomainPtr dom = virt_rig_domain(conn);
	struct virt_answer a;

	grow(dom, OTHER_XMLNS ":1");
	assert_int_equal(virt_rig_list(rig, &a)->info.unreadable.kind, VHCA_ERR_NONE);
	grow(dom, OTHER_XMLNS ":2");
	virt_rig_list(rig, &a);
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.n, 1);
	assert_non_null(strstr(a.info.unreadable.msg, "Unable to encode message payload"));
	assert_int_equal(virt_rig_info(rig, a.info.uuid, &a)->rc, 0);
	assert_string_equal(a.info.name, "test");
	assert_true(a.info.id > 0);
	assert_int_not_equal(a.info.unreadable.kind, VHCA_ERR_NONE);
	assert_true(vhca_virt_connected(rig->virt));
	assert_int_equal(virDomainDestroy(dom), 0);
	assert_int_equal(virt_rig_info(rig, a.info.uuid, &a)->rc, -ENOENT);
	(void)virDomainFree(dom);
	(void)virConnectClose(conn);
}

static void attach_reports_what_libvirt_says(void **state)
{
	struct virt_rig *rig = *state;
	struct virt_answer a, done = {0};

	virt_rig_list(rig, &a);
	vhca_virt_attach(rig->virt, &a.info.uuid, (struct vhca_bdf){.bus = 1, .fn = 1}, "ib0", NULL,
			 virt_on_done, &done);
	virt_rig_wait_answer(rig, &done);
	assert_int_equal(done.rc, -EOPNOTSUPP);
	assert_string_equal(done.err.code, "libvirt");
	assert_non_null(strstr(done.err.msg, "domain test: attach 0000:01:00.1 as ua-vhca-ib0"));
	done = (struct virt_answer){0};
	vhca_virt_detach(rig->virt, &(struct vhca_uuid){{1}}, "ua-vhca-ib0", virt_on_done, &done);
	virt_rig_wait_answer(rig, &done);
	assert_int_equal(done.rc, -ENOENT);
	assert_string_equal(done.err.code, "domain_gone");
}

/* Calls for many domains at once: each answered once, and the strands are given back. */
static void many_domains_at_once(void **state)
{
	struct virt_rig *rig = *state;
	struct virt_answer *answers = calloc(MANY, sizeof(*answers));

	assert_non_null(answers);
	for (unsigned int round = 0; round < 2; round++) {
		memset(answers, 0, MANY * sizeof(*answers));
		for (unsigned int i = 0; i < MANY; i++)
			vhca_virt_detach(rig->virt, &(struct vhca_uuid){{(uint8_t)(i + 1)}},
					 "ua-vhca-ib0", virt_on_done, &answers[i]);
		for (unsigned int i = 0; i < MANY; i++) {
			virt_rig_wait_answer(rig, &answers[i]);
			assert_int_equal(answers[i].rc, -ENOENT);
		}
	}
	for (unsigned int i = 0; i < 5; i++)
		(void)vhca_loop_once(rig->loop, 20);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(answers[i].called, 1);
	free(answers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lists_active_domains, virt_rig_setup_connected,
						virt_rig_teardown),
		cmocka_unit_test_setup_teardown(reports_lifecycle, virt_rig_setup_connected,
						virt_rig_teardown),
		cmocka_unit_test_setup_teardown(stopped_domain_is_not_active,
						virt_rig_setup_connected, virt_rig_teardown),
		cmocka_unit_test_setup_teardown(reports_our_metadata_only, virt_rig_setup_connected,
						virt_rig_teardown),
		cmocka_unit_test_setup_teardown(reads_the_request, virt_rig_setup_connected,
						virt_rig_teardown),
		cmocka_unit_test_setup_teardown(domain_too_large_is_unreadable,
						virt_rig_setup_connected, virt_rig_teardown),
		cmocka_unit_test_setup_teardown(attach_reports_what_libvirt_says,
						virt_rig_setup_connected, virt_rig_teardown),
		cmocka_unit_test_setup_teardown(many_domains_at_once, virt_rig_setup_connected,
						virt_rig_teardown),
	};

	if (access(LIBVIRTD_PATH, X_OK) < 0) {
		(void)printf("1..0 # SKIP no " LIBVIRTD_PATH "\n");
		return 0;
	}
	vhca_log_set_level(VHCA_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
