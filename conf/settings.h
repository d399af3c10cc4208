/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CONF_SETTINGS_H
#define VHCA_CONF_SETTINGS_H
/* The configuration as text again: what is in effect, whatever file has said it. */
#include "conf/conf.h"

struct vhca_conf_setting {
	const char *section; /* "sm", "hca 0000:03:00.0" */
	const char *key;
	/* As a file says it. */
	const char *value;
	const char *usual; /* what holds where no file says anything; NULL: there is nothing */
};

/*
 * Each key of each section that there is, section by section; what fn gets is borrowed. no_memory.
 */
int vhca_conf_each_setting(const struct vhca_conf *conf,
			   void (*fn)(void *ctx, const struct vhca_conf_setting *setting),
			   void *ctx, struct vhca_error *err);

#endif
