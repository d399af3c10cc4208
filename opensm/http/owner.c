/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "opensm/http/owner.h"

#include "common/http/json.h"
#include "opensm/http/fields.h"

void vhca_osm_api_name_owner(struct vhca_osm_service *service, struct vhca_osm_owners *owners,
			     struct vhca_http_request *req)
{
	static const char *const members[] = {"port_guid", NULL};
	const struct vhca_osm_table *table = vhca_osm_service_table(service);
	struct vhca_error err = VHCA_ERROR_INIT;
	struct json_object *obj;
	const char *port = NULL;
	uint64_t vguid = 0, port_guid = 0;
	int r = vhca_osm_read_guid(vhca_http_param(req, 0), "path", &vguid, &err);

	if (r == 0)
		r = vhca_json_check_members(vhca_http_body(req), members, &err);
	if (r == 0)
		r = vhca_json_get_string(vhca_http_body(req), "port_guid", &port, &err);
	if (r == 0)
		r = vhca_osm_read_guid(port, "port_guid", &port_guid, &err);
	if (r == 0)
		r = vhca_osm_check_master(vhca_osm_service_subnet(service), &err);
	if (r == 0 && !owners->conf->tickets) {
		r = vhca_error_set(&err, VHCA_ERR_CONFLICT, "no_tickets", 0,
				   "[tickets] required = no: whoever has the higher epoch is the "
				   "owner");
		vhca_error_hint(&err,
				"PUT /v1/bindings binds it, DELETE /v1/bindings withdraws it");
	}
	if (r == 0)
		r = vhca_osm_owners_name(owners, vguid, port_guid, &err);
	if (r == 0)
		r = vhca_osm_service_commit(service, &err);
	if (r < 0) {
		vhca_http_reply_error(req, &err);
		return;
	}
	obj = json_object_new_object();
	vhca_json_add_guid(obj, "vguid", vguid);
	vhca_json_add_u64(obj, "epoch", vhca_osm_table_find(table, vguid)->epoch);
	vhca_json_add_guid(obj, "port_guid", port_guid);
	vhca_http_reply(req, 200, obj);
}
