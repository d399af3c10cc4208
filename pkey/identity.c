/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pkey/identity.h"

#include "common/base/cleanup.h"

const char *vhca_link_policy_to_string(enum vhca_link_policy policy)
{
	static const char *const names[] = {"auto", "enable", "down"};

	return (unsigned int)policy < VHCA_ARRAY_SIZE(names) ? names[policy] : "invalid";
}

bool vhca_identity_is_clean(const struct vhca_identity_state *state)
{
	for (unsigned int i = 0; i < state->n_virtual; i++) {
		if (state->map[i] != VHCA_PKEY_UNMAPPED)
			return false;
	}
	return state->requested == VHCA_GUID_ALL1 && !state->other_maps && !state->other_guids &&
	       !state->smi_ports;
}

bool vhca_identity_matches(const struct vhca_identity_state *state,
			   const struct vhca_identity *want, unsigned int *ret_missing)
{
	unsigned int missing = 0;

	if (state->sm_pkeys) {
		*ret_missing = 0; /* who is a member of what is the SM's business */
		return state->requested == want->guid && state->node_guid == want->guid &&
		       (state->policy != VHCA_LINK_DOWN || want->n_pkeys == 0);
	}
	if (state->other_maps || state->other_guids || state->smi_ports ||
	    state->requested != want->guid || want->n_pkeys > state->n_virtual)
		return false;
	for (unsigned int i = 0; i < want->n_pkeys; i++) {
		if (state->map[i] == VHCA_PKEY_UNMAPPED)
			missing++;
		else if (state->value[i] != want->pkeys[i])
			return false;
	}
	for (unsigned int i = want->n_pkeys; i < state->n_virtual; i++) {
		if (state->map[i] != VHCA_PKEY_UNMAPPED)
			return false;
	}
	*ret_missing = missing;
	return true;
}

int vhca_identity_difference(const struct vhca_identity_state *state,
			     const struct vhca_identity *want)
{
	for (unsigned int i = 0; i < state->n_virtual; i++) {
		bool mapped = state->map[i] != VHCA_PKEY_UNMAPPED;

		if (i < want->n_pkeys ? !mapped || state->value[i] != want->pkeys[i] : mapped)
			return (int)i;
	}
	return -1;
}

void vhca_identity_describe(const struct vhca_identity_state *state,
			    const struct vhca_identity *want,
			    char buf[static VHCA_IDENTITY_TEXT_MAX])
{
	int i = vhca_identity_difference(state, want);
	struct vhca_strbuf sb;

	vhca_strbuf_init(&sb, buf, VHCA_IDENTITY_TEXT_MAX);
	if (state->requested != want->guid)
		vhca_strbuf_add(&sb, "GUID %s instead of %s", VHCA_GUID_STR(state->requested),
				VHCA_GUID_STR(want->guid));
	if (i >= 0)
		vhca_strbuf_add(
			&sb, "%sP_Key index %d shows %s instead of %s", sb.len ? ", " : "", i,
			state->map[i] == VHCA_PKEY_UNMAPPED ? "none"
							    : VHCA_PKEY_STR(state->value[i]),
			i < want->n_pkeys ? VHCA_PKEY_STR(want->pkeys[i]) : "none");
	if (state->other_maps || state->other_guids)
		vhca_strbuf_add(&sb, "%s%u P_Keys and %s GUID on the adapter's other port",
				sb.len ? ", " : "", state->other_maps,
				state->other_guids ? "a" : "no");
	if (state->smi_ports)
		vhca_strbuf_add(&sb, "%sit may be an SM", sb.len ? ", " : "");
	if (state->sm_pkeys && state->node_guid != want->guid)
		vhca_strbuf_add(&sb, "%snode GUID %s instead of %s", sb.len ? ", " : "",
				VHCA_GUID_STR(state->node_guid), VHCA_GUID_STR(want->guid));
	if (state->sm_pkeys && state->policy == VHCA_LINK_DOWN && want->n_pkeys > 0)
		vhca_strbuf_add(&sb, "%slink down", sb.len ? ", " : "");
}

bool vhca_identity_is_foreign(const struct vhca_identity_state *state,
			      const struct vhca_identity *want, unsigned int i)
{
	return state->map[i] != VHCA_PKEY_UNMAPPED &&
	       (i >= want->n_pkeys || state->value[i] != want->pkeys[i]);
}

uint16_t vhca_identity_foreign(const struct vhca_identity_state *state,
			       const struct vhca_identity *want)
{
	uint16_t n = state->other_maps;

	for (unsigned int i = 0; i < state->n_virtual; i++)
		n += vhca_identity_is_foreign(state, want, i);
	return n;
}
