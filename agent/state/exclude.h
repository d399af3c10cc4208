/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_EXCLUDE_H
#define VHCA_AGENT_STATE_EXCLUDE_H
/*
 * [hca] exclude and reserve against the adapters of the host: an address that is no VF leaves none
 * alone, and keeps none.
 */
#include "conf/conf.h"
#include "sriov/inventory.h"

/* tell() once for each list with such addresses, with a sentence. False: of an adapter that is
 * not there, or has not made its VFs yet, nothing can be said. */
bool vhca_exclude_check(const struct vhca_conf *conf, const struct vhca_inventory *inv,
			void (*tell)(void *ctx, const char *text), void *ctx);

#endif
