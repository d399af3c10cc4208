// SPDX-License-Identifier: GPL-2.0
/*
 * Alias GUIDs: the driver asks the SM's SA for them by GUIDInfoRecord Set and Delete, in blocks of
 * eight, and grants nothing itself. After hw/mlx4/alias_GUID.c, function by function: its back-off
 * (declined 1, 2, 4 ... 60 s; SA failure 1 s; port not ACTIVE 5 s), its order, and its habits.
 */
#include "simhca_ib.h"

#include <linux/completion.h>
#include <linux/slab.h>
#include <rdma/ib_mad.h>

#define SA_TIMEOUT_MS	 1000
#define RETRY_MAX_S	 60
#define RETRY_SA_S	 1
#define RETRY_INACTIVE_S 5
#define FIRST_COMP_BIT	 4 /* IB_SA_GUIDINFO_REC_GID0 */

/* struct mlx4_alias_guid_work_context */
struct guid_query {
	struct list_head link;
	struct simhca_guid_port *gp;
	struct ib_sa_query *sa_query;
	struct completion done;
	int id;
	bool sent;     /* id is known; under guid_lock */
	bool answered; /* before that: the sender frees it; under guid_lock */
	int block;
	u8 entries; /* bit i: entry i was asked for */
	u8 method;
};

static ib_sa_comp_mask comp_mask(u8 entries)
{
	ib_sa_comp_mask mask = IB_SA_GUIDINFO_REC_LID | IB_SA_GUIDINFO_REC_BLOCK_NUM;
	int i;

	for (i = 0; i < SIMHCA_GUIDS_PER_REC; i++)
		if (entries & 1 << i)
			mask |= IB_SA_COMP_MASK(FIRST_COMP_BIT + i);
	return mask;
}

/* mlx4_ib_init_alias_guid_work; under guid_lock */
static void run_in(struct simhca_guid_port *gp, unsigned int seconds)
{
	if (gp->dev->going_down)
		return;
	cancel_delayed_work(&gp->work);
	queue_delayed_work(gp->wq, &gp->work, msecs_to_jiffies(seconds * 1000));
}

/* invalidate_guid_record: everything not deleted is to be settled again; under guid_lock */
static void invalidate(struct simhca_guid_port *gp, int block)
{
	struct simhca_guid_rec *rec = &gp->rec[block];
	int i;

	rec->idle = false;
	for (i = 0; i < SIMHCA_GUIDS_PER_REC; i++)
		if (rec->required[i] != SIMHCA_GUID_DELETE && (block || i))
			rec->pending |= 1 << i;
	rec->idle = rec->pending;
}

/* get_low_record_time_index; under guid_lock */
static int next_block(struct simhca_guid_port *gp, u64 *when)
{
	int block, found = -1;

	*when = 0;
	for (block = 0; block < SIMHCA_GUID_RECS; block++) {
		struct simhca_guid_rec *rec = &gp->rec[block];

		if (!rec->idle || !rec->pending || (found >= 0 && rec->time_to_run >= *when))
			continue;
		found = block;
		*when = rec->time_to_run;
	}
	return found;
}

/*
 * The kernel rounds down to whole seconds, so that its 1 s becomes 0. That is harmless with an SA
 * that is far away; with one on this host that was killed, requests fail at once and it would spin.
 */
static unsigned long delay_until(u64 when)
{
	u64 now = ktime_get_boottime_ns();

	return when < now ? 0 : msecs_to_jiffies(div_u64(when - now, NSEC_PER_MSEC) + 1);
}

/*
 * set_required_record: deletes and sets of a block go in turns, the one whose entry has waited
 * least often first. Under guid_lock.
 */
static void choose_entries(struct simhca_guid_rec *rec, struct guid_query *q)
{
	u8 deletes = 0, sets = 0;
	int i, first = -1;

	for (i = 0; i < SIMHCA_GUIDS_PER_REC; i++) {
		if (!(rec->pending & 1 << i))
			continue;
		if (rec->required[i] == SIMHCA_GUID_DELETE)
			deletes |= 1 << i;
		else
			sets |= 1 << i;
		if (first < 0 || rec->retry[i] <= rec->retry[first])
			first = i;
	}
	q->entries = deletes & 1 << first ? deletes : sets;
	q->method = deletes & 1 << first ? IB_SA_METHOD_DELETE : IB_MGMT_METHOD_SET;
}

/* Under guid_lock: one entry was declined or has changed meanwhile. */
static void back_off(struct simhca_guid_rec *rec, int i)
{
	rec->retry[i] = rec->retry[i] ? min(rec->retry[i] * 2, (unsigned int)RETRY_MAX_S) : 1;
}

static bool settle_delete(struct simhca_guid_rec *rec, int i)
{
	return rec->required[i] == SIMHCA_GUID_DELETE;
}

/* The SM's choice becomes the admin value when it was asked to choose (0). Under guid_lock. */
static bool settle_set(struct guid_query *q, struct simhca_guid_rec *rec, int i, u64 answer)
{
	struct simhca *hca = q->gp->dev->hca;
	int fn = q->block * SIMHCA_GUIDS_PER_REC + i;

	if (!answer || (rec->required[i] && answer != rec->required[i])) {
		if (!rec->retry[i])
			dev_warn(&q->gp->dev->ib.dev,
				 "Record num %d in block_num: %d was declined by SM\n", i,
				 q->block);
		atomic_inc(&hca->stats.sa_declined);
		return false;
	}
	if (!rec->required[i])
		simhca_set_admin_guid(hca, fn, q->gp->port, answer);
	rec->required[i] = answer;
	return true;
}

/* First half of aliasguid_query_handler; under guid_lock. */
static void settle(struct guid_query *q, const u64 *answer)
{
	struct simhca_guid_rec *rec = &q->gp->rec[q->block];
	unsigned int delay = 0;
	u8 applied = 0;
	int i;

	for (i = 0; i < SIMHCA_GUIDS_PER_REC; i++) {
		bool ok;

		if (!(q->entries & 1 << i))
			continue;
		ok = q->method == IB_SA_METHOD_DELETE ? settle_delete(rec, i)
						      : settle_set(q, rec, i, answer[i]);
		if (ok) {
			rec->retry[i] = 0;
			applied |= 1 << i;
			continue;
		}
		back_off(rec, i);
		delay = delay ? min(delay, rec->retry[i]) : rec->retry[i];
	}
	if (applied != q->entries || rec->pending & ~applied)
		rec->time_to_run = ktime_get_boottime_ns() + (u64)delay * NSEC_PER_SEC;
	else
		rec->idle = false;
}

/*
 * mlx4_ib_notify_slaves_on_guid_change: what the SM says counts once the GUIDInfo Set has arrived
 * as well; then the entry is settled and the guest's port goes up or down.
 */
static void notify(struct simhca_guid_port *gp, int block, const u64 *guid)
{
	struct simhca_guid_rec *rec = &gp->rec[block];
	struct simhca *hca = gp->dev->hca;
	unsigned long flags;
	int i;

	for (i = 0; i < SIMHCA_GUIDS_PER_REC; i++) {
		int fn = block * SIMHCA_GUIDS_PER_REC + i;
		bool settled;
		u64 wanted;

		if (fn > hca->num_vfs)
			return;
		spin_lock_irqsave(&gp->dev->guid_lock, flags);
		wanted = rec->required[i] == SIMHCA_GUID_DELETE ? 0 : rec->required[i];
		settled = rec->pending & 1 << i && guid[i] == gp->cache[fn];
		if (settled && guid[i] == wanted)
			rec->pending &= ~(1 << i);
		else if (guid[i])
			settled = false;
		spin_unlock_irqrestore(&gp->dev->guid_lock, flags);
		if (settled)
			simhca_slave_port_event(hca, fn, gp->port, guid[i] != 0);
	}
}

/* Second half of aliasguid_query_handler: when to go on; the query's end. */
static void finish(struct guid_query *q)
{
	struct simhca_guid_port *gp = q->gp;
	unsigned long flags;
	u64 when;

	spin_lock_irqsave(&gp->dev->guid_lock, flags);
	if (!gp->dev->going_down) {
		next_block(gp, &when);
		queue_delayed_work(gp->wq, &gp->work, delay_until(when));
	}
	if (!q->sa_query) {
		complete(&q->done);
	} else {
		list_del(&q->link);
		q->answered = true;
		if (q->sent)
			kfree(q);
	}
	spin_unlock_irqrestore(&gp->dev->guid_lock, flags);
}

static void answered(int status, struct ib_sa_guidinfo_rec *resp, void *context)
{
	struct guid_query *q = context;
	struct simhca_guid_port *gp = q->gp;
	u64 guid[SIMHCA_GUIDS_PER_REC];
	unsigned long flags;
	int i;

	if (status || resp->block_num != q->block) {
		atomic_inc(&gp->dev->hca->stats.sa_errors);
		spin_lock_irqsave(&gp->dev->guid_lock, flags);
		gp->rec[q->block].time_to_run = ktime_get_boottime_ns() + RETRY_SA_S * NSEC_PER_SEC;
		spin_unlock_irqrestore(&gp->dev->guid_lock, flags);
	} else {
		for (i = 0; i < SIMHCA_GUIDS_PER_REC; i++)
			guid[i] = get_unaligned_be64(&resp->guid_info_list[i * sizeof(u64)]);
		spin_lock_irqsave(&gp->dev->guid_lock, flags);
		settle(q, guid);
		spin_unlock_irqrestore(&gp->dev->guid_lock, flags);
		notify(gp, q->block, guid);
	}
	finish(q);
}

/*
 * An SA on this host may have answered before the call that asked it returns. (The kernel writes
 * query_id into memory that its handler has freed then.)
 */
static int sent(struct guid_query *q, int id)
{
	struct simhca_ib *dev = q->gp->dev;
	unsigned long flags;
	bool over;

	spin_lock_irqsave(&dev->guid_lock, flags);
	q->id = id;
	q->sent = true;
	over = q->answered;
	if (id < 0)
		list_del(&q->link);
	spin_unlock_irqrestore(&dev->guid_lock, flags);
	if (over || id < 0)
		kfree(q);
	return id < 0 ? -EAGAIN : 0;
}

static int send_query(struct guid_query *q, struct ib_sa_guidinfo_rec *rec)
{
	struct simhca_ib *dev = q->gp->dev;
	unsigned long flags;
	int id;

	init_completion(&q->done);
	spin_lock_irqsave(&dev->guid_lock, flags);
	list_add_tail(&q->link, &q->gp->queries);
	spin_unlock_irqrestore(&dev->guid_lock, flags);
	atomic_inc(q->method == IB_SA_METHOD_DELETE ? &dev->hca->stats.sa_deletes
						    : &dev->hca->stats.sa_sets);
	id = ib_sa_guid_info_rec_query(&dev->sa_client, &dev->ib, q->gp->port, rec,
				       comp_mask(q->entries), q->method, SA_TIMEOUT_MS, GFP_KERNEL,
				       answered, q, &q->sa_query);
	return sent(q, id);
}

static void try_later(struct simhca_guid_port *gp, int block, unsigned int seconds)
{
	unsigned long flags;

	spin_lock_irqsave(&gp->dev->guid_lock, flags);
	invalidate(gp, block);
	if (!gp->dev->going_down)
		queue_delayed_work(gp->wq, &gp->work, msecs_to_jiffies(seconds * 1000));
	spin_unlock_irqrestore(&gp->dev->guid_lock, flags);
}

/* get_next_record_to_update: NULL when nothing is to be done */
static struct guid_query *next_query(struct simhca_guid_port *gp, struct ib_sa_guidinfo_rec *rec)
{
	struct guid_query *q = kzalloc(sizeof(*q), GFP_KERNEL);
	unsigned long flags;
	u64 when;
	int i;

	if (!q)
		return NULL;
	q->gp = gp;
	spin_lock_irqsave(&gp->dev->guid_lock, flags);
	q->block = next_block(gp, &when);
	if (q->block >= 0) {
		choose_entries(&gp->rec[q->block], q);
		for (i = 0; i < SIMHCA_GUIDS_PER_REC; i++)
			put_unaligned_be64(gp->rec[q->block].required[i],
					   &rec->guid_info_list[i * sizeof(u64)]);
	}
	spin_unlock_irqrestore(&gp->dev->guid_lock, flags);
	if (q->block >= 0)
		return q;
	kfree(q);
	return NULL;
}

/* alias_guid_work and set_guid_rec */
static void guid_work(struct work_struct *work)
{
	struct simhca_guid_port *gp =
		container_of(to_delayed_work(work), struct simhca_guid_port, work);
	struct simhca_port *p = &gp->dev->hca->port[gp->port];
	struct ib_sa_guidinfo_rec rec = {};
	struct guid_query *q = next_query(gp, &rec);
	int block;

	if (!q)
		return;
	block = q->block;
	if (READ_ONCE(p->state) != IB_PORT_ACTIVE) {
		kfree(q);
		try_later(gp, block, RETRY_INACTIVE_S);
		return;
	}
	rec.lid = cpu_to_be16(READ_ONCE(p->lid));
	rec.block_num = block;
	if (send_query(q, &rec))
		try_later(gp, block, RETRY_SA_S);
}

/* Under guid_lock: from now on the entry shall be guid. */
static void require(struct simhca_guid_port *gp, int index, u64 guid)
{
	struct simhca_guid_rec *rec = &gp->rec[index / SIMHCA_GUIDS_PER_REC];

	rec->required[index % SIMHCA_GUIDS_PER_REC] = guid;
	rec->pending |= 1 << index % SIMHCA_GUIDS_PER_REC;
	rec->idle = true;
}

/* sysfs.c:store_admin_alias_guid: asked for at once, whether the VF is in use or not. */
void simhca_alias_guid_admin(struct simhca_ib *dev, int port, int index, u64 guid)
{
	struct simhca_guid_port *gp = &dev->guid_port[port];
	unsigned long flags;

	spin_lock_irqsave(&dev->guid_lock, flags);
	require(gp, index, guid);
	simhca_set_admin_guid(dev->hca, index, port, guid);
	run_in(gp, 0);
	spin_unlock_irqrestore(&dev->guid_lock, flags);
}

/* mlx4_ib_slave_alias_guid_event: a VF's driver starts, or stops, or its function was reset. */
void simhca_alias_guid_slave(struct simhca_ib *dev, int port, int fn, bool init)
{
	struct simhca_guid_port *gp = &dev->guid_port[port];
	struct simhca_guid_rec *rec = &gp->rec[fn / SIMHCA_GUIDS_PER_REC];
	int i = fn % SIMHCA_GUIDS_PER_REC;
	unsigned long flags;
	u64 guid;

	spin_lock_irqsave(&dev->guid_lock, flags);
	guid = init ? dev->hca->func[fn].admin_guid[port] : rec->required[i];
	if (!gp->need_init && guid != SIMHCA_GUID_DELETE && (init || guid)) {
		require(gp, fn, init ? guid : SIMHCA_GUID_DELETE);
		rec->time_to_run = 0;
		rec->retry[i] = 0;
		run_in(gp, 0);
	}
	spin_unlock_irqrestore(&dev->guid_lock, flags);
}

/* handle_slaves_guid_change: the SM has written a block of the port's GUID table. */
void simhca_alias_guid_table(struct simhca_ib *dev, int port, int block)
{
	struct simhca_guid_port *gp = &dev->guid_port[port];
	u64 guid[SIMHCA_GUIDS_PER_REC];
	unsigned long flags;
	int i;

	spin_lock_irqsave(&dev->hca->lock, flags);
	memcpy(guid, &dev->hca->port[port].guid[block * SIMHCA_GUIDS_PER_REC], sizeof(guid));
	spin_unlock_irqrestore(&dev->hca->lock, flags);
	/* mlx4_ib_update_cache_on_guid_change: only entries that are being settled */
	spin_lock_irqsave(&dev->guid_lock, flags);
	for (i = 0; i < SIMHCA_GUIDS_PER_REC; i++)
		if (gp->rec[block].pending & 1 << i)
			gp->cache[block * SIMHCA_GUIDS_PER_REC + i] = guid[i];
	spin_unlock_irqrestore(&dev->guid_lock, flags);
	notify(gp, block, guid);
}

/* mlx4_ib_guid_port_init: only VFs that are in use are asked for; under guid_lock */
static void port_init(struct simhca_guid_port *gp)
{
	struct simhca *hca = gp->dev->hca;
	int fn;

	for (fn = 1; fn <= hca->num_vfs; fn++)
		if (hca->func[fn].active)
			gp->rec[fn / SIMHCA_GUIDS_PER_REC].required[fn % SIMHCA_GUIDS_PER_REC] =
				hca->func[fn].admin_guid[gp->port];
	gp->need_init = false;
}

/* mlx4_ib_invalidate_all_guid_record: the port came up, or the SM wants clients to reregister. */
void simhca_alias_guid_invalidate_all(struct simhca_ib *dev, int port)
{
	struct simhca_guid_port *gp = &dev->guid_port[port];
	unsigned long flags;
	int block;

	spin_lock_irqsave(&dev->guid_lock, flags);
	if (gp->need_init)
		port_init(gp);
	for (block = 0; block < SIMHCA_GUID_RECS; block++)
		invalidate(gp, block);
	run_in(gp, 0);
	spin_unlock_irqrestore(&dev->guid_lock, flags);
}

static int init_port(struct simhca_ib *dev, int port)
{
	struct simhca_guid_port *gp = &dev->guid_port[port];
	int block;

	gp->dev = dev;
	gp->port = port;
	gp->need_init = true;
	INIT_LIST_HEAD(&gp->queries);
	INIT_DELAYED_WORK(&gp->work, guid_work);
	for (block = 0; block < SIMHCA_GUID_RECS; block++)
		memset(gp->rec[block].required, 0xff, sizeof(gp->rec[block].required));
	gp->wq = alloc_ordered_workqueue("alias_guid%d", WQ_MEM_RECLAIM, port - 1);
	return gp->wq ? 0 : -ENOMEM;
}

int simhca_alias_guid_init(struct simhca_ib *dev)
{
	int port, ret = 0;

	ib_sa_register_client(&dev->sa_client);
	for (port = 1; port <= dev->hca->num_ports && !ret; port++)
		ret = init_port(dev, port);
	if (ret)
		simhca_alias_guid_destroy(dev);
	return ret;
}

static void cancel_queries(struct simhca_guid_port *gp)
{
	struct guid_query *q;
	struct ib_sa_query *sa_query;
	unsigned long flags;

	spin_lock_irqsave(&gp->dev->guid_lock, flags);
	while ((q = list_first_entry_or_null(&gp->queries, struct guid_query, link))) {
		sa_query = q->sa_query;
		q->sa_query = NULL; /* the handler completes instead of freeing */
		list_del(&q->link);
		spin_unlock_irqrestore(&gp->dev->guid_lock, flags);
		ib_sa_cancel_query(q->id, sa_query);
		wait_for_completion(&q->done);
		kfree(q);
		spin_lock_irqsave(&gp->dev->guid_lock, flags);
	}
	spin_unlock_irqrestore(&gp->dev->guid_lock, flags);
}

void simhca_alias_guid_destroy(struct simhca_ib *dev)
{
	unsigned long flags;
	int port;

	spin_lock_irqsave(&dev->guid_lock, flags);
	dev->going_down = true;
	spin_unlock_irqrestore(&dev->guid_lock, flags);
	for (port = 1; port <= dev->hca->num_ports; port++) {
		struct simhca_guid_port *gp = &dev->guid_port[port];

		if (!gp->wq)
			continue;
		cancel_delayed_work_sync(&gp->work);
		cancel_queries(gp);
		destroy_workqueue(gp->wq);
		gp->wq = NULL;
	}
	ib_sa_unregister_client(&dev->sa_client);
}
