// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/loop/post.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/loop/loop_private.h"

/* Posts run in one round before other sources get their turn. */
#define POSTS_PER_ROUND 64

/* What vhca_loop_post() allocates. */
struct heap_post {
	struct vhca_post node;
	void (*fn)(void *arg);
	void *arg;
	void (*drop)(void *arg);
};

void vhca_loop_post_node(struct vhca_loop *loop, struct vhca_post *post)
{
	uint64_t one = 1;

	post->next = NULL;
	pthread_mutex_lock(&loop->lock);
	/* The counter is 0 or 1, so this can neither block nor overflow. */
	if (!loop->head && write(loop->post_fd, &one, sizeof(one)) != (ssize_t)sizeof(one))
		vhca_log_error("loop: eventfd refused a wake-up");
	*loop->tail = post;
	loop->tail = &post->next;
	pthread_mutex_unlock(&loop->lock);
}

/* Removes *pos from the queue. */
static struct vhca_post *take_locked(struct vhca_loop *loop, struct vhca_post **pos)
{
	struct vhca_post *post = *pos;
	uint64_t count;

	*pos = post->next;
	if (!*pos)
		loop->tail = pos;
	if (!loop->head && read(loop->post_fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
		vhca_log_error("loop: eventfd had no wake-up to take back");
	return post;
}

bool vhca_loop_unpost(struct vhca_loop *loop, const struct vhca_post *post)
{
	struct vhca_post **pos;
	bool found;

	pthread_mutex_lock(&loop->lock);
	for (pos = &loop->head; *pos && *pos != post; pos = &(*pos)->next)
		;
	found = *pos != NULL;
	if (found)
		(void)take_locked(loop, pos); /* the caller has it already */
	pthread_mutex_unlock(&loop->lock);
	return found;
}

static struct vhca_post *next_post(struct vhca_loop *loop)
{
	struct vhca_post *post = NULL;

	pthread_mutex_lock(&loop->lock);
	if (loop->head)
		post = take_locked(loop, &loop->head);
	pthread_mutex_unlock(&loop->lock);
	return post;
}

static void run_heap_post(void *arg)
{
	VHCA_AUTO_FREE struct heap_post *hp = arg;

	hp->fn(hp->arg);
}

static void drop_heap_post(void *arg)
{
	VHCA_AUTO_FREE struct heap_post *hp = arg;

	if (hp->drop)
		hp->drop(hp->arg);
}

int vhca_loop_post(struct vhca_loop *loop, void (*fn)(void *arg), void *arg,
		   void (*drop)(void *arg))
{
	struct heap_post *hp;

	hp = malloc(sizeof(*hp));
	if (!hp)
		return -ENOMEM;
	*hp = (struct heap_post){
		.node = {.fn = run_heap_post, .drop = drop_heap_post, .arg = hp},
		.fn = fn,
		.arg = arg,
		.drop = drop,
	};
	vhca_loop_post_node(loop, &hp->node);
	return 0;
}

/* Static functions have no symbol at run time: "post vhcad+0x1234" is for addr2line. */
static void describe(const void *fn, char *buf, size_t size)
{
	Dl_info info;

	if (!dladdr(fn, &info))
		(void)snprintf(buf, size, "post %p", fn);
	else if (info.dli_sname && info.dli_saddr == fn)
		(void)snprintf(buf, size, "post %s", info.dli_sname);
	else
		(void)snprintf(buf, size, "post %s+%#zx", info.dli_fname,
			       (size_t)((const char *)fn - (const char *)info.dli_fbase));
}

/* Where the code of a post is; a union, since ISO C has no cast from functions to data. */
static const void *address(const struct vhca_post *post)
{
	const struct heap_post *hp = post->arg;
	union {
		void (*fn)(void *arg);
		const void *address;
	} u = {.fn = post->fn == run_heap_post ? hp->fn : post->fn};

	return u.address;
}

/* The node may be gone after its function ran: what the diagnostics need is copied before. */
static void run_post(struct vhca_loop *loop, struct vhca_post *post)
{
	const void *fn = address(post);
	char name[128];
	uint64_t start, us;

	(void)snprintf(name, sizeof(name), "%s", post->name ? post->name : "");
	start = vhca_loop_cpu_us();
	post->fn(post->arg);
	us = vhca_loop_cpu_us() - start;
	if (us > VHCA_LOOP_WARN_US && !name[0])
		describe(fn, name, sizeof(name));
	vhca_loop_account(loop, name, us);
}

static int on_posts(struct sd_event_source *s, int fd, uint32_t revents, void *userdata)
{
	struct vhca_loop *loop = userdata;
	struct vhca_post *post;
	int i;

	(void)s;
	(void)fd;
	(void)revents;
	for (i = 0; i < POSTS_PER_ROUND; i++) {
		post = next_post(loop);
		if (!post)
			break;
		run_post(loop, post);
	}
	return 0;
}

int vhca_loop_init_posts(struct vhca_loop *loop)
{
	int r;

	loop->tail = &loop->head;
	r = pthread_mutex_init(&loop->lock, NULL);
	if (r != 0)
		return -r;
	loop->post_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->post_fd < 0)
		return -errno;
	return sd_event_add_io(loop->event, &loop->post_source, loop->post_fd, EPOLLIN, on_posts,
			       loop);
}

void vhca_loop_drop_posts(struct vhca_loop *loop)
{
	struct vhca_post *post;

	while ((post = next_post(loop)) != NULL) {
		if (post->drop)
			post->drop(post->arg);
	}
	(void)sd_event_source_disable_unref(loop->post_source);
	if (loop->post_fd >= 0)
		(void)close(loop->post_fd); /* an eventfd has nothing to lose */
	(void)pthread_mutex_destroy(&loop->lock);
}
