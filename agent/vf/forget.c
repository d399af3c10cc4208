/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An adapter that was pulled out leaves its VFs behind, some of them quarantined for good, because
 * nobody can scrub what is not there. Somebody who knows that it does not come back has them
 * forgotten. Should it come back all the same, it is an adapter that was never seen: nothing of it
 * is given away before it is proven clean.
 */
#include <errno.h>
#include <stdlib.h>

#include "agent/vf/request.h"
#include "agent/vf/work.h"

/* What is on its way to the disk. */
struct engine_forget {
	TAILQ_ENTRY(engine_forget) link;
	struct vhca_engine *e;
	struct vhca_hca *hca;
	vhca_waiter_fn fn;
	void *arg;
	unsigned int
		n_vfs; /* that were there when it was begun: none is stepped or claimed meanwhile */
	struct vhca_vf *vfs[];
};

static int check_vf(struct vhca_engine *e, const struct vhca_vf *vf, struct vhca_error *err)
{
	const struct vhca_domain *user = vhca_model_user(&e->model, vf->bdf, NULL);

	if (vf->claim) {
		vhca_error_set(err, VHCA_ERR_CONFLICT, "hca_claimed", EBUSY,
			       "%s is claimed for domain %s", VHCA_BDF_STR(vf->bdf),
			       vf->claim->domain_name);
		vhca_error_hint(err, "vhcactl detach %s %s", VHCA_UUID_STR(&vf->claim->domain),
				vf->claim->name);
		return -EBUSY;
	}
	if (user)
		return vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_in_use", EBUSY,
				      "domain %s has %s", user->info->name, VHCA_BDF_STR(vf->bdf));
	if (vf->committing || vf->host.effect || vf->virt.effect || vf->adopt || vf->to_hca)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "vf_busy", EAGAIN,
				      "%s is just being changed", VHCA_BDF_STR(vf->bdf));
	return 0;
}

/* On the bus, and on no driver. A card whose flash is being recovered has another ID, too. */
static int refuse_plugged(const struct vhca_hca *hca, struct vhca_error *err)
{
	const char *bdf = VHCA_BDF_STR(hca->facts.bdf);

	if (hca->facts.device && hca->plugged_device && hca->facts.device != hca->plugged_device) {
		vhca_error_set(err, VHCA_ERR_CONFLICT, "hca_present", EBUSY,
			       "another Mellanox device is in the slot of adapter %s: it has PCI "
			       "ID %04x, the adapter %04x",
			       bdf, hca->plugged_device, hca->facts.device);
		vhca_error_hint(err,
				"if that is another card, take it off the bus meanwhile "
				"(echo 1 > /sys/bus/pci/devices/%s/remove), forget, and have the "
				"bus read again (echo 1 > /sys/bus/pci/rescan)",
				bdf);
		return -EBUSY;
	}
	vhca_error_set(err, VHCA_ERR_CONFLICT, "hca_present", EBUSY,
		       "adapter %s is there, but not on mlx4_core or mlx5_core", bdf);
	vhca_error_hint(err,
			"load its driver; or take it out of the host, or off the bus "
			"(echo 1 > /sys/bus/pci/devices/%s/remove), as any other card that is in "
			"its slot now (lspci -s %s)",
			bdf, bdf);
	return -EBUSY;
}

static int check_absent(const struct vhca_engine *e, const struct vhca_hca *hca,
			struct vhca_error *err)
{
	if (!e->inventory_seen)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "adapter_busy", EAGAIN,
				      "the PCI inventory has not been read yet");
	if (!hca->present)
		return hca->plugged ? refuse_plugged(hca, err) : 0;
	vhca_error_set(err, VHCA_ERR_CONFLICT, "hca_present", EBUSY, "adapter %s is there",
		       VHCA_BDF_STR(hca->facts.bdf));
	vhca_error_hint(err, "only what was pulled out is forgotten; manage = no in its [hca] "
			     "leaves it to others");
	return -EBUSY;
}

static int check_forget(struct vhca_engine *e, const struct vhca_hca *hca, struct vhca_error *err)
{
	const struct vhca_vf *vf;
	int r = vhca_engine_check_disk(e, err);

	if (r == 0)
		r = check_absent(e, hca, err);
	TAILQ_FOREACH (vf, &hca->vfs, link)
		if (r == 0)
			r = check_vf(e, vf, err);
	/* A VF that is to be looked for at the adapter would look at freed memory. */
	VHCA_FOREACH_VF (vf, &e->model)
		if (r == 0 && vf->to_hca == hca)
			r = vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "vf_busy", EAGAIN,
					   "a VF is just moved to %s",
					   VHCA_BDF_STR(hca->facts.bdf));
	return r;
}

static void drop(struct vhca_engine *e, struct vhca_hca *hca)
{
	struct vhca_vf *vf;

	TAILQ_FOREACH (vf, &hca->vfs, link)
		if (vf->dirty)
			STAILQ_REMOVE(&e->dirty, vf, vhca_vf, dirty_link);
	vhca_events_add(e->args.events, "vf", VHCA_BDF_STR(hca->facts.bdf),
			"the adapter and its VFs are forgotten by request");
	vhca_model_drop_hca(&e->model, hca);
	e->args.effects.vfs_changed(e->args.effects.ctx);
}

static void answer(struct engine_forget *f, const struct vhca_error *err)
{
	TAILQ_REMOVE(&f->e->forgets, f, link);
	f->fn(f->arg, NULL, err->kind ? err : NULL);
	free(f);
}

void engine_drop_forgets(struct vhca_engine *e, const struct vhca_error *err)
{
	while (TAILQ_FIRST(&e->forgets))
		answer(TAILQ_FIRST(&e->forgets), err);
}

/*
 * It may have come back meanwhile, and stays then: its rows are written anew when its VFs change.
 */
static void on_forgotten(void *arg, int rc)
{
	struct engine_forget *f = arg;
	struct vhca_error err = VHCA_ERROR_INIT;

	for (unsigned int i = 0; i < f->n_vfs; i++)
		f->vfs[i]->committing--;
	if (rc < 0)
		(void)vhca_error_set(&err, VHCA_ERR_EXHAUSTED, "state_disk", -rc,
				     "the state database cannot be written");
	else if (check_forget(f->e, f->hca, &err) == 0)
		drop(f->e, f->hca);
	engine_mark_all(f->e);
	answer(f, &err);
}

static struct engine_forget *new_forget(struct vhca_engine *e, struct vhca_hca *hca)
{
	struct engine_forget *f;
	struct vhca_vf *vf;
	size_t n = 0;

	TAILQ_FOREACH (vf, &hca->vfs, link)
		n++;
	f = calloc(1, sizeof(*f) + n * sizeof(f->vfs[0]));
	if (!f)
		return NULL;
	f->e = e;
	f->hca = hca;
	TAILQ_FOREACH (vf, &hca->vfs, link)
		f->vfs[f->n_vfs++] = vf;
	TAILQ_INSERT_TAIL(&e->forgets, f, link);
	return f;
}

void vhca_engine_forget(struct vhca_engine *e, struct vhca_hca *hca, vhca_waiter_fn fn, void *arg)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	int r = check_forget(e, hca, &err);
	struct engine_forget *f;
	struct vhca_txn *txn;

	/* Its VFs are busy then, and it may have none. */
	TAILQ_FOREACH (f, &e->forgets, link)
		if (r == 0 && f->hca == hca)
			r = vhca_error_set(&err, VHCA_ERR_UNAVAILABLE, "vf_busy", EAGAIN,
					   "%s is just being forgotten",
					   VHCA_BDF_STR(hca->facts.bdf));
	f = r < 0 ? NULL : new_forget(e, hca);
	if (r == 0 && !f)
		vhca_error_no_memory(&err, "forget");
	if (!f) {
		engine_answer_later(e, fn, arg, &err);
		return;
	}
	f->fn = fn;
	f->arg = arg;
	txn = vhca_txn_new(e->args.store);
	for (unsigned int i = 0; i < f->n_vfs; i++) {
		vhca_journal_forget_vf(txn, f->vfs[i]->bdf);
		f->vfs[i]->committing++;
	}
	vhca_txn_commit(txn, on_forgotten, f);
}
