/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/migrate.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <libvirt/virterror.h>

#include "agent/libvirt/call.h"
#include "agent/libvirt/error.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/role.h"

struct params {
	virTypedParameterPtr list;
	int n;
};

static void params_done(struct params *p)
{
	virTypedParamsFree(p->list, p->n);
}
#define AUTO_PARAMS VHCA_CLEANUP(params_done) struct params

/* ---- migrate ---- */

/* PERSIST_DEST would make a transient domain permanent over there. */
static int migrate_flags(virDomainPtr dom, const struct vhca_conf_copy *how, unsigned int *ret,
			 struct vhca_error *err)
{
	int persistent = virDomainIsPersistent(dom);

	if (persistent < 0)
		return virt_error(err, "is the domain persistent?");
	*ret = VIR_MIGRATE_LIVE | VIR_MIGRATE_PEER2PEER;
	if (persistent)
		*ret |= VIR_MIGRATE_PERSIST_DEST | VIR_MIGRATE_UNDEFINE_SOURCE;
	if (how->auto_converge)
		*ret |= VIR_MIGRATE_AUTO_CONVERGE;
	if (how->connections)
		*ret |= VIR_MIGRATE_PARALLEL;
	if (how->tls)
		*ret |= VIR_MIGRATE_TLS;
	return 0;
}

static int migrate_params(const char *migrate_uri, const struct vhca_conf_copy *how,
			  struct params *ret)
{
	int max = 0;

	if (*migrate_uri && virTypedParamsAddString(&ret->list, &ret->n, &max,
						    VIR_MIGRATE_PARAM_URI, migrate_uri) < 0)
		return -1;
	if (how->bandwidth_mib &&
	    virTypedParamsAddULLong(&ret->list, &ret->n, &max, VIR_MIGRATE_PARAM_BANDWIDTH,
				    how->bandwidth_mib) < 0)
		return -1;
	return how->connections ? virTypedParamsAddInt(&ret->list, &ret->n, &max,
						       VIR_MIGRATE_PARAM_PARALLEL_CONNECTIONS,
						       (int)how->connections)
				: 0;
}

int virt_call_migrate(virConnectPtr conn, const struct vhca_uuid *uuid, const char *dest_uri,
		      const char *migrate_uri, const struct vhca_conf_copy *how,
		      uint64_t *ret_called_us, struct vhca_error *err)
{
	VHCA_AUTO_DOMAIN dom = NULL;
	AUTO_PARAMS params = {NULL, 0};
	unsigned int flags = 0;
	char what[160];
	int r;

	vhca_may_block("libvirt: migrate");
	if (!*dest_uri)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_uri", EINVAL,
				      "migration URIs: one is missing or longer than %d characters",
				      VIRT_URI_MAX - 1);
	r = virt_call_lookup(conn, uuid, &dom, err);
	if (r == 0)
		r = migrate_flags(dom, how, &flags, err);
	if (r < 0)
		return r;
	/* Before the call: every function of libvirt forgets the last error, even this one. */
	(void)snprintf(what, sizeof(what), "domain %.60s: migrate to %.60s", virDomainGetName(dom),
		       dest_uri);
	if (ret_called_us)
		*ret_called_us = vhca_now_us();
	if (migrate_params(migrate_uri, how, &params) == 0 &&
	    virDomainMigrateToURI3(dom, dest_uri, params.list, (unsigned int)params.n, flags) == 0)
		return 0;
	return virt_migrate_error(err, what, conn);
}

/* ---- abort ---- */

int virt_call_abort(virConnectPtr conn, const struct vhca_uuid *uuid, struct vhca_error *err)
{
	VHCA_AUTO_DOMAIN dom = NULL;
	char what[160];
	int r;

	vhca_may_block("libvirt: abort job");
	r = virt_call_lookup(conn, uuid, &dom, err);
	if (r < 0)
		return r;
	(void)snprintf(what, sizeof(what), "domain %.60s: abort job", virDomainGetName(dom));
	if (virDomainAbortJob(dom) == 0 || virt_has_no_job())
		return 0;
	return virt_call_error(err, what, conn);
}

/* ---- job ---- */

static uint64_t figure(const struct params *params, const char *name)
{
	unsigned long long value = 0;

	(void)virTypedParamsGetULLong(params->list, params->n, name, &value); /* absent: 0 */
	return value;
}

static int read_job(virDomainPtr dom, struct vhca_virt_job *job, struct vhca_error *err)
{
	AUTO_PARAMS stats = {NULL, 0};
	int type = VIR_DOMAIN_JOB_NONE, operation = VIR_DOMAIN_JOB_OPERATION_UNKNOWN;

	if (virDomainGetJobStats(dom, &type, &stats.list, &stats.n, 0) < 0)
		/* "available only on the source host": the domain is on its way in. */
		return virGetLastErrorCode() == VIR_ERR_OPERATION_UNSUPPORTED
			       ? 0
			       : virt_error(err, "job of the domain");
	if (type != VIR_DOMAIN_JOB_BOUNDED && type != VIR_DOMAIN_JOB_UNBOUNDED)
		return 0;
	(void)virTypedParamsGetInt(stats.list, stats.n, VIR_DOMAIN_JOB_OPERATION, &operation);
	job->migrating_out = operation == VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT;
	job->total_bytes = figure(&stats, VIR_DOMAIN_JOB_MEMORY_TOTAL);
	job->processed_bytes = figure(&stats, VIR_DOMAIN_JOB_MEMORY_PROCESSED);
	job->remaining_bytes = figure(&stats, VIR_DOMAIN_JOB_MEMORY_REMAINING);
	return 0;
}

static int read_state(virDomainPtr dom, struct vhca_virt_job *job, struct vhca_error *err)
{
	int active = virDomainIsActive(dom);

	if (active < 0 || virDomainGetState(dom, &job->state, &job->reason, 0) < 0)
		return virt_error(err, "state of the domain");
	/* It may have stopped between the two. */
	job->active = active && job->state != VIR_DOMAIN_SHUTOFF;
	job->held = virt_state_is_held(job->state, job->reason);
	return job->active ? read_job(dom, job, err) : 0;
}

int virt_call_job(virConnectPtr conn, const struct vhca_uuid *uuid, struct vhca_virt_job *ret,
		  struct vhca_error *err)
{
	VHCA_AUTO_DOMAIN dom = NULL;
	struct vhca_virt_job job = {.active = false};
	struct vhca_error e = VHCA_ERROR_INIT;
	int r;

	vhca_may_block("libvirt: job");
	r = virt_call_lookup(conn, uuid, &dom, &e);
	if (r == 0)
		r = read_state(dom, &job, &e);
	if (r == -ENOENT) { /* stopped while we looked, or never there */
		job = (struct vhca_virt_job){.active = false};
		r = 0;
	}
	if (r < 0) {
		if (err)
			*err = e;
		return r;
	}
	*ret = job;
	return 0;
}

/* ---- marker ---- */

/* A transient domain never does. */
static int starts_by_itself(virDomainPtr dom, bool *ret, struct vhca_error *err)
{
	int persistent = virDomainIsPersistent(dom), autostart = 0;

	if (persistent < 0 || (persistent && virDomainGetAutostart(dom, &autostart) < 0))
		return virt_error(err, "does the domain start by itself?");
	*ret = autostart;
	return 0;
}

/* No reason to leave the marker: the guest has arrived, and has its VFs. */
static void start_by_itself(virDomainPtr dom)
{
	char name[64], uuid[VIR_UUID_STRING_BUFLEN] = "";

	/* Before the call: this function, too, forgets the last error. */
	(void)snprintf(name, sizeof(name), "%s", virDomainGetName(dom));
	(void)virDomainGetUUIDString(dom, uuid);
	if (virDomainSetAutostart(dom, 1) < 0)
		vhca_log_warning("domain %s was started by itself where it came from, and is not "
				 "here: %s (virsh autostart %s)",
				 name, virGetLastErrorMessage(), uuid);
}

int virt_call_no_start(virConnectPtr conn, const struct vhca_uuid *uuid, struct vhca_error *err)
{
	VHCA_AUTO_DOMAIN dom = NULL;
	bool starts = false;
	char what[160];
	int r;

	vhca_may_block("libvirt: autostart");
	r = virt_call_lookup(conn, uuid, &dom, err);
	if (r == 0)
		r = starts_by_itself(dom, &starts, err);
	if (r == 0 && starts) {
		(void)snprintf(what, sizeof(what), "domain %.60s: autostart off",
			       virDomainGetName(dom));
		if (virDomainSetAutostart(dom, 0) < 0)
			r = virt_call_error(err, what, conn);
	}
	return r == -ENOENT ? 0 : r;
}

int virt_call_marker(virConnectPtr conn, const struct vhca_uuid *uuid,
		     const struct vhca_uuid *migration, bool autostart, struct vhca_error *err)
{
	VHCA_AUTO_DOMAIN dom = NULL;
	char xml[80 + VHCA_UUID_STRLEN], what[160];
	bool starts = false;
	int r;

	vhca_may_block("libvirt: marker");
	r = virt_call_lookup(conn, uuid, &dom, err);
	if (r == 0 && migration && autostart)
		r = starts_by_itself(dom, &starts, err);
	if (r < 0)
		return r;
	if (!migration && autostart)
		start_by_itself(dom);
	(void)snprintf(what, sizeof(what), "domain %.60s: %s marker %s", virDomainGetName(dom),
		       migration ? "set" : "remove", VHCA_AWAY_NS);
	if (migration)
		(void)snprintf(xml, sizeof(xml), "<away migration='%s'%s/>",
			       VHCA_UUID_STR(migration), starts ? " autostart='yes'" : "");
	/* libvirt adds prefix and namespace. Only the running domain: the marker ends with it. */
	if (virDomainSetMetadata(dom, VIR_DOMAIN_METADATA_ELEMENT, migration ? xml : NULL, "vhca",
				 VHCA_AWAY_NS, VIR_DOMAIN_AFFECT_LIVE) == 0)
		return 0;
	return virt_call_error(err, what, conn);
}
