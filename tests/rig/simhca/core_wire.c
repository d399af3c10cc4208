// SPDX-License-Identifier: GPL-2.0
/*
 * The cable: /dev/simhca-mlx4_<n>. One read() or write() is one frame. A relay in user space (socat
 * over UDP) joins the devices of two hypervisors; it may come and go, frames are lost meanwhile.
 * An open file keeps the wire, not the adapter: after the adapter has gone it reads end of file.
 */
#include "simhca.h"

#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/skbuff.h>
#include <linux/slab.h>

#define MAX_QUEUED 1024

struct simhca_wire {
	struct kref ref;
	struct miscdevice dev;
	struct mutex lock;  /* hca */
	struct simhca *hca; /* NULL when the adapter has gone */
	atomic_t readers;
	struct sk_buff_head queue;
	wait_queue_head_t wait;
};

static void free_wire(struct kref *ref)
{
	struct simhca_wire *w = container_of(ref, struct simhca_wire, ref);

	skb_queue_purge(&w->queue);
	kfree(w->dev.name);
	kfree(w);
}

/* misc_open holds the lock that misc_deregister takes, so the wire cannot vanish in between. */
static int wire_open(struct inode *inode, struct file *file)
{
	struct simhca_wire *w = container_of(file->private_data, struct simhca_wire, dev);

	kref_get(&w->ref);
	atomic_inc(&w->readers);
	file->private_data = w;
	return 0;
}

static int wire_release(struct inode *inode, struct file *file)
{
	struct simhca_wire *w = file->private_data;

	if (atomic_dec_and_test(&w->readers))
		skb_queue_purge(&w->queue);
	kref_put(&w->ref, free_wire);
	return 0;
}

static ssize_t wire_read(struct file *file, char __user *buf, size_t len, loff_t *pos)
{
	struct simhca_wire *w = file->private_data;
	struct sk_buff *skb;
	ssize_t n;

	if (len < sizeof(struct simhca_frame))
		return -EINVAL;
	while (!(skb = skb_dequeue(&w->queue))) {
		if (!READ_ONCE(w->hca))
			return 0;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(w->wait,
					     !skb_queue_empty(&w->queue) || !READ_ONCE(w->hca)))
			return -ERESTARTSYS;
	}
	n = copy_to_user(buf, skb->data, skb->len) ? -EFAULT : skb->len;
	kfree_skb(skb);
	return n;
}

static bool frame_valid(const struct simhca_frame *f)
{
	return f->magic == cpu_to_be32(SIMHCA_FRAME_MAGIC) && f->version == SIMHCA_FRAME_VERSION &&
	       (f->kind == SIMHCA_FRAME_MAD || f->kind == SIMHCA_FRAME_PULSE);
}

static void frame_in(struct simhca *hca, const struct simhca_frame *frame)
{
	if (frame->kind == SIMHCA_FRAME_PULSE) {
		simhca_port_pulse_in(hca, frame);
		return;
	}
	if (!simhca_port_carries(hca, frame->port)) {
		atomic_inc(&hca->stats.wire_dropped);
		return;
	}
	atomic_inc(&hca->stats.wire_rx);
	simhca_receive(hca, frame);
}

/* A frame that is not ours (a stray datagram) is refused without ending the relay's copying. */
static ssize_t wire_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct simhca_wire *w = file->private_data;
	struct simhca_frame frame;
	ssize_t n = len;

	if (len == sizeof(frame) && copy_from_user(&frame, buf, sizeof(frame)))
		return -EFAULT;
	mutex_lock(&w->lock);
	if (!w->hca)
		n = -ENODEV;
	else if (len == sizeof(frame) && frame_valid(&frame))
		frame_in(w->hca, &frame);
	else
		atomic_inc(&w->hca->stats.wire_dropped);
	mutex_unlock(&w->lock);
	return n;
}

static __poll_t wire_poll(struct file *file, poll_table *table)
{
	struct simhca_wire *w = file->private_data;
	__poll_t events = EPOLLOUT | EPOLLWRNORM;

	poll_wait(file, &w->wait, table);
	if (!skb_queue_empty(&w->queue))
		events |= EPOLLIN | EPOLLRDNORM;
	if (!READ_ONCE(w->hca))
		events |= EPOLLIN | EPOLLHUP;
	return events;
}

static const struct file_operations wire_fops = {
	.owner = THIS_MODULE,
	.open = wire_open,
	.release = wire_release,
	.read = wire_read,
	.write = wire_write,
	.poll = wire_poll,
};

void simhca_wire_send(struct simhca *hca, struct simhca_frame *frame)
{
	struct simhca_wire *w = hca->wire;
	struct sk_buff *skb;

	if (!w || (frame->kind == SIMHCA_FRAME_MAD && !simhca_port_carries(hca, frame->port)))
		return;
	frame->magic = cpu_to_be32(SIMHCA_FRAME_MAGIC);
	frame->version = SIMHCA_FRAME_VERSION;
	frame->sender = cpu_to_be64(hca->guid);
	skb = atomic_read(&w->readers) && skb_queue_len(&w->queue) < MAX_QUEUED
		      ? alloc_skb(sizeof(*frame), GFP_ATOMIC)
		      : NULL;
	if (!skb) {
		atomic_inc(&hca->stats.wire_dropped);
		return;
	}
	skb_put_data(skb, frame, sizeof(*frame));
	skb_queue_tail(&w->queue, skb);
	if (frame->kind == SIMHCA_FRAME_MAD)
		atomic_inc(&hca->stats.wire_tx);
	wake_up_interruptible(&w->wait);
}
EXPORT_SYMBOL_GPL(simhca_wire_send);

int simhca_wire_create(struct simhca *hca)
{
	struct simhca_wire *w = kzalloc(sizeof(*w), GFP_KERNEL);
	int ret;

	if (!w)
		return -ENOMEM;
	kref_init(&w->ref);
	mutex_init(&w->lock);
	skb_queue_head_init(&w->queue);
	init_waitqueue_head(&w->wait);
	w->hca = hca;
	w->dev.minor = MISC_DYNAMIC_MINOR;
	w->dev.fops = &wire_fops;
	w->dev.mode = 0600;
	w->dev.name = kasprintf(GFP_KERNEL, "simhca-mlx4_%d", hca->index);
	ret = w->dev.name ? misc_register(&w->dev) : -ENOMEM;
	if (ret) {
		kref_put(&w->ref, free_wire);
		return ret;
	}
	hca->wire = w;
	return 0;
}

void simhca_wire_destroy(struct simhca *hca)
{
	struct simhca_wire *w = hca->wire;

	if (!w)
		return;
	misc_deregister(&w->dev);
	mutex_lock(&w->lock);
	WRITE_ONCE(w->hca, NULL);
	mutex_unlock(&w->lock);
	hca->wire = NULL;
	wake_up_interruptible(&w->wait);
	kref_put(&w->ref, free_wire);
}
