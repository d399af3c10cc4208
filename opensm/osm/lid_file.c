/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/lid_file.h"

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "opensm/lids/gate.h"
#include "opensm/osm/dynamic.h"
#include "opensm/osm/lids.h"
#include "opensm/osm/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <opensm/osm_db.h>
#include <opensm/osm_db_pack.h>
#include <opensm/osm_opensm.h>

#define LEFT_S	  600
#define LINE_SIZE 64 /* more than a record of OpenSM's has */
#define FILE_MAX \
	(64 << 20) /* of LIDs there are fewer than 49152, of GUIDs that once had one more */

/* OpenSM's own rule (osm_db_init()). */
static int path_of(const char *name, char ret[static PATH_MAX])
{
	const char *dir = getenv("OSM_CACHE_DIR");
	int n;

	if (!dir || !dir[0])
		dir = OSM_DEFAULT_CACHE_DIR;
	n = snprintf(ret, PATH_MAX, "%s/%s", dir, name);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* ---- what is in memory ---- */

/* Sorted records, each of one size: a text that is searched as it is written. */
struct records {
	char (*line)[LINE_SIZE];
	size_t n;
};

static void records_done(struct records *r)
{
	free(r->line);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int collect_locked(const struct osm_opensm *osm, struct records *ret)
{
	osm_db_domain_t *guid2lid = osm->sm.lid_mgr.p_g2l;
	cl_qlist_t guids;
	cl_list_item_t *item;

	cl_qlist_init(&guids);
	if (osm_db_guid2lid_guids(guid2lid, &guids) != 0)
		return -ENOMEM;
	ret->line = calloc(cl_qlist_count(&guids) + 1, sizeof(*ret->line));
	while ((item = cl_qlist_remove_head(&guids)) != cl_qlist_end(&guids)) {
		uint64_t guid = ((const osm_db_guid_elem_t *)item)->guid;
		uint16_t low = 0, high = 0;

		if (ret->line && osm_db_guid2lid_get(guid2lid, guid, &low, &high) == 0)
			(void)snprintf(ret->line[ret->n++], LINE_SIZE,
				       "0x%016" PRIx64 " 0x%04x 0x%04x\n\n", guid, low, high);
		free(item);
	}
	if (!ret->line)
		return -ENOMEM;
	qsort(ret->line, ret->n, sizeof(*ret->line), by_text);
	return 0;
}

/* A sweep that has begun meanwhile frees the texts of LIDs that it changes. */
static int collect(struct osm_opensm *osm, struct records *ret)
{
	int rc;

	vhca_osm_lock_shared(osm);
	rc = collect_locked(osm, ret);
	vhca_osm_unlock(osm);
	return rc;
}

/* ---- the file; what waits for the disk is done by its thread ---- */

struct second_name {
	const char *path;
	/* Of the file that gets the second name, by the name that it has then. */
	bool (*is_whole)(struct second_name *n, const char *name);
	const struct records *records;
	size_t size; /* as it was written */
	size_t has;  /* of the records */
	bool whole, named;
	struct stat at;
};

static int second_of(const char *end, char ret[static PATH_MAX])
{
	char name[sizeof("guid2lid.vhcasm.new")];

	(void)snprintf(name, sizeof(name), "guid2lid.vhcasm%s", end);
	return path_of(name, ret);
}

/*
 * First of all it gets a name that OpenSM does not touch: by its own one OpenSM may put another
 * file there at any time, and an empty one on a full disk. Needs no room for data.
 */
static int give_second_name(void *arg)
{
	struct second_name *n = arg;
	char tmp[PATH_MAX], second[PATH_MAX];
	bool named = second_of(".new", tmp) == 0 && second_of("", second) == 0;

	if (named)
		(void)unlink(tmp); /* what a killed process has left */
	named = named && link(n->path, tmp) == 0;
	n->whole = n->is_whole(n, named ? tmp : n->path);
	n->named = named && n->whole && rename(tmp, second) == 0;
	if (named)
		(void)unlink(tmp); /* where both were one file, rename() has left it */
	return n->whole && !n->named ? -EIO : 0;
}

static void keep_second_name(struct second_name *n)
{
	if (vhca_run_at_disk(give_second_name, n) < 0)
		vhca_log_warning("%s has no second name; a full disk can empty it", n->path);
}

static bool has_size(struct second_name *n, const char *name)
{
	return stat(name, &n->at) == 0 && (size_t)n->at.st_size == n->size;
}

static int write_records(const struct records *r, const char *path, size_t *ret_size)
{
	VHCA_AUTO_FREE char *text = malloc(r->n * LINE_SIZE + 1);
	size_t len = 0;

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++) {
		size_t n = strlen(r->line[i]);

		(void)memcpy(text + len, r->line[i], n);
		len += n;
	}
	*ret_size = len;
	return vhca_write_file_atomic(path, text, len, 0644); /* as OpenSM does */
}

int vhca_osm_lid_file_save(struct osm_opensm *osm)
{
	VHCA_CLEANUP(records_done) struct records r = {0};
	char path[PATH_MAX];
	struct second_name n = {.path = path, .is_whole = has_size};
	int rc = path_of("guid2lid", path);

	if (rc == 0)
		rc = collect(osm, &r);
	if (rc == 0)
		rc = write_records(&r, path, &n.size);
	if (rc == 0)
		keep_second_name(&n);
	return rc;
}

void vhca_osm_lid_file_begin(void)
{
	char path[PATH_MAX];

	if (path_of("guid2lid", path) == 0)
		(void)vhca_sweep_leftovers(path, LEFT_S);
}

/* ---- after OpenSM has written it ---- */

/* How many of the records this file has, in any order; none if there is no file. */
static size_t count_in(const struct records *r, const char *path)
{
	VHCA_AUTO_FREE char *text = NULL;
	size_t len = 0, n = 0;
	char line[LINE_SIZE], *save = NULL;

	if (vhca_read_file(path, FILE_MAX, &text, &len) < 0)
		return 0;
	for (const char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		(void)snprintf(line, sizeof(line), "%s\n\n", l);
		n += bsearch(line, r->line, r->n, sizeof(*r->line), by_text) != NULL;
	}
	return n;
}

/* OpenSM does not sync it. Where that fails, the older one is the surer. */
static bool has_records(struct second_name *n, const char *name)
{
	VHCA_AUTO_CLOSE int fd = open(name, O_RDONLY | O_CLOEXEC);

	n->has = count_in(n->records, name);
	return n->has == n->records->n && fd >= 0 && fsync(fd) == 0 && fstat(fd, &n->at) == 0;
}

/* If the second name has more of the records. */
static int take_back(void *arg)
{
	const struct second_name *n = arg;
	char tmp[PATH_MAX], second[PATH_MAX];

	if (second_of("", second) < 0 || second_of(".new", tmp) < 0 ||
	    count_in(n->records, second) <= count_in(n->records, n->path)) /* by now */
		return -ENOENT;
	(void)unlink(tmp);
	return link(second, tmp) == 0 && rename(tmp, n->path) == 0 ? 0 : -errno;
}

/* By what OpenSM has in memory now: a sweep may have changed it since it was compared. */
static void repair(struct second_name *n, struct osm_opensm *osm)
{
	int rc = vhca_osm_lid_file_save(osm);

	if (rc == 0)
		return;
	vhca_log_error("%s has %zu of %zu LIDs and cannot be written: %s", n->path, n->has,
		       n->records->n, strerror(-rc));
	if (vhca_run_at_disk(take_back, n) == 0)
		vhca_log_error("%s is again what was written before", n->path);
}

/* 1 = it is the file that was right. */
static int look_at_name(void *arg)
{
	const struct second_name *n = arg;
	struct stat now;

	return stat(n->path, &now) == 0 && vhca_same_file(&now, &n->at);
}

void vhca_osm_lid_file_check(struct vhca_osm_lid_file *f, struct osm_opensm *osm,
			     struct vhca_osm_gate *gate)
{
	VHCA_CLEANUP(records_done) struct records r = {0};
	char path[PATH_MAX];
	struct second_name n = {
		.path = path, .is_whole = has_records, .records = &r, .at = f->seen};

	if (path_of("guid2lid", path) < 0 || vhca_run_at_disk(look_at_name, &n) == 1 ||
	    collect(osm, &r) < 0)
		return;
	keep_second_name(&n);
	if (!n.whole) /* what is taken back may be the file that was right, and lack what is new */
		f->seen = (struct stat){.st_size = 0};
	/* The next fsync() of a file that could not be written says nothing of it any more. */
	if (!n.whole && vhca_osm_gate_hold(gate)) {
		repair(&n, osm);
		vhca_osm_gate_release(gate);
	} else if (n.whole && n.named) {
		f->seen = n.at;
	}
}

/* ---- lines of moves ---- */

struct change {
	bool guid2lid, dynamic;	     /* which files have to be written */
	struct vhca_osm_lid_set out; /* without a line now: free when that is written */
};

/* The lock is held exclusively. */
static int set_pair(struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pair, bool undo,
		    struct change *c)
{
	int r = 0;

	if (pair->vports)
		return 0;
	if (pair->dynamic) {
		c->dynamic = true;
		return vhca_osm_dynamic_set(lids->osm, lids->dynamic, pair, undo, &c->out);
	}
	c->guid2lid = true;
	for (int i = 0; i < 2 && r == 0; i++) {
		uint16_t lid = pair->lid[undo ? i : 1 - i];

		r = osm_db_guid2lid_set(lids->osm->sm.lid_mgr.p_g2l, pair->guid[i], lid, lid);
	}
	return r;
}

/* First of all, what the step before has taken out is free: nobody else has got it meanwhile. */
static int set_pairs(struct vhca_osm_lids *lids, const struct vhca_osm_lid_pair *pairs, size_t n,
		     bool undo, struct change *c)
{
	int r = 0;

	vhca_osm_lock_exclusive(lids->osm);
	vhca_osm_dynamic_free(lids->osm, &c->out);
	*c = (struct change){.dynamic = false};
	for (size_t i = 0; i < n && r == 0; i++)
		r = set_pair(lids, &pairs[i], undo, c);
	vhca_osm_unlock(lids->osm);
	return r;
}

static int save(const struct vhca_osm_lids *lids, const struct change *c)
{
	int r = c->guid2lid ? vhca_osm_lid_file_save(lids->osm) : 0;

	return r == 0 && c->dynamic ? vhca_osm_dynamic_lids_save(lids->dynamic_path, lids->dynamic)
				    : r;
}

int vhca_osm_lid_file_remember(void *ctx, const struct vhca_osm_lid_pair *pairs, size_t n,
			       bool undo)
{
	struct vhca_osm_lids *lids = ctx;
	struct change c = {.dynamic = false};
	int r = set_pairs(lids, pairs, n, undo, &c);

	if (r == 0)
		r = save(lids, &c);
	if (r != 0 && !undo && set_pairs(lids, pairs, n, true, &c) == 0)
		(void)save(lids, &c);
	if (c.dynamic)
		(void)set_pairs(lids, NULL, 0, undo, &c);
	return r == 0 ? 0 : -EIO;
}
