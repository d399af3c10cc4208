/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/vfs_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/loop/strand.h"

#define SETTLE_MS    20 /* VFs appear one by one */
#define TEXT_MAX     (VHCA_PFS_MAX * VHCA_VFS_MAX * VHCA_BDF_STRLEN)
#define STOP_WAIT_MS 2000

struct vhca_vfs_file {
	struct vhca_engine *engine;
	struct vhca_strand *strand;
	struct vhca_timer *timer;
	char run_path[128], kept_path[128];
	char *written; /* what the files hold, as far as we know */
	bool failing;  /* told already */
};

struct write_job {
	struct vhca_vfs_file *f;
	char *text;
	const char *failed; /* the path that could not be written, and why not */
	int rc;
};

static void write_work(void *arg)
{
	struct write_job *job = arg;
	/* A user's own libvirtd runs the hook as that user, who reads the list of this boot. */
	const struct {
		const char *path;
		mode_t mode;
	} files[] = {{job->f->run_path, 0644}, {job->f->kept_path, 0640}};

	/* Each for itself: a state disk that is full keeps nobody from the list of this boot. */
	for (unsigned int i = 0; i < VHCA_ARRAY_SIZE(files); i++) {
		int r = vhca_write_file_atomic(files[i].path, job->text, strlen(job->text),
					       files[i].mode);

		if (r < 0) {
			job->rc = r;
			job->failed = files[i].path;
		}
	}
}

static void write_done(void *arg)
{
	VHCA_AUTO_FREE struct write_job *job = arg;

	if (job->rc < 0) {
		if (!job->f->failing)
			vhca_log_error("%s: cannot write: %s", job->failed, strerror(-job->rc));
		job->f->failing = true;
		/* One of the two may hold the text: nothing is known of them any more. */
		free(job->f->written);
		job->f->written = NULL;
		free(job->text);
		vhca_timer_arm_ms(job->f->timer, 1000);
		return;
	}
	job->f->failing = false;
	free(job->f->written);
	job->f->written = job->text;
}

static char *list_vfs(struct vhca_engine *e)
{
	const struct vhca_model *m = vhca_engine_model(e);
	char *text = malloc(TEXT_MAX);
	const struct vhca_vf *vf;
	struct vhca_strbuf sb;

	if (!text)
		return NULL;
	vhca_strbuf_init(&sb, text, TEXT_MAX);
	VHCA_FOREACH_VF (vf, m)
		if (vhca_engine_guards(e, vf))
			vhca_strbuf_add(&sb, "%s\n", VHCA_BDF_STR(vf->bdf));
	return text;
}

static void on_timer(void *arg)
{
	struct vhca_vfs_file *f = arg;
	struct write_job *job;
	char *text = list_vfs(f->engine);

	if (!text || (f->written && strcmp(text, f->written) == 0)) {
		free(text);
		return;
	}
	job = calloc(1, sizeof(*job));
	if (job)
		*job = (struct write_job){.f = f, .text = text};
	if (!job || vhca_strand_submit(f->strand, write_work, write_done, job) < 0) {
		free(job);
		free(text);
	}
}

void vhca_vfs_file_changed(struct vhca_vfs_file *f)
{
	vhca_timer_arm_ms(f->timer, SETTLE_MS);
}

int vhca_vfs_file_new(struct vhca_loop *loop, const struct vhca_conf *conf,
		      struct vhca_engine *engine, struct vhca_vfs_file **ret,
		      struct vhca_error *err)
{
	struct vhca_vfs_file *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return vhca_error_no_memory(err, conf->run_dir);
	f->engine = engine;
	(void)snprintf(f->run_path, sizeof(f->run_path), "%s/vfs", conf->run_dir);
	(void)snprintf(f->kept_path, sizeof(f->kept_path), "%s/vfs", conf->state_dir);
	(void)vhca_sweep_leftovers(f->run_path, 0);
	(void)vhca_sweep_leftovers(f->kept_path, 0);
	r = vhca_strand_new(loop, "vfs file", &f->strand);
	if (r == 0)
		r = vhca_timer_new(loop, "vfs file", on_timer, f, &f->timer);
	if (r < 0) {
		vhca_vfs_file_free(f);
		return vhca_error_set(err, VHCA_ERR_INTERNAL, "no_memory", -r, "%s/vfs",
				      conf->run_dir);
	}
	*ret = f;
	return 0;
}

struct vhca_vfs_file *vhca_vfs_file_free(struct vhca_vfs_file *f)
{
	if (!f)
		return NULL;
	vhca_timer_free(f->timer);
	if (!vhca_strand_free(f->strand, STOP_WAIT_MS))
		return NULL; /* its job still refers to us */
	free(f->written);
	free(f);
	return NULL;
}
