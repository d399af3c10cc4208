/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_EXPLAIN_FABRIC_H
#define VHCA_AGENT_EXPLAIN_FABRIC_H
/* The second half of the walk, one check each: the port, the subnet manager, partitions. */
#include "agent/explain/finding.h"

/* Steps "physical port", "SM", "partition" and "P_Key table". */
void explain_port(const struct explain_look *l, struct vhca_finding *f);
void explain_sm(const struct explain_look *l, struct vhca_finding *f);
void explain_partition(const struct explain_look *l, struct vhca_finding *f);
void explain_table(const struct explain_look *l, struct vhca_finding *f);

#endif
