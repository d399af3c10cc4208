/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SRIOV_VF_STATE_H
#define VHCA_SRIOV_VF_STATE_H
/*
 * Life of a VF. The state is journaled before the effect that belongs to it starts, so after a
 * crash the effect of the stored state is simply done again (all effects are idempotent and read
 * back what they wrote).
 *
 *   state        means                                   effect in this state            leaves to
 *   unmanaged    seen, not ours: in use at first start,  none, ever                      preparing (its user has gone) |
 *                or the PF is not configured                                             attached (adopted as it stands)
 *   preparing    being taken over                        bind to vfio-pci, scrub         free | quarantined | unmanaged (in use) |
 *                                                                                        claimed (its claim migrates)
 *   free         on vfio-pci, scrubbed, proven           none                            claimed | preparing (driver lost) |
 *                                                                                        unmanaged (used without a claim) |
 *                                                                                        quarantined (has failed its claims)
 *   claimed      belongs to a claim; identity unproven   membership, GUID, P_Key map     programmed | scrubbing | quarantined (seized)
 *   programmed   identity written, read back             hot-plug (claims that attach)   attached | scrubbing | quarantined (seized)
 *   attached     in the live XML of its domain           await granted, follow P_Keys    detaching | scrubbing (domain gone) |
 *                                                                                        quarantined (seized)
 *   detaching    unplug requested                        unplug by alias, await removal  scrubbing | attached (given up) |
 *                                                                                        quarantined (seized)
 *   scrubbing    not in any live XML, group closed       map none, GUID withdrawn, proof free | quarantined | claimed (its claim
 *                                                                                        migrates, or the guest gets it back) |
 *                                                                                        detaching (the guest got it)
 *   quarantined  a proof failed, it failed too often, or scrub again, backing off; while preparing | detaching (its own guest
 *                is in a guest that it was not given to; a foreign guest has it:      has it)
 *                never given away                        taken its identity, under it
 *
 * Seized: the live XML of another domain than the claim's shows the VF. libvirt plugs whatever a
 * host administrator tells it to.
 */
#include <stdbool.h>

enum vhca_vf_state {
	VHCA_VF_UNMANAGED,
	VHCA_VF_PREPARING,
	VHCA_VF_FREE,
	VHCA_VF_CLAIMED,
	VHCA_VF_PROGRAMMED,
	VHCA_VF_ATTACHED,
	VHCA_VF_DETACHING,
	VHCA_VF_SCRUBBING,
	VHCA_VF_QUARANTINED,
	VHCA_VF_STATE_COUNT
};

/* "unmanaged", "preparing", ...; parsing gives -EINVAL for another word. */
const char *vhca_vf_state_to_string(enum vhca_vf_state state);
int vhca_vf_state_parse(const char *word, enum vhca_vf_state *ret);
/* True if the table above has an arrow from `from` to `to`. */
bool vhca_vf_state_may(enum vhca_vf_state from, enum vhca_vf_state to);

#endif
