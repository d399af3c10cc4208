/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_LIBVIRT_SIM_DOMAIN_H
#define VHCA_TESTS_SIM_LIBVIRT_SIM_DOMAIN_H
/*
 * What every false libvirt shows of its domains, and says of a call that failed. When it does, and
 * what becomes of QEMUs and guests, is the world's own.
 */
#include "agent/state/domain_info.h"

#define SIM_DOMAIN_HOSTDEVS   12 /* at most */
#define SIM_DOMAIN_ROOT_PORTS 4

/* Domain i, "vm<i>", which asks for nothing yet. */
void sim_domain_init(struct vhca_dom_info *info, unsigned int i);
/* Its metadata asks for one more VF. */
void sim_domain_ask(struct vhca_dom_info *info, const char *name, const char *partition);

/* Its live XML, as the agent gets it. */
struct sim_live {
	struct vhca_dom_info info;
	struct vhca_dom_hostdev hostdevs[SIM_DOMAIN_HOSTDEVS];
};

/* Without host devices. */
void sim_live_init(struct sim_live *live, const struct vhca_dom_info *info);
/* One more; name: that of a VF which the agent has attached, "" = somebody else has. */
struct vhca_dom_hostdev *sim_live_add(struct sim_live *live, struct vhca_bdf host,
				      struct vhca_bdf guest, const char *name);

/* The words of agent/libvirt/error.c: whose fault it is decides what comes of a claim. */
int sim_virt_lost(struct vhca_error *err); /* nobody answers */
int sim_virt_gone(struct vhca_error *err); /* there is no such domain */
int sim_virt_failed(struct vhca_error *err, const char *why);

#endif
