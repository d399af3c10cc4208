/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/gone.h"

#include <errno.h>
#include <stdlib.h>

#include "common/http/json.h"
#include "opensm/http/fields.h"

/*
 * LIDs first: where one is not freed, the binding is there still, and the request can be repeated.
 */
struct burial {
	struct vhca_http_request *req;
	struct vhca_osm_service *service;
	struct vhca_osm_recent *recent;
	vhca_osm_later_fn later;
	void *arg;
	uint64_t port_guid;
	size_t waits; /* for so many LIDs, and for the last of them to be queued */
	size_t lids;
	struct vhca_error err; /* the first one's */
};

/*
 * The last one carries it out. It is freed in the mover's loop, where nobody waits for a disk: what
 * else is under way there has time-outs.
 */
static void release(struct burial *burial)
{
	struct vhca_osm_reports *reports = vhca_osm_service_reports(burial->service);
	struct vhca_osm_gone gone = {.n = 0};
	struct json_object *obj;
	int r = burial->err.kind ? -EAGAIN : 0;

	if (--burial->waits > 0)
		return;
	if (r == 0)
		r = vhca_osm_report_forget_port(reports, burial->port_guid, &gone, &burial->err);
	if (r == 0) {
		obj = json_object_new_object();
		vhca_json_add_guid(obj, "port_guid", burial->port_guid);
		vhca_json_add_u64(obj, "withdrawn", gone.n);
		vhca_json_add_u64(obj, "left", gone.left);
		vhca_json_add_u64(obj, "lids", burial->lids);
		burial->later(burial->arg, burial->req, obj);
	} else {
		vhca_http_reply_error(burial->req, &burial->err);
	}
	free(gone.vguids);
	free(burial);
}

static void on_freed(void *arg, const struct vhca_osm_lid_move *move, const struct vhca_error *err)
{
	struct burial *burial = arg;

	vhca_osm_recent_add_lid(burial->recent, move, err);
	if (!err)
		burial->lids += move->changes;
	else if (!burial->err.kind)
		burial->err = *err;
	release(burial);
}

void vhca_osm_api_forget_port(struct vhca_osm_service *service, struct vhca_osm_mover *m,
			      struct vhca_osm_recent *recent, struct vhca_http_request *req,
			      vhca_osm_later_fn later, void *arg)
{
	struct burial *burial = calloc(1, sizeof(*burial));
	struct vhca_error err = VHCA_ERROR_INIT;
	struct vhca_osm_gone gone = {.n = 0};
	int r = burial ? 0 : vhca_error_no_memory(&err, "port");

	if (r < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	*burial = (struct burial){.req = req,
				  .service = service,
				  .recent = recent,
				  .later = later,
				  .arg = arg,
				  .waits = 1,
				  .err = VHCA_ERROR_INIT};
	r = vhca_osm_read_guid(vhca_http_param(req, 0), "path", &burial->port_guid, &burial->err);
	if (r == 0)
		r = vhca_osm_report_find_gone(vhca_osm_service_reports(service), burial->port_guid,
					      &gone, &burial->err);
	for (size_t i = 0; r == 0 && i < gone.n; i++) {
		struct vhca_osm_lid_move move = {.want = {.vguid = gone.vguids[i],
							  .port_guid = burial->port_guid,
							  .dynamic = VHCA_OSM_LID_FREED}};

		r = vhca_osm_mover_check(m, &move, 0, &burial->err);
		if (r < 0 || (!move.changes && !vhca_osm_mover_has_queued(m, gone.vguids[i])))
			continue;
		r = vhca_osm_mover_queue(m, &move, on_freed, burial, &burial->err);
		burial->waits += r == 0;
	}
	free(gone.vguids);
	release(burial);
}
