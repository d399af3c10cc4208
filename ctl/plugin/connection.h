/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_PLUGIN_CONNECTION_H
#define VHCA_CTL_PLUGIN_CONNECTION_H
/* Where the plugin is, and who asks it: from the options, else from its own vhcasm.conf. */
#include "config.h"
#include "ctl/cli/ctl.h"

#define VHCA_PLUGIN_CONF VHCA_SYSCONFDIR "/vhcad/vhcasm.conf"

/* Fills ret->server. Reads files, asks nobody. Errors: usage, bad_config, credentials. */
int vhca_plugin_connect(struct vhca_ctl *ret, struct vhca_error *err);
/* Wipes the secrets. */
void vhca_plugin_disconnect(struct vhca_ctl *ctl);

#endif
