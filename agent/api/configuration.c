/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/api/configuration.h"

#include <errno.h>
#include <stdlib.h>

#include <systemd/sd-daemon.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/loop/strand.h"

#define END_MS 200 /* a reading that takes longer outlives the agent */

struct vhca_reload {
	struct vhca_reload_args args;
	struct vhca_strand *strand; /* NULL: at its end */
	bool started;		    /* systemd was told that the agent is ready */
};

struct job {
	struct vhca_reload *rl;
	const char *path;
	struct vhca_conf *conf;
	struct vhca_credentials credentials;
	int rc;
	struct vhca_error err;
	void (*fn)(void *arg, const struct vhca_error *err);
	void *arg;
};

static void work(void *arg)
{
	struct job *j = arg;

	j->rc = vhca_conf_load(j->path, &j->conf, &j->err);
	if (j->rc == 0)
		j->rc = vhca_credentials_load(j->conf, &j->credentials, &j->err);
}

static int take_conf(struct vhca_reload *rl, struct job *j)
{
	const char *fixed;

	if (!rl->strand) /* and the file may not have been read */
		return vhca_error_set(&j->err, VHCA_ERR_UNAVAILABLE, "shutting_down", 0,
				      "the agent ends");
	if (j->rc < 0)
		return j->rc;
	fixed = vhca_conf_fixed_difference(rl->args.conf, j->conf);
	if (fixed) {
		(void)vhca_error_set(&j->err, VHCA_ERR_CONFLICT, "needs_restart", 0,
				     "%s changes only by a restart", fixed);
		vhca_error_hint(&j->err, "systemctl restart vhcad touches no guest");
		return -EBUSY;
	}
	vhca_credentials_replace(rl->args.credentials, &j->credentials);
	*rl->args.conf = *j->conf;
	rl->args.apply(rl->args.ctx);
	return 0;
}

static void log_refusal(const struct vhca_error *err)
{
	vhca_log_error("reload refused, the old configuration stays: %s%s%s", err->msg,
		       err->hint[0] ? "; " : "", err->hint);
}

static void done(void *arg)
{
	VHCA_AUTO_FREE struct job *j = arg;
	int r = take_conf(j->rl, j);

	if (r < 0)
		log_refusal(&j->err);
	else
		vhca_log_notice("configuration reloaded");
	if (j->rl->strand && j->rl->started)
		(void)sd_notify(0, "READY=1");
	if (j->fn)
		j->fn(j->arg, r < 0 ? &j->err : NULL);
	vhca_credentials_done(&j->credentials);
	free(j->conf);
}

int vhca_reload_begin(struct vhca_reload *rl, void (*fn)(void *arg, const struct vhca_error *err),
		      void *arg, struct vhca_error *err)
{
	struct job *j = calloc(1, sizeof(*j));
	int r = -ENOMEM;

	if (j) {
		*j = (struct job){.rl = rl, .path = rl->args.path, .fn = fn, .arg = arg};
		r = vhca_strand_submit(rl->strand, work, done, j);
	}
	if (r < 0) {
		free(j);
		r = vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many_reloads", -r,
				   "the configuration cannot be read now");
		log_refusal(err);
		return r;
	}
	if (rl->started)
		(void)sd_notify(0, "RELOADING=1"); /* what ends it comes from the loop, so later */
	return 0;
}

int vhca_reload_new(const struct vhca_reload_args *args, struct vhca_reload **ret)
{
	struct vhca_reload *rl = calloc(1, sizeof(*rl));
	int r = rl ? vhca_strand_new(args->loop, "conf", &rl->strand) : -ENOMEM;

	if (r < 0) {
		free(rl);
		return r;
	}
	rl->args = *args;
	*ret = rl;
	return 0;
}

void vhca_reload_started(struct vhca_reload *rl)
{
	rl->started = true;
}

struct vhca_reload *vhca_reload_free(struct vhca_reload *rl)
{
	struct vhca_strand *strand;

	if (!rl)
		return NULL;
	strand = rl->strand;
	rl->strand = NULL;
	(void)vhca_strand_free(strand, END_MS);
	free(rl);
	return NULL;
}
