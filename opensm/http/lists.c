/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/lists.h"

#include <errno.h>
#include <stdlib.h>

#include "opensm/http/fields.h"

struct vhca_osm_list {
	TAILQ_ENTRY(vhca_osm_list) link;
	struct vhca_osm_lists *lists;
	struct vhca_http_request *req;
	struct vhca_osm_page page;
	vhca_osm_list_fn make;
};

void vhca_osm_lists_init(struct vhca_osm_lists *lists)
{
	*lists = (struct vhca_osm_lists){.n = 0};
	TAILQ_INIT(&lists->queue);
}

static struct vhca_http_request *take(struct vhca_osm_list *list)
{
	struct vhca_http_request *req = list->req;

	TAILQ_REMOVE(&list->lists->queue, list, link);
	list->lists->n--;
	free(list);
	return req;
}

/* Its client has gone: what is replied is dropped. */
static void on_gone(void *arg)
{
	vhca_http_reply(take(arg), 200, NULL);
}

static int check_room(const struct vhca_osm_lists *lists, uint64_t under_way,
		      struct vhca_error *err)
{
	if (lists->n < VHCA_OSM_LISTS_MAX && under_way < VHCA_OSM_LISTS_BYTES_MAX)
		return 0;
	return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "too_many_lists", 0,
			      "%u lists wait, and %llu KiB of answers are under way", lists->n,
			      (unsigned long long)under_way / 1024);
}

static void enqueue(struct vhca_osm_lists *lists, struct vhca_http_request *req,
		    vhca_osm_list_fn make, const struct vhca_osm_page *page)
{
	struct vhca_osm_list *list = calloc(1, sizeof(*list));
	struct vhca_error err = VHCA_ERROR_INIT;

	if (!list) {
		(void)vhca_error_no_memory(&err, "list");
		vhca_http_reply_error(req, &err);
		return;
	}
	*list = (struct vhca_osm_list){.lists = lists, .req = req, .page = *page, .make = make};
	TAILQ_INSERT_TAIL(&lists->queue, list, link);
	lists->n++;
	vhca_http_on_cancel(req, on_gone, list);
}

void vhca_osm_lists_ask(struct vhca_osm_lists *lists, struct vhca_http_request *req,
			vhca_osm_list_fn make, uint64_t under_way)
{
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_page page;
	int r = vhca_osm_read_page(req, &page, &err);

	if (r == 0)
		r = check_room(lists, under_way, &err);
	if (r < 0)
		vhca_http_reply_error(req, &err);
	else
		enqueue(lists, req, make, &page);
}

void vhca_osm_lists_answer_one(struct vhca_osm_lists *lists, const struct vhca_osm_service *s)
{
	struct vhca_osm_list *list = TAILQ_FIRST(&lists->queue);
	struct json_object *body;

	if (!list)
		return;
	body = list->make(s, &list->page);
	vhca_http_reply(take(list), 200, body);
}
