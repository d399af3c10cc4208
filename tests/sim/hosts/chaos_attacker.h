/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOSTS_CHAOS_ATTACKER_H
#define VHCA_TESTS_SIM_HOSTS_CHAOS_ATTACKER_H
/* One of the hosts is an attacker's: chaos_attacker.c. What it says, the ledger does not hear. */
#include "tests/sim/hosts/chaos.h"

/* takes: it also binds others' vGUIDs to its own port (0014: open until there are tickets). */
void chaos_attacker_begin(struct chaos *c, unsigned int host, uint64_t seed, bool takes);
void chaos_attacker_end(struct chaos *c);
/* Something is said on the wire. */
void chaos_overhear(struct chaos *c, unsigned int from, unsigned int to, const char *method,
		    const char *path, struct json_object *body);
/* Of all that the master has of other nodes: bindings, keys of their ports, LIDs. */
uint64_t chaos_sum_of_others(struct chaos *c);
void chaos_check_others(struct chaos *c, const char *path, uint64_t before);
/* An agent has answered to what was forged for that migration. */
void chaos_check_forged(struct chaos *c, unsigned int to, const char *id, unsigned int status);
/* chaos_net.c: it is sent as the attacker's host; the body is given away. */
void chaos_net_forge(struct chaos *c, const struct chaos_heard *forged);

#endif
