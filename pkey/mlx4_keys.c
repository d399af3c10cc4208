/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pkey/mlx4_keys.h"

static int count(struct vhca_mlx4_keys *k)
{
	return k->n ? 0 : vhca_mlx4_table_size(k->fn, k->port, &k->n);
}

int vhca_mlx4_keys_look(struct vhca_mlx4_keys *k, unsigned int physical)
{
	int r = count(k);

	if (r < 0 || physical >= k->n || k->looked_at[physical])
		return r;
	r = vhca_mlx4_read_pkey(k->fn, k->port, physical, &k->value[physical]);
	k->looked_at[physical] = r == 0;
	return r;
}

int vhca_mlx4_keys_look_again(struct vhca_mlx4_keys *k, unsigned int physical)
{
	if (physical < k->n)
		k->looked_at[physical] = false;
	return vhca_mlx4_keys_look(k, physical);
}

uint16_t vhca_mlx4_keys_at(const struct vhca_mlx4_keys *k, int16_t physical)
{
	if (physical < 0 || (unsigned int)physical >= k->n)
		return 0;
	return k->value[physical];
}

/* What the entry shows, or, if it may be a guess, has shown a moment ago. */
static int look_or_guess(struct vhca_mlx4_keys *k, unsigned int physical, bool guess, uint16_t *ret)
{
	int r;

	if (guess && !k->looked_at[physical] && vhca_mlx4_seen_pkey(k->fn, k->port, physical, ret))
		return 0;
	r = vhca_mlx4_keys_look(k, physical);
	*ret = k->value[physical];
	return r;
}

/*
 * From behind the last hit: SMs fill the table from the front, and a claim asks for its keys in the
 * same order.
 */
static int search(struct vhca_mlx4_keys *k, uint16_t pkey, bool guess, int16_t *ret)
{
	uint16_t shown;

	*ret = VHCA_PKEY_UNMAPPED;
	for (unsigned int looked = 0, i = k->next; looked < k->n; looked++, i++) {
		int r;

		if (i >= k->n)
			i = 0;
		r = look_or_guess(k, i, guess, &shown);
		if (r < 0)
			return r;
		if (shown == pkey) {
			*ret = (int16_t)i;
			k->next = i + 1;
			break;
		}
	}
	return 0;
}

int vhca_mlx4_keys_find(struct vhca_mlx4_keys *k, uint16_t pkey, int16_t *ret)
{
	int r = count(k);

	if (r == 0)
		r = search(k, pkey, true, ret);
	if (r == 0 && *ret == VHCA_PKEY_UNMAPPED)
		r = search(k, pkey, false, ret);
	return r;
}
