/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_PLAN_H
#define VHCA_AGENT_PLAN_H
#include "conf/conf.h"

/* `vhcad --plan`: prints to stdout what a first start with this configuration would do to this
 * host, and does nothing. Blocking. Returns 0, or a negative errno with err. */
int vhca_plan_print(const struct vhca_conf *conf, const char *sysfs_root, const char *dev_root,
		    struct vhca_error *err);

/* Warns on stderr of what the configuration says of VFs that are not there. */
void vhca_plan_warn(const struct vhca_conf *conf, const char *sysfs_root);

#endif
