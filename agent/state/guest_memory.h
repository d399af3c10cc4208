/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_GUEST_MEMORY_H
#define VHCA_AGENT_STATE_GUEST_MEMORY_H
/*
 * A guest's memory, as far as its VFs are concerned. VFIO pins all of it when the guest's first VF
 * is plugged in and lets go of it with the last one: the host must have room for all of it, and
 * whatever waits for a VF to come or go waits longer the more there is.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/text.h"

struct json_object;

#define VHCA_NUMA_NODE_MAX 1023 /* Linux: MAX_NUMNODES - 1 */

enum vhca_pages {
	VHCA_PAGES_ORDINARY,
	VHCA_PAGES_HUGE,
	/* of several sizes, by the guest's NUMA nodes: how much of each is not known */
	VHCA_PAGES_MIXED,
	VHCA_PAGES_COUNT
};

struct vhca_guest_memory {
	uint64_t kib;		 /* 0 = not known */
	uint64_t hard_limit_kib; /* of <memtune>; 0 = none */
	enum vhca_pages pages;
	uint64_t page_kib; /* of huge pages; 0 = the host's default size */
	/* By <numatune><memory nodeset=...>, on one NUMA node of the host; several are none. */
	bool is_pinned;
	uint32_t node;
};

/* What a host has for a guest with such pages. */
struct vhca_memory_room {
	uint64_t kib;
	uint64_t page_kib;  /* the size looked at; 0 = ordinary pages */
	bool no_such_pages; /* the host has none of that size */
};

/*
 * The time that this much may take on top of any deadline for a VF to come or go: libvirt gives
 * QEMU the same for the huge pages of a guest that starts.
 */
#define VHCA_MEMORY_MS_PER_GIB 1000
uint64_t vhca_guest_memory_ms(uint64_t kib);

/*
 * libvirt makes <hard_limit>, if there is one, the limit of what QEMU may lock: below the guest's
 * memory no VF can be plugged in. Refused "hard_limit", -ENOMEM.
 */
int vhca_guest_memory_check_limit(const struct vhca_guest_memory *memory, const char *domain,
				  const struct vhca_uuid *uuid, struct vhca_error *err);

/*
 * Whether a guest that is to come fits beside coming_kib, which others need that are expected too.
 * Refused "guest_memory", -ENOMEM, with figures.
 */
int vhca_guest_memory_check_room(const struct vhca_guest_memory *memory, const char *domain,
				 const struct vhca_memory_room *room, uint64_t coming_kib,
				 struct vhca_error *err);

/* {kib, hard_limit_kib, pages, page_kib}; caller puts it. */
struct json_object *vhca_guest_memory_to_json(const struct vhca_guest_memory *memory);
/* NULL: nothing is known. Pages of a kind that a newer agent names count as mixed. */
int vhca_guest_memory_parse(struct json_object *o, struct vhca_guest_memory *ret,
			    struct vhca_error *err);

#endif
