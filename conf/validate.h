/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CONF_VALIDATE_H
#define VHCA_CONF_VALIDATE_H
/* Rules that need more than one key. Inside conf/ only. */
#include "conf/conf.h"

/* Checks a configuration whose keys are set; the message starts with "[section] key". */
int vhca_conf_validate(const struct vhca_conf *conf, struct vhca_error *err);

#endif
