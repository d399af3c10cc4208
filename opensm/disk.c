/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/disk.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"

static void *wait_for_disk(void *arg)
{
	struct vhca_osm_disk *d = arg;
	const uint64_t one = 1;

	(void)pthread_mutex_lock(&d->lock);
	while (!d->stop) {
		if (!d->fn) {
			(void)pthread_cond_wait(&d->asked, &d->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&d->lock);
		d->result = d->fn(d->arg); /* the asker does not touch these meanwhile */
		(void)pthread_mutex_lock(&d->lock);
		d->fn = NULL;
		(void)!write(d->done_fd, &one, sizeof(one)); /* it was 0 */
	}
	(void)pthread_mutex_unlock(&d->lock);
	return NULL;
}

static int run(void *ctx, vhca_disk_fn fn, void *arg)
{
	struct vhca_osm_disk *d = ctx;
	uint64_t count;
	int result;

	(void)pthread_mutex_lock(&d->lock);
	d->arg = arg;
	d->fn = fn;
	(void)pthread_cond_signal(&d->asked);
	(void)pthread_mutex_unlock(&d->lock);
	d->meanwhile(d->ctx, d->done_fd);
	(void)pthread_mutex_lock(&d->lock);
	(void)!read(d->done_fd, &count, sizeof(count));
	result = d->result;
	(void)pthread_mutex_unlock(&d->lock);
	return result;
}

int vhca_osm_disk_open(struct vhca_osm_disk *d, void (*meanwhile)(void *ctx, int done_fd),
		       void *ctx)
{
	int r;

	*d = (struct vhca_osm_disk){.ctx = ctx};
	d->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (d->done_fd < 0)
		return -errno;
	(void)pthread_mutex_init(&d->lock, NULL);
	(void)pthread_cond_init(&d->asked, NULL);
	r = pthread_create(&d->thread, NULL, wait_for_disk, d);
	if (r == 0) {
		d->meanwhile = meanwhile;
		vhca_set_disk(run, d);
		return 0;
	}
	(void)pthread_cond_destroy(&d->asked);
	(void)pthread_mutex_destroy(&d->lock);
	vhca_close_cleanup(&d->done_fd);
	return -r;
}

void vhca_osm_disk_close(struct vhca_osm_disk *d)
{
	if (!d->meanwhile)
		return;
	vhca_set_disk(NULL, NULL);
	(void)pthread_mutex_lock(&d->lock);
	d->stop = true;
	(void)pthread_cond_signal(&d->asked);
	(void)pthread_mutex_unlock(&d->lock);
	(void)pthread_join(d->thread, NULL);
	(void)pthread_cond_destroy(&d->asked);
	(void)pthread_mutex_destroy(&d->lock);
	vhca_close_cleanup(&d->done_fd);
	d->meanwhile = NULL;
}
