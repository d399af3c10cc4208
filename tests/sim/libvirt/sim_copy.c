/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/libvirt/sim_copy.h"

#include "tests/sim/libvirt/sim_domain.h"

void sim_copy_mark(struct world *w, unsigned int i, const struct vhca_uuid *id)
{
	struct vhca_dom_info *info = &w->domains[i].info;

	info->has_away = id != NULL;
	if (id)
		info->away = *id;
	world_look(w, i);
}

int sim_copy_ask(struct vhca_migrations *ms, const struct vhca_dom_info *info,
		 struct vhca_error *err)
{
	return ms ? vhca_migrations_begin(ms, &info->away, &info->uuid, err)
		  : sim_virt_failed(err, "the destination's hook refused: the agent is down");
}

void sim_copy_comes(const struct world *from, struct world *to, unsigned int i)
{
	to->domains[i].info = from->domains[i].info;
	world_incoming(to, i, true);
}

/* ---- a copy, page by page ---- */

/* A page by chance: xorshift64 of G. Marsaglia. */
static unsigned int write_one(uint64_t *seed, unsigned int pages)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (unsigned int)(*seed % pages);
}

/* How many pages so many writes dirty that are clean now. */
static unsigned int write_for(const struct sim_guest *guest, uint64_t *seed, uint64_t writes)
{
	bool dirty[SIM_PAGES_MAX] = {false};
	unsigned int n = 0;

	for (uint64_t i = 0; i < writes; i++) {
		unsigned int page = write_one(seed, guest->pages);

		n += !dirty[page];
		dirty[page] = true;
	}
	return n;
}

unsigned int sim_dirty_rate(const struct sim_guest *guest)
{
	uint64_t seed = guest->seed;

	return write_for(guest, &seed, guest->written_in_s);
}

uint64_t sim_copy_ms(const struct sim_guest *guest)
{
	uint64_t seed = ~guest->seed, ms = 0;
	unsigned int left = guest->pages, rest = guest->sent_in_s * 3 / 10;

	while (left > rest) {
		uint64_t pass_ms = UINT64_C(1000) * left / guest->sent_in_s;

		ms += pass_ms;
		left = write_for(guest, &seed, guest->written_in_s * pass_ms / 1000);
	}
	return ms + UINT64_C(1000) * left / guest->sent_in_s;
}
