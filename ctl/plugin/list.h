/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_PLUGIN_LIST_H
#define VHCA_CTL_PLUGIN_LIST_H
/* Lists of which one row, or those of one port, may be asked for. */
#include "ctl/cli/api.h"

/*
 * All of the list; with --port those of that port; with an argument the one below its path, as a
 * table of one row.
 */
int vhca_plugin_list(const struct vhca_ctl *ctl, const struct vhca_ctl_list *list,
		     struct vhca_error *err);

#endif
