// SPDX-License-Identifier: GPL-2.0
/*
 * The list of adapters, its one client (mlx4_ib), and the ordered way from a change in the
 * "firmware" to that client. Modelled: mlx4/intf.c (mlx4_register_interface, mlx4_dispatch_event)
 * and the ordered work queue of mlx4_ib (hw/mlx4/main.c:mlx4_ib_event,
 * handle_port_mgmt_change_event).
 */
#include "simhca.h"

#include <linux/module.h>
#include <linux/slab.h>

struct queued_event {
	struct list_head link;
	struct simhca_event_info info;
};

static LIST_HEAD(adapters);
static DEFINE_MUTEX(adapters_mutex); /* adapters and client; taken before any client_mutex */
static const struct simhca_client *client;

static struct queued_event *next_event(struct simhca *hca)
{
	struct queued_event *ev;
	unsigned long flags;

	spin_lock_irqsave(&hca->event_lock, flags);
	ev = list_first_entry_or_null(&hca->events, struct queued_event, link);
	if (ev)
		list_del(&ev->link);
	spin_unlock_irqrestore(&hca->event_lock, flags);
	return ev;
}

static void deliver_events(struct work_struct *work)
{
	struct simhca *hca = container_of(work, struct simhca, event_work);
	struct queued_event *ev;

	while ((ev = next_event(hca))) {
		mutex_lock(&hca->client_mutex);
		if (hca->client_priv)
			client->event(hca, hca->client_priv, &ev->info);
		mutex_unlock(&hca->client_mutex);
		kfree(ev);
	}
}

void simhca_post_bitmap(struct simhca *hca, enum simhca_event type, int port, unsigned int arg,
			u32 bitmap)
{
	struct queued_event *ev = kzalloc(sizeof(*ev), GFP_ATOMIC);
	unsigned long flags;

	if (!ev)
		return; /* memory pressure loses events in mlx4_ib_event as well */
	ev->info = (struct simhca_event_info){
		.type = type, .port = port, .arg = arg, .bitmap = bitmap};
	spin_lock_irqsave(&hca->event_lock, flags);
	list_add_tail(&ev->link, &hca->events);
	spin_unlock_irqrestore(&hca->event_lock, flags);
	queue_work(hca->wq, &hca->event_work);
}

void simhca_post(struct simhca *hca, enum simhca_event type, int port, unsigned int arg)
{
	simhca_post_bitmap(hca, type, port, arg, 0);
}

void simhca_receive(struct simhca *hca, const struct simhca_frame *frame)
{
	unsigned long flags;

	spin_lock_irqsave(&hca->rx_lock, flags);
	if (hca->client_rx)
		client->receive(hca, hca->client_priv, frame);
	spin_unlock_irqrestore(&hca->rx_lock, flags);
}
EXPORT_SYMBOL_GPL(simhca_receive);

static void set_client_rx(struct simhca *hca, bool on)
{
	unsigned long flags;

	spin_lock_irqsave(&hca->rx_lock, flags);
	hca->client_rx = on;
	spin_unlock_irqrestore(&hca->rx_lock, flags);
}

/* Holds client_mutex while the device is registered: events wait, as they do in mlx4's work queue.
 */
static void attach_client(struct simhca *hca)
{
	mutex_lock(&hca->client_mutex);
	hca->client_priv = client->add(hca);
	mutex_unlock(&hca->client_mutex);
}

static void detach_client(struct simhca *hca)
{
	void *priv;

	set_client_rx(hca, false);
	mutex_lock(&hca->client_mutex);
	priv = hca->client_priv;
	hca->client_priv = NULL;
	mutex_unlock(&hca->client_mutex);
	if (priv)
		client->remove(hca, priv);
}

/* The client calls this from add(), when its queue pairs can take frames. */
void simhca_client_ready(struct simhca *hca, void *priv)
{
	hca->client_priv = priv;
	set_client_rx(hca, true);
}
EXPORT_SYMBOL_GPL(simhca_client_ready);

/* And this, if add() fails after all. */
void simhca_client_gone(struct simhca *hca)
{
	set_client_rx(hca, false);
}
EXPORT_SYMBOL_GPL(simhca_client_gone);

int simhca_register_client(const struct simhca_client *c)
{
	struct simhca *hca;

	mutex_lock(&adapters_mutex);
	client = c;
	list_for_each_entry(hca, &adapters, link) if (hca->offered) attach_client(hca);
	mutex_unlock(&adapters_mutex);
	return 0;
}
EXPORT_SYMBOL_GPL(simhca_register_client);

void simhca_unregister_client(const struct simhca_client *c)
{
	struct simhca *hca;

	mutex_lock(&adapters_mutex);
	list_for_each_entry(hca, &adapters, link) detach_client(hca);
	client = NULL;
	mutex_unlock(&adapters_mutex);
}
EXPORT_SYMBOL_GPL(simhca_unregister_client);

static int free_index(void)
{
	struct simhca *hca;
	int index = 0;

	list_for_each_entry(hca, &adapters, link) index = max(index, hca->index + 1);
	return index;
}

int simhca_add(struct simhca *hca)
{
	INIT_LIST_HEAD(&hca->events);
	INIT_WORK(&hca->event_work, deliver_events);
	spin_lock_init(&hca->event_lock);
	spin_lock_init(&hca->rx_lock);
	mutex_init(&hca->client_mutex);
	hca->wq = alloc_ordered_workqueue("simhca-%s", WQ_MEM_RECLAIM, pci_name(hca->pdev));
	if (!hca->wq)
		return -ENOMEM;
	mutex_lock(&adapters_mutex);
	hca->index = free_index();
	list_add_tail(&hca->link, &adapters);
	mutex_unlock(&adapters_mutex);
	return 0;
}

/* Second half of adding, when everything a client may use is there. */
void simhca_offer(struct simhca *hca)
{
	mutex_lock(&adapters_mutex);
	hca->offered = true;
	if (client)
		attach_client(hca);
	mutex_unlock(&adapters_mutex);
}

void simhca_remove(struct simhca *hca)
{
	mutex_lock(&adapters_mutex);
	detach_client(hca);
	list_del(&hca->link);
	mutex_unlock(&adapters_mutex);
}

/* After the last source of events is gone. */
void simhca_free_events(struct simhca *hca)
{
	struct queued_event *ev;

	destroy_workqueue(hca->wq);
	while ((ev = next_event(hca)))
		kfree(ev);
}
