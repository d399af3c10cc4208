/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/osm/idle.h"

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "opensm/lids/dynamic.h"
#include "opensm/osm/dynamic.h"
#include "opensm/osm/lid_file.h"
#include "opensm/osm/lock.h"
#include "opensm/osm/vports.h"

#include <errno.h>
#include <stdlib.h>

/* before its siblings: the layout of their structures depends on it */
#include <opensm/osm_config.h>

#include <opensm/osm_db.h>
#include <opensm/osm_db_pack.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_port.h>

/* ---- what is there ---- */

/* False of what is not ours to judge: a dynamic LID, or a range of LIDs (LMC). */
static bool read_line(const struct vhca_osm_idle *idle, uint64_t guid,
		      struct vhca_osm_lid_line *ret)
{
	const osm_subn_t *subn = &idle->osm->subn;
	const osm_port_t *port = osm_get_port_by_guid(subn, cl_hton64(guid)), *has;
	const struct vhca_osm_dynamic_lids *dynamic = idle->dynamic;
	uint16_t low = 0, high = 0;

	if (vhca_osm_dynamic_lids_find(dynamic, guid) ||
	    (dynamic->leaving && vhca_osm_dynamic_lids_find(dynamic->leaving, guid)) ||
	    osm_db_guid2lid_get(idle->osm->sm.lid_mgr.p_g2l, guid, &low, &high) != 0 || low != high)
		return false;
	has = osm_get_port_by_lid_ho(subn, low);
	*ret = (struct vhca_osm_lid_line){.guid = guid,
					  .lid = low,
					  .here = port != NULL,
					  .taken = has && has != port,
					  .pf_guid = port ? vhca_osm_vport_pf(port) : 0};
	return true;
}

/* The caller frees the lines. The lock is held. */
static int read_lines(struct vhca_osm_idle *idle, struct vhca_osm_lid_line **ret, size_t *ret_n)
{
	osm_db_domain_t *guid2lid = idle->osm->sm.lid_mgr.p_g2l;
	struct vhca_osm_lid_line *lines;
	cl_qlist_t guids;
	cl_list_item_t *item;
	size_t n = 0;

	cl_qlist_init(&guids);
	if (osm_db_guid2lid_guids(guid2lid, &guids) != 0)
		return -ENOMEM;
	idle->counts.lines = cl_qlist_count(&guids);
	idle->counts.free = vhca_osm_free_lids(idle->osm);
	lines = calloc(idle->counts.lines + 1, sizeof(*lines));
	while ((item = cl_qlist_remove_head(&guids)) != cl_qlist_end(&guids)) {
		if (lines)
			n += read_line(idle, ((const osm_db_guid_elem_t *)item)->guid, &lines[n]);
		free(item);
	}
	if (!lines)
		return -ENOMEM;
	*ret = lines;
	*ret_n = n;
	return 0;
}

int vhca_osm_idle_look(struct vhca_osm_idle *idle, uint64_t now)
{
	VHCA_AUTO_FREE struct vhca_osm_lid_line *lines = NULL;
	size_t n = 0;
	int r;

	vhca_osm_lock_shared(idle->osm);
	r = read_lines(idle, &lines, &n);
	vhca_osm_unlock(idle->osm);
	if (r < 0)
		return r;
	return vhca_osm_idle_lids_look(&idle->lids, lines, n, &idle->claims,
				       idle->errors ? 0 : now);
}

/* ---- giving back ---- */

/* With the lock held exclusively, of each row that is due. */
typedef void (*row_fn)(struct vhca_osm_idle *idle, const struct vhca_osm_idle_lid *row);

static size_t each_due(struct vhca_osm_idle *idle, uint64_t grace, uint64_t now, row_fn fn)
{
	size_t n = 0;

	vhca_osm_lock_exclusive(idle->osm);
	for (size_t i = 0; i < idle->lids.n; i++) {
		const struct vhca_osm_idle_lid *row = &idle->lids.rows[i];

		if (!row->since || now - row->since < grace)
			continue;
		fn(idle, row);
		n++;
	}
	vhca_osm_unlock(idle->osm);
	return n;
}

static void take_out(struct vhca_osm_idle *idle, const struct vhca_osm_idle_lid *row)
{
	(void)osm_db_guid2lid_delete(idle->osm->sm.lid_mgr.p_g2l, row->guid);
}

/* Unless a sweep that did not wait for the disk has found the port again, and given it another. */
static void put_back(struct vhca_osm_idle *idle, const struct vhca_osm_idle_lid *row)
{
	osm_db_domain_t *guid2lid = idle->osm->sm.lid_mgr.p_g2l;
	uint16_t low, high;

	if (osm_db_guid2lid_get(guid2lid, row->guid, &low, &high) == 0) {
		if (low != row->lid && !osm_get_port_by_lid_ho(&idle->osm->subn, row->lid))
			idle->osm->sm.lid_mgr.used_lids[row->lid] = 0;
	} else if (osm_db_guid2lid_set(guid2lid, row->guid, row->lid, row->lid) != 0) {
		vhca_log_error("out of memory: LID %u is kept for nobody until OpenSM is restarted",
			       row->lid);
	}
}

/* A sweep that did not wait for the disk has seen it as taken: it has given it to no port. */
static void let_go(struct vhca_osm_idle *idle, const struct vhca_osm_idle_lid *row)
{
	idle->osm->sm.lid_mgr.used_lids[row->lid] = 0;
	idle->counts.lines--;
	idle->counts.free++;
	idle->counts.freed++;
	vhca_log_info("LID %u is free: %s has gone", row->lid, VHCA_GUID_STR(row->guid));
}

int vhca_osm_idle_give_back(struct vhca_osm_idle *idle, uint64_t grace, uint64_t now)
{
	int r;

	if (now < vhca_osm_idle_lids_deadline(&idle->lids, grace))
		return 0;
	if (!vhca_osm_gate_hold(idle->gate))
		return -EAGAIN;
	r = vhca_osm_idle_look(idle, now);
	if (r == 0 && each_due(idle, grace, now, take_out) > 0) {
		r = vhca_osm_lid_file_save(idle->osm);
		(void)each_due(idle, grace, now, r < 0 ? put_back : let_go);
	}
	if (r == 0) /* forgets what has gone */
		r = vhca_osm_idle_look(idle, now);
	vhca_osm_gate_release(idle->gate);
	return r;
}

void vhca_osm_idle_done(struct vhca_osm_idle *idle)
{
	vhca_osm_idle_lids_done(&idle->lids);
}
