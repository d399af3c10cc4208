/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What mlx4's driver asks of the SM for a VF: SA Set and Delete of GUIDInfoRecord
 * (drivers/infiniband/hw/mlx4/alias_GUID.c). A write to admin_guids asks at once, be the value new
 * or not.
 */
#include <errno.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "pkey/identity.h"
#include "pkey/mlx4_int.h"

/* An SM that is there answers in milliseconds. */
#define LOOKS	       20
#define PAUSE_MS       25
#define WITHDRAW_TRIES 3

#define LOCALLY_ADMINISTERED UINT64_C(0x0200000000000000)
#define VF_SHIFT	     24 /* of a card's own GUIDs this byte is 0 */

#define AUTO_FN VHCA_CLEANUP(vhca_mlx4_close)

/* 1: the SM has granted what the VF asks for, which is then *ret. */
static int is_granted(const struct vhca_identity_at *at, struct vhca_mlx4_fn *fn, uint64_t *ret)
{
	uint64_t granted = 0;
	int r = vhca_mlx4_read_admin_guid(fn, at->port, ret);

	if (r == 0)
		r = vhca_mlx4_read_granted(fn, at->port, &granted);
	if (r < 0)
		return r;
	return vhca_guid_is_valid(*ret) && granted == *ret;
}

/* Asks for this GUID and waits a moment. 0: not granted yet. */
static int ask(const struct vhca_identity_at *at, struct vhca_mlx4_fn *fn, uint64_t guid,
	       uint64_t *ret)
{
	static const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	int r = vhca_mlx4_write_admin_guid(fn, at->port, guid);

	for (unsigned int i = 0; r == 0 && i < LOOKS; i++) {
		r = is_granted(at, fn, ret);
		if (r == 0)
			(void)nanosleep(&pause, NULL);
	}
	return r;
}

/* What was asked for on behalf of nobody must not stay: the VF is free. Only the read-back says
 * so. */
static int withdraw(const struct vhca_identity_at *at, struct vhca_mlx4_fn *fn)
{
	uint64_t shown = 0;
	int r = -EIO;

	for (unsigned int i = 0; r < 0 && i < WITHDRAW_TRIES; i++) {
		r = vhca_mlx4_write_admin_guid(fn, at->port, VHCA_GUID_ALL1);
		if (r == 0)
			r = vhca_mlx4_read_admin_guid(fn, at->port, &shown);
		if (r == 0 && shown != VHCA_GUID_ALL1)
			r = -EIO;
	}
	return r;
}

/*
 * The VF asks for nothing, and the port holds a GUID for it. The SM has met the port anew since (it
 * was restarted, or the cable was out) and does not know what it holds; so it has nothing to delete
 * (OpenSM, osm_sa_guidinfo_record.c: del_guidinfo), and the driver takes that for done. What it
 * sets itself it knows: a GUID of this VF alone takes the place for a moment. It is withdrawn in
 * any case.
 */
static int displace(const struct vhca_identity_at *at, struct vhca_mlx4_fn *fn)
{
	uint64_t own = 0, shown;
	int r = vhca_mlx4_read_port_guid(fn, at->port, &own);
	int withdrawn;

	if (r < 0)
		return r;
	own ^= LOCALLY_ADMINISTERED | (uint64_t)at->vf_index << VF_SHIFT;
	r = ask(at, fn, own, &shown);
	withdrawn = withdraw(at, fn);
	return r < 0 ? r : withdrawn;
}

int vhca_mlx4_kick(const struct vhca_identity_at *at, struct vhca_error *err)
{
	AUTO_FN struct vhca_mlx4_fn fn = {0};
	uint64_t requested = 0, granted = 0;
	int r = vhca_mlx4_open_at(at, true, &fn, err);

	if (r < 0)
		return r;
	r = vhca_mlx4_read_admin_guid(&fn, at->port, &requested);
	if (r == 0)
		r = vhca_mlx4_read_granted(&fn, at->port, &granted);
	if (r < 0)
		return vhca_mlx4_fail(at, at->port, r, err, "read GUIDs");
	if (requested == VHCA_GUID_ALL1)
		r = granted ? displace(at, &fn) : 0;
	else if (!vhca_guid_is_valid(requested))
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "no_guid_requested", EINVAL,
				      "%s VF %u port %u: no GUID is requested",
				      VHCA_BDF_STR(at->pf), at->vf_index, at->port);
	else if (granted != requested)
		r = vhca_mlx4_write_admin_guid(&fn, at->port, requested);
	return r < 0 ? vhca_mlx4_fail(at, at->port, r, err, "write admin_guids") : 0;
}

/*
 * alias_GUID.c:aliasguid_query_handler stores what the SM has answered to a request for 0 as if
 * somebody had asked for it. So that is what admin_guids shows from then on, and what is asked for
 * when the guest's driver starts.
 */
int vhca_mlx4_choose(const struct vhca_identity_at *at, uint64_t *ret, struct vhca_error *err)
{
	AUTO_FN struct vhca_mlx4_fn fn = {0};
	int r = vhca_mlx4_open_at(at, true, &fn, err);

	if (r < 0)
		return r;
	r = is_granted(at, &fn, ret);
	if (r == 0)
		r = ask(at, &fn, 0, ret);
	if (r < 0)
		return vhca_mlx4_fail(at, at->port, r, err, "let the SM choose a GUID");
	if (r == 1)
		return 0;
	(void)vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "no_guid_from_sm", EAGAIN,
			     "%s VF %u port %u: the SM has not chosen a GUID yet",
			     VHCA_BDF_STR(at->pf), at->vf_index, at->port);
	vhca_error_hint(err, "is the port ACTIVE, and does the SM assign alias GUIDs? see its log");
	return -EAGAIN;
}
