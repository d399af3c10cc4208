/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_INTEGRATION_VIRT_RIG_H
#define VHCA_TESTS_INTEGRATION_VIRT_RIG_H
/* The production libvirt room at a libvirtd of the test's own, and an operator beside it. */
#include <libvirt/libvirt.h>

#include "agent/libvirt/virt.h"
#include "tests/integration/libvirtd.h"

#define VIRT_RIG_WAIT_MS 60000

struct virt_rig {
	struct libvirtd daemon;
	char uri[192];
	struct vhca_loop *loop;
	struct vhca_virt *virt;
	unsigned int n_events;
	struct vhca_virt_event_data events[256];
};

/* The first such event from number `from` on; fails the test if none comes. */
const struct vhca_virt_event_data *virt_rig_wait_event_ms(struct virt_rig *rig, unsigned int from,
							  enum vhca_virt_event event, uint64_t ms);
const struct vhca_virt_event_data *virt_rig_wait_event(struct virt_rig *rig, unsigned int from,
						       enum vhca_virt_event event);
void virt_rig_open(struct virt_rig *rig);
int virt_rig_setup(void **state);
int virt_rig_setup_connected(void **state);
int virt_rig_teardown(void **state);
/* Another client of the same daemon. */
virConnectPtr virt_rig_operator(const struct virt_rig *rig);
virDomainPtr virt_rig_domain(virConnectPtr conn);

/* Of a call. */
struct virt_answer {
	unsigned int called;
	int rc;
	unsigned int n;
	struct vhca_dom_info info; /* of one domain */
	struct vhca_error err, request_err;
};

void virt_on_list(void *arg, int rc, struct vhca_dom_info *const *info, unsigned int n,
		  const struct vhca_error *err);
void virt_on_done(void *arg, int rc, const struct vhca_error *err);
void virt_rig_wait_answer(struct virt_rig *rig, const struct virt_answer *a);
struct virt_answer *virt_rig_list(struct virt_rig *rig, struct virt_answer *a);

#endif
