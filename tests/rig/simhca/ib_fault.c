// SPDX-License-Identifier: GPL-2.0
/*
 * The test's second way in: /sys/kernel/debug/simhca/<bdf>/faults. Any file of the iov/ tree fails
 * or takes its time:
 *
 *   read|write PATTERN ERRNO MS TIMES [applied|lost]
 *   clear
 *
 * PATTERN is a glob on the path below iov/, where * matches slashes too; ERRNO 0 succeeds; the
 * access takes MS first; TIMES 0 is until clear. applied: a write fails, though it has taken
 * effect. lost: it succeeds without effect.
 */
#include "iov_dir.h"

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/glob.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#define FAULTS_MAX  16
#define MAX_COMMAND 128

struct fault {
	bool write, applied, lost;
	char pattern[64];
	int error;
	unsigned int ms, times;
	unsigned int hits;
};

struct simhca_faults {
	struct mutex lock;
	struct fault fault[FAULTS_MAX];
	int count;
	struct dentry *file;
};

static int parse(const char *text, struct fault *f)
{
	char op[8], word[16] = "";

	if (sscanf(text, "%7s %63s %d %u %u %15s", op, f->pattern, &f->error, &f->ms, &f->times,
		   word) < 5)
		return -EINVAL;
	f->write = !strcmp(op, "write");
	f->applied = !strcmp(word, "applied");
	f->lost = !strcmp(word, "lost");
	if ((!f->write && strcmp(op, "read")) || (word[0] && !f->applied && !f->lost) ||
	    f->error < 0 || f->error >= MAX_ERRNO)
		return -EINVAL;
	return 0;
}

static int run_command(struct simhca_faults *faults, const char *text)
{
	struct fault f = {};
	int ret = 0;

	if (!strcmp(text, "clear")) {
		mutex_lock(&faults->lock);
		faults->count = 0;
		mutex_unlock(&faults->lock);
		return 0;
	}
	ret = parse(text, &f);
	if (ret)
		return ret;
	mutex_lock(&faults->lock);
	if (faults->count < FAULTS_MAX)
		faults->fault[faults->count++] = f;
	else
		ret = -ENOSPC;
	mutex_unlock(&faults->lock);
	return ret;
}

static ssize_t faults_write(struct file *file, const char __user *buf, size_t len, loff_t *pos)
{
	struct simhca_faults *faults = ((struct seq_file *)file->private_data)->private;
	char text[MAX_COMMAND];
	int ret;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, len))
		return -EFAULT;
	text[len] = '\0';
	ret = run_command(faults, strim(text));
	return ret ? ret : len;
}

static int faults_show(struct seq_file *s, void *unused)
{
	struct simhca_faults *faults = s->private;
	int i;

	mutex_lock(&faults->lock);
	for (i = 0; i < faults->count; i++) {
		const struct fault *f = &faults->fault[i];

		seq_printf(s, "%s %s %d %u %u hits %u\n", f->write ? "write" : "read", f->pattern,
			   f->error, f->ms, f->times, f->hits);
	}
	mutex_unlock(&faults->lock);
	return 0;
}

static int faults_open(struct inode *inode, struct file *file)
{
	return single_open(file, faults_show, inode->i_private);
}

static const struct file_operations faults_fops = {
	.owner = THIS_MODULE,
	.open = faults_open,
	.read = seq_read,
	.write = faults_write,
	.release = single_release,
};

/* Where the file is below iov/: ib_iov_vf.c:function_name, add_port_entries. */
static void path_of(const struct simhca_iov_file *f, char *buf, size_t size)
{
	int len = 0;

	if (f->kind->of_function)
		len = scnprintf(buf, size, "%.8s%.2d.%d/", pci_name(f->dev->hca->pdev), f->fn / 8,
				f->fn % 8);
	len += scnprintf(buf + len, size - len, "ports/%d/", f->port);
	if (f->kind->directory)
		len += scnprintf(buf + len, size - len, "%s/", f->kind->directory);
	scnprintf(buf + len, size - len, "%s", f->name);
}

/* The first that is armed for this access strikes. */
static bool strikes(struct simhca_faults *faults, const char *path, bool write, struct fault *ret)
{
	bool found = false;
	int i;

	mutex_lock(&faults->lock);
	for (i = 0; i < faults->count && !found; i++) {
		struct fault *f = &faults->fault[i];

		if (f->write != write || (f->times && f->hits >= f->times) ||
		    !glob_match(f->pattern, path))
			continue;
		f->hits++;
		*ret = *f;
		found = true;
	}
	mutex_unlock(&faults->lock);
	return found;
}

static bool strikes_file(const struct simhca_iov_file *f, bool write, struct fault *ret)
{
	char path[64];

	*ret = (struct fault){};
	if (!READ_ONCE(f->dev->faults->count))
		return false;
	path_of(f, path, sizeof(path));
	if (!strikes(f->dev->faults, path, write, ret))
		return false;
	if (ret->ms)
		msleep(ret->ms);
	return true;
}

ssize_t simhca_iov_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);
	struct fault fault;

	if (strikes_file(f, false, &fault) && fault.error)
		return -fault.error;
	return f->kind->show(kobj, attr, buf);
}

ssize_t simhca_iov_store(struct kobject *kobj, struct kobj_attribute *attr, const char *buf,
			 size_t len)
{
	struct simhca_iov_file *f = simhca_iov_file(attr);
	struct fault fault;
	ssize_t ret = len;

	strikes_file(f, true, &fault);
	if (!fault.lost && (!fault.error || fault.applied))
		ret = f->kind->store(kobj, attr, buf, len);
	return fault.error ? -fault.error : ret;
}

int simhca_faults_create(struct simhca_ib *dev)
{
	dev->faults = kzalloc(sizeof(*dev->faults), GFP_KERNEL);
	if (!dev->faults)
		return -ENOMEM;
	mutex_init(&dev->faults->lock);
	dev->faults->file =
		debugfs_create_file("faults", 0600, dev->hca->debugfs, dev->faults, &faults_fops);
	return 0;
}

/* After the files of iov/ have gone. */
void simhca_faults_destroy(struct simhca_ib *dev)
{
	if (!dev->faults)
		return;
	debugfs_remove(dev->faults->file);
	kfree(dev->faults);
	dev->faults = NULL;
}
