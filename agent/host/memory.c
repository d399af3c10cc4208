/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/host/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/role.h"
#include "common/base/text.h"

#define MEMINFO	       "/proc/meminfo"
#define MEMINFO_MAX    65536
#define STRAND_WAIT_MS 1000 /* at shutdown, for a read that is running */

struct vhca_host_memory {
	struct vhca_strand *strand;
	struct vhca_sysfs *sys;
	const char *meminfo;
};

/* ---- reading ---- */

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)
#define AUTO_DIR VHCA_CLEANUP(vhca_sysfs_closedirp)

/* "\nMemAvailable:   32561328 kB\n" */
static int find_kib(const char *text, const char *key, uint64_t *ret)
{
	const char *p = strstr(text, key);
	char number[24];
	size_t n;

	if (!p)
		return -ENODATA;
	p += strlen(key);
	p += strspn(p, " ");
	n = strcspn(p, " \n");
	if (n >= sizeof(number) || strncmp(p + n, " kB", 3) != 0)
		return -EBADMSG;
	memcpy(number, p, n);
	number[n] = '\0';
	return vhca_parse_u64(number, 10, UINT64_MAX / 1024, ret);
}

static int read_meminfo(const char *path, const char *key, uint64_t *ret, struct vhca_error *err)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = vhca_read_file(path, MEMINFO_MAX, &text, &len);

	if (r == 0)
		r = find_kib(text, key, ret);
	return r < 0 ? vhca_error_set(err, VHCA_ERR_DEVICE, "meminfo", -r, "%s: %s", path, key + 1)
		     : 0;
}

/* The pages of the pool that are nobody's. */
static int read_pool(struct vhca_sysfs_dir *dir, uint64_t *ret)
{
	static const char *const names[] = {"free_hugepages", "nr_overcommit_hugepages",
					    "resv_hugepages", "surplus_hugepages"};
	uint64_t n[VHCA_ARRAY_SIZE(names)], have, taken;

	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(names); i++) {
		int r = vhca_sysfs_read_u64(dir, names[i], 10, UINT32_MAX, &n[i]);

		if (r < 0)
			return r;
	}
	have = n[0] + n[1];
	taken = n[2] + n[3];
	*ret = have > taken ? have - taken : 0;
	return 0;
}

static int read_huge(struct vhca_sysfs *sys, uint64_t page_kib, struct vhca_memory_room *ret,
		     struct vhca_error *err)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	uint64_t pages = 0;
	char path[80];
	int r;

	(void)snprintf(path, sizeof(path), "kernel/mm/hugepages/hugepages-%" PRIu64 "kB", page_kib);
	r = vhca_sysfs_opendir(sys, path, &dir);
	if (r == 0)
		r = read_pool(dir, &pages);
	if (r < 0 && r != -ENOENT)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "hugepages", -r, "%s", path);
	*ret = (struct vhca_memory_room){
		.kib = pages * page_kib, .page_kib = page_kib, .no_such_pages = r < 0};
	return 0;
}

int vhca_host_memory_read(struct vhca_sysfs *sys, const char *meminfo,
			  const struct vhca_guest_memory *guest, struct vhca_memory_room *ret,
			  struct vhca_error *err)
{
	uint64_t page_kib = guest->page_kib;
	int r;

	vhca_may_block("memory of the host");
	if (guest->pages != VHCA_PAGES_HUGE) {
		*ret = (struct vhca_memory_room){0};
		return read_meminfo(meminfo, "\nMemAvailable:", &ret->kib, err);
	}
	r = page_kib ? 0 : read_meminfo(meminfo, "\nHugepagesize:", &page_kib, err);
	return r < 0 ? r : read_huge(sys, page_kib, ret, err);
}

/* ---- on a worker ---- */

struct ask {
	struct vhca_host_memory *hm;
	struct vhca_guest_memory guest;
	vhca_host_memory_fn fn;
	void *arg;
	int rc;
	struct vhca_memory_room room;
	struct vhca_error err;
};

static void ask_work(void *arg)
{
	struct ask *ask = arg;

	ask->rc = vhca_host_memory_read(ask->hm->sys, ask->hm->meminfo, &ask->guest, &ask->room,
					&ask->err);
}

static void ask_done(void *arg)
{
	VHCA_AUTO_FREE struct ask *ask = arg;

	ask->fn(ask->arg, &ask->room, ask->rc < 0 ? &ask->err : NULL);
}

int vhca_host_memory_ask(struct vhca_host_memory *hm, const struct vhca_guest_memory *guest,
			 vhca_host_memory_fn fn, void *arg)
{
	struct ask *ask = calloc(1, sizeof(*ask));
	int r;

	if (!ask)
		return -ENOMEM;
	*ask = (struct ask){.hm = hm, .guest = *guest, .fn = fn, .arg = arg};
	/* What is said if work() never runs. */
	ask->rc = vhca_error_set(&ask->err, VHCA_ERR_UNAVAILABLE, "shutting_down", 0,
				 "the agent is stopping; ask again");
	r = vhca_strand_submit(hm->strand, ask_work, ask_done, ask);
	if (r < 0)
		free(ask);
	return r;
}

/* ---- life ---- */

int vhca_host_memory_new(struct vhca_loop *loop, struct vhca_sysfs *sys, const char *meminfo,
			 struct vhca_host_memory **ret)
{
	struct vhca_host_memory *hm = calloc(1, sizeof(*hm));
	int r;

	if (!hm)
		return -ENOMEM;
	hm->sys = sys;
	hm->meminfo = meminfo ? meminfo : MEMINFO;
	r = vhca_strand_new(loop, "memory", &hm->strand);
	if (r < 0) {
		free(hm);
		return r;
	}
	*ret = hm;
	return 0;
}

struct vhca_host_memory *vhca_host_memory_free(struct vhca_host_memory *hm)
{
	/* A read that hangs still looks at its owner: leave it that. */
	if (hm && vhca_strand_free(hm->strand, STRAND_WAIT_MS))
		free(hm);
	return NULL;
}
