/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libvirt/libvirt-qemu.h>

#include "agent/libvirt/error.h"
#include "agent/libvirt/session.h"
#include "common/base/file.h"
#include "common/base/role.h"

/* More running domains than any host has; bounds what one answer can make us parse. */
#define DOMAINS_MAX 4096
/* Of a guest agent, to one command. */
#define ANSWER_SECONDS 5

void virt_domain_free_cleanup(virDomainPtr *p)
{
	if (*p)
		(void)virDomainFree(*p); /* only drops a reference */
}

struct domain_array {
	virDomainPtr *domains;
	int n;
};

static void domain_array_done(struct domain_array *a)
{
	for (int i = 0; i < a->n; i++)
		(void)virDomainFree(a->domains[i]);
	free(a->domains);
}

void vhca_dom_list_done(struct vhca_dom_list *list)
{
	for (unsigned int i = 0; i < list->n; i++)
		free(list->info[i]);
	free(list->info);
	*list = (struct vhca_dom_list){NULL, 0};
}

static int domain_gone(struct vhca_error *err, const char *what)
{
	(void)vhca_error_set(err, VHCA_ERR_NOT_FOUND, "domain_gone", 0, "%s: not active here",
			     what);
	return -ENOENT;
}

bool virt_state_is_held(int state, int reason)
{
	return (state == VIR_DOMAIN_PAUSED &&
		(reason == VIR_DOMAIN_PAUSED_MIGRATION || reason == VIR_DOMAIN_PAUSED_POSTCOPY ||
		 reason == VIR_DOMAIN_PAUSED_POSTCOPY_FAILED)) ||
	       (state == VIR_DOMAIN_RUNNING && reason == VIR_DOMAIN_RUNNING_POSTCOPY);
}

/* What libvirt knows of a domain's run beside its XML. */
struct run_state {
	bool held;
	bool paused; /* until somebody resumes it: not by libvirt, which goes on by itself */
};

static int read_run(virDomainPtr dom, struct run_state *ret, struct vhca_error *err)
{
	int state, reason;

	if (virDomainGetState(dom, &state, &reason, 0) < 0)
		return virt_error(err, "state of the domain");
	ret->held = virt_state_is_held(state, reason);
	ret->paused = state == VIR_DOMAIN_PAUSED && !ret->held &&
		      reason != VIR_DOMAIN_PAUSED_SAVE && reason != VIR_DOMAIN_PAUSED_DUMP &&
		      reason != VIR_DOMAIN_PAUSED_SNAPSHOT &&
		      reason != VIR_DOMAIN_PAUSED_STARTING_UP &&
		      reason != VIR_DOMAIN_PAUSED_SHUTTING_DOWN;
	return 0;
}

/* Live XML, parsed. -ENOENT when the domain is not active (libvirt would answer with its stored XML
 * then). */
static int read_info(virDomainPtr dom, struct vhca_dom_info **ret, struct vhca_error *err)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;
	VHCA_AUTO_FREE char *xml = NULL;
	struct vhca_error request_error;
	struct run_state run = {.held = false};
	/* Before the XML: a guest that comes to run meanwhile is looked at again for that. */
	int r = read_run(dom, &run, err);

	if (r < 0)
		return r;
	xml = virDomainGetXMLDesc(dom, 0);
	if (!xml)
		return virt_error(err, "domain XML");
	r = vhca_domxml_parse(xml, strlen(xml), &info, &request_error, err);
	if (r < 0)
		return r;
	if (info->id < 0)
		return domain_gone(err, info->name);
	info->held = run.held;
	info->paused = run.paused;
	*ret = vhca_steal_ptr(&info);
	return 0;
}

/* What is known of it without its XML. */
static struct vhca_dom_info *unreadable(virDomainPtr dom, const struct vhca_error *why)
{
	const char *name = virDomainGetName(dom);
	struct vhca_dom_info *info;
	struct vhca_uuid uuid;
	/* unless libvirt says otherwise: nobody knows whether it runs here */
	struct run_state run = {.held = true};

	(void)virDomainGetUUID(dom, uuid.b);
	info = vhca_dom_info_unreadable(&uuid, name ? name : "", why);
	if (!info)
		return NULL;
	info->id = (int)virDomainGetID(dom);
	(void)read_run(dom, &run, NULL);
	info->held = run.held;
	info->paused = run.paused;
	return info;
}

/* As read_info(), but what cannot be read of one domain costs nobody the picture of the others.
 * That the connection was lost says nothing about the domain. */
static int look_at(virConnectPtr conn, virDomainPtr dom, struct vhca_dom_info **ret,
		   struct vhca_error *err)
{
	struct vhca_error why = VHCA_ERROR_INIT;
	int r = read_info(dom, ret, &why);

	if (r < 0 && r != -ENOENT && virConnectIsAlive(conn) == 1) {
		if (virDomainIsActive(dom) == 0)
			return domain_gone(err, "domain");
		*ret = unreadable(dom, &why);
		r = *ret ? 0 : -ENOMEM;
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

int virt_call_lookup(virConnectPtr conn, const struct vhca_uuid *uuid, virDomainPtr *ret,
		     struct vhca_error *err)
{
	*ret = virDomainLookupByUUID(conn, uuid->b);
	return *ret ? 0 : virt_call_error(err, VHCA_UUID_STR(uuid), conn);
}

int virt_call_info(virConnectPtr conn, const struct vhca_uuid *uuid, struct vhca_dom_info **ret,
		   struct vhca_error *err)
{
	VHCA_AUTO_DOMAIN dom = NULL;
	int r;

	vhca_may_block("libvirt: domain XML");
	r = virt_call_lookup(conn, uuid, &dom, err);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	return look_at(conn, dom, ret, err);
}

int virt_call_list(virConnectPtr conn, struct vhca_dom_list *ret, struct vhca_error *err)
{
	VHCA_CLEANUP(domain_array_done) struct domain_array all = {NULL, 0};
	VHCA_CLEANUP(vhca_dom_list_done) struct vhca_dom_list list = {NULL, 0};

	vhca_may_block("libvirt: list of domains");
	all.n = virConnectListAllDomains(conn, &all.domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);
	if (all.n < 0)
		return virt_call_error(err, "list of domains", conn);
	if (all.n > DOMAINS_MAX)
		return vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many_domains", E2BIG,
				      "list of domains: %d, at most %d are handled", all.n,
				      DOMAINS_MAX);
	list.info = calloc((size_t)all.n + 1, sizeof(struct vhca_dom_info *));
	if (!list.info)
		return vhca_error_no_memory(err, "list of domains");
	for (int i = 0; i < all.n; i++) {
		int r = look_at(conn, all.domains[i], &list.info[list.n], err);

		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0)
			list.n++; /* else it has stopped since */
	}
	*ret = list;
	list = (struct vhca_dom_list){NULL, 0};
	return 0;
}

/* 1: attached already, 0: not attached, -EEXIST: the alias stands for another device. */
static int find_attached(const struct vhca_dom_info *info, const struct vhca_dom_hostdev *dev,
			 struct vhca_error *err)
{
	for (unsigned int i = 0; i < info->n_hostdevs; i++) {
		const struct vhca_dom_hostdev *have = &info->hostdevs[i];

		if (strcmp(have->alias, dev->alias) != 0)
			continue;
		if (vhca_bdf_cmp(have->host, dev->host) == 0)
			return 1;
		(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "alias_in_use", 0,
				     "domain %s: %s is %s already, not %s", info->name, dev->alias,
				     VHCA_BDF_STR(have->host), VHCA_BDF_STR(dev->host));
		return -EEXIST;
	}
	return 0;
}

/* libvirt says that it found no slot; the domain's figures say what to do about it. */
int virt_call_attach(virConnectPtr conn, const struct vhca_uuid *uuid,
		     const struct vhca_dom_hostdev *dev, uint64_t *ret_called_us,
		     struct vhca_error *err)
{
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;
	VHCA_AUTO_DOMAIN dom = NULL;
	char xml[VHCA_HOSTDEV_XML_MAX], what[160];
	int r;

	vhca_may_block("libvirt: attach");
	r = vhca_domxml_hostdev(xml, sizeof(xml), dev->host, dev->alias + strlen(VHCA_ALIAS_PREFIX),
				dev->has_guest_addr ? &dev->guest : NULL);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "bad_name", -r, "attach %s",
				      dev->alias);
	r = virt_call_lookup(conn, uuid, &dom, err);
	if (r == 0)
		r = read_info(dom, &info, err);
	if (r == 0)
		r = find_attached(info, dev, err);
	if (r != 0)
		return r < 0 ? r : 0;
	if (ret_called_us)
		*ret_called_us = vhca_now_us();
	if (virDomainAttachDeviceFlags(dom, xml, VIR_DOMAIN_AFFECT_LIVE) == 0)
		return 0;
	(void)snprintf(what, sizeof(what), "domain %.60s: attach %s as %s", info->name,
		       VHCA_BDF_STR(dev->host), dev->alias);
	r = virt_call_error(err, what, conn);
	if (r == -ENOSPC)
		vhca_error_prefix(err, "domain %s: %u pcie-root-ports, %u free", info->name,
				  info->root_ports, info->free_root_ports);
	return r;
}

int virt_call_detach(virConnectPtr conn, const struct vhca_uuid *uuid, const char *alias,
		     struct vhca_error *err)
{
	VHCA_AUTO_DOMAIN dom = NULL;
	char what[160];
	int r;

	vhca_may_block("libvirt: detach");
	r = virt_call_lookup(conn, uuid, &dom, err);
	if (r < 0)
		return r;
	/* Before the call: every function of libvirt forgets the last error, even this one. */
	(void)snprintf(what, sizeof(what), "domain %.60s: detach %s", virDomainGetName(dom), alias);
	if (virDomainDetachDeviceAlias(dom, alias, VIR_DOMAIN_AFFECT_LIVE) == 0)
		return 0;
	return virt_call_error(err, what, conn);
}

/* ---- the guest agent ---- */

static int ask_guest(virDomainPtr dom, const struct vhca_qga_ask *ask, struct vhca_qga_answer *ret,
		     struct vhca_error *err)
{
	VHCA_AUTO_FREE char *command = vhca_qga_command(ask);
	VHCA_AUTO_FREE char *answer = NULL;
	char what[128];
	int r;

	if (!command)
		return vhca_error_no_memory(err, "guest agent");
	/* Before the call: every function of libvirt forgets the last error, even this one. */
	(void)snprintf(what, sizeof(what), "%.60s", virDomainGetName(dom));
	answer = virDomainQemuAgentCommand(dom, command, ANSWER_SECONDS, 0);
	if (!answer)
		return virt_agent_error(err, what);
	r = vhca_qga_read(ask, answer, ret, err);
	if (r < 0)
		vhca_error_prefix(err, "%s", what);
	return r;
}

int virt_call_qga(const char *uri, const struct vhca_uuid *uuid, const struct vhca_qga_ask *ask,
		  struct vhca_qga_answer *ret, struct vhca_error *err)
{
	VHCA_AUTO_CONNECTION conn = NULL;
	VHCA_AUTO_DOMAIN dom = NULL;
	int r;

	vhca_may_block("libvirt: guest agent");
	r = virt_connect(uri, &conn, err);
	if (r == 0)
		r = virt_call_lookup(conn, uuid, &dom, err);
	return r < 0 ? r : ask_guest(dom, ask, ret, err);
}
