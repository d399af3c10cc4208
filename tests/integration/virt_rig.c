/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/integration/virt_rig.h"

#include <stdio.h>
#include <stdlib.h>

#include <libvirt/libvirt.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "tests/unit/unit.h"

static void record(void *arg, const struct vhca_virt_event_data *data)
{
	struct virt_rig *rig = arg;

	assert_true(rig->n_events < VHCA_ARRAY_SIZE(rig->events));
	rig->events[rig->n_events++] = *data;
}

static const struct vhca_virt_event_data *find_event(const struct virt_rig *rig, unsigned int from,
						     enum vhca_virt_event event)
{
	for (unsigned int i = from; i < rig->n_events; i++)
		if (rig->events[i].event == event)
			return &rig->events[i];
	return NULL;
}

const struct vhca_virt_event_data *virt_rig_wait_event_ms(struct virt_rig *rig, unsigned int from,
							  enum vhca_virt_event event, uint64_t ms)
{
	uint64_t deadline = vhca_now_ms() + ms;

	while (!find_event(rig, from, event) && vhca_now_ms() < deadline)
		(void)vhca_loop_once(rig->loop, 50);
	if (!find_event(rig, from, event))
		fail_msg("event %d did not come", (int)event);
	return find_event(rig, from, event);
}

const struct vhca_virt_event_data *virt_rig_wait_event(struct virt_rig *rig, unsigned int from,
						       enum vhca_virt_event event)
{
	return virt_rig_wait_event_ms(rig, from, event, VIRT_RIG_WAIT_MS);
}

void virt_rig_open(struct virt_rig *rig)
{
	assert_int_equal(vhca_virt_new(rig->loop, rig->uri, record, rig, &rig->virt), 0);
}

int virt_rig_setup(void **state)
{
	struct virt_rig *rig = calloc(1, sizeof(*rig));

	assert_non_null(rig);
	libvirtd_init(&rig->daemon);
	(void)snprintf(rig->uri, sizeof(rig->uri), "test+unix:///default?socket=%s",
		       rig->daemon.socket);
	assert_int_equal(vhca_loop_new(&rig->loop), 0);
	*state = rig;
	return 0;
}

int virt_rig_setup_connected(void **state)
{
	struct virt_rig *rig;

	(void)virt_rig_setup(state);
	rig = *state;
	libvirtd_start(&rig->daemon);
	virt_rig_open(rig);
	(void)virt_rig_wait_event(rig, 0, VHCA_VIRT_CONNECTED);
	return 0;
}

int virt_rig_teardown(void **state)
{
	struct virt_rig *rig = *state;

	rig->virt = vhca_virt_free(rig->virt);
	rig->loop = vhca_loop_free(rig->loop);
	libvirtd_done(&rig->daemon);
	free(rig);
	return 0;
}

virConnectPtr virt_rig_operator(const struct virt_rig *rig)
{
	virConnectPtr conn = virConnectOpen(rig->uri);

	assert_non_null(conn);
	return conn;
}

virDomainPtr virt_rig_domain(virConnectPtr conn)
{
	virDomainPtr dom = virDomainLookupByName(conn, "test");

	assert_non_null(dom);
	return dom;
}

void virt_on_list(void *arg, int rc, struct vhca_dom_info *const *info, unsigned int n,
		  const struct vhca_error *err)
{
	struct virt_answer *a = arg;

	a->called++;
	a->rc = rc;
	a->n = n;
	a->err = *err;
	if (n > 0)
		a->info = *info[0];
}

void virt_on_done(void *arg, int rc, const struct vhca_error *err)
{
	struct virt_answer *a = arg;

	a->called++;
	a->rc = rc;
	a->err = *err;
}

void virt_rig_wait_answer(struct virt_rig *rig, const struct virt_answer *a)
{
	uint64_t deadline = vhca_now_ms() + VIRT_RIG_WAIT_MS;

	while (a->called == 0 && vhca_now_ms() < deadline)
		(void)vhca_loop_once(rig->loop, 50);
	assert_int_equal(a->called, 1);
}

struct virt_answer *virt_rig_list(struct virt_rig *rig, struct virt_answer *a)
{
	*a = (struct virt_answer){0};
	vhca_virt_list(rig->virt, virt_on_list, a);
	assert_int_equal(a->called, 0); /* never from inside */
	virt_rig_wait_answer(rig, a);
	return a;
}
