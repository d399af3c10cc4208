/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/state/guest_memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/text.h"
#include "common/http/json.h"

#define MIB	UINT64_C(1024)
#define GIB	(1024 * MIB)
#define KIB_MAX (UINT64_MAX / 1024)

/*
 * "31 GiB"; MiB where whole GiB would say little. What is there is rounded down, what is needed up.
 */
#define SIZE_LEN 32
static const char *size_text(char buf[static SIZE_LEN], uint64_t kib, bool up)
{
	uint64_t unit = kib < 10 * GIB ? MIB : GIB;

	(void)snprintf(buf, SIZE_LEN, "%" PRIu64 " %s", kib / unit + (up && kib % unit),
		       unit == MIB ? "MiB" : "GiB");
	return buf;
}
#define NEED_STR(kib) size_text((char[SIZE_LEN]){0}, (kib), true)
#define HAVE_STR(kib) size_text((char[SIZE_LEN]){0}, (kib), false)

uint64_t vhca_guest_memory_ms(uint64_t kib)
{
	return (kib / GIB + (kib % GIB != 0)) * VHCA_MEMORY_MS_PER_GIB;
}

int vhca_guest_memory_check_limit(const struct vhca_guest_memory *memory, const char *domain,
				  const struct vhca_uuid *uuid, struct vhca_error *err)
{
	if (!memory->hard_limit_kib || memory->hard_limit_kib >= memory->kib)
		return 0;
	vhca_error_set(
		err, VHCA_ERR_CONFLICT, VHCA_CODE_HARD_LIMIT, 0,
		"domain %s: its <hard_limit> of %s is below its memory of %s, all of which a "
		"VF pins: none can be plugged in",
		domain, HAVE_STR(memory->hard_limit_kib), NEED_STR(memory->kib));
	vhca_error_hint(err,
			"virsh memtune %s --hard-limit -1 --live --config, or a limit of some GiB "
			"more than the memory",
			VHCA_DOMAIN_WORD(domain, uuid));
	return -ENOMEM;
}

int vhca_guest_memory_check_room(const struct vhca_guest_memory *memory, const char *domain,
				 const struct vhca_memory_room *room, uint64_t coming_kib,
				 struct vhca_error *err)
{
	uint64_t free_kib = room->kib > coming_kib ? room->kib - coming_kib : 0;
	char what[64] = "memory", coming[96] = "";

	if (memory->pages == VHCA_PAGES_MIXED || memory->kib <= free_kib)
		return 0;
	if (coming_kib)
		(void)snprintf(coming, sizeof(coming), ", %s of it for guests that are coming",
			       NEED_STR(coming_kib));
	if (room->page_kib)
		(void)snprintf(what, sizeof(what), "huge pages of %" PRIu64 " KiB", room->page_kib);
	vhca_error_set(err, VHCA_ERR_EXHAUSTED, "guest_memory", 0,
		       "guest %s needs %s of %s, all of which its VFs pin; %s available%s", domain,
		       NEED_STR(memory->kib), what,
		       room->no_such_pages ? "none of that size is" : HAVE_STR(room->kib), coming);
	if (room->page_kib)
		vhca_error_hint(err,
				"reserve huge pages there (vm.nr_hugepages), or choose another "
				"host");
	else
		vhca_error_hint(err, "free memory there, or choose another host");
	return -ENOMEM;
}

/* ---- between agents ---- */

static const char *const page_words[VHCA_PAGES_COUNT] = {
	[VHCA_PAGES_ORDINARY] = "ordinary",
	[VHCA_PAGES_HUGE] = "huge",
	[VHCA_PAGES_MIXED] = "mixed",
};

struct json_object *vhca_guest_memory_to_json(const struct vhca_guest_memory *memory)
{
	struct json_object *o = json_object_new_object();

	vhca_json_add_u64(o, "kib", memory->kib);
	vhca_json_add_u64(o, "hard_limit_kib", memory->hard_limit_kib);
	vhca_json_add_string(o, "pages", page_words[memory->pages]);
	vhca_json_add_u64(o, "page_kib", memory->page_kib);
	return o;
}

int vhca_guest_memory_parse(struct json_object *o, struct vhca_guest_memory *ret,
			    struct vhca_error *err)
{
	struct vhca_guest_memory m = {0};
	const char *pages = page_words[VHCA_PAGES_ORDINARY];
	int r, known;

	if (!o)
		return 0;
	r = vhca_json_get_u64(o, "kib", KIB_MAX, &m.kib, err);
	if (r == 0)
		r = vhca_json_opt_u64(o, "hard_limit_kib", KIB_MAX, &m.hard_limit_kib, err);
	if (r == 0)
		r = vhca_json_opt_string(o, "pages", &pages, err);
	if (r == 0)
		r = vhca_json_opt_u64(o, "page_kib", KIB_MAX, &m.page_kib, err);
	if (r < 0) {
		vhca_error_prefix(err, "memory");
		return r;
	}
	known = vhca_word_find(page_words, VHCA_PAGES_COUNT, pages);
	m.pages = known < 0 ? VHCA_PAGES_MIXED : (enum vhca_pages)known;
	*ret = m;
	return 0;
}
