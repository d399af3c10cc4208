/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sriov/enable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "sriov/usage.h"

VHCA_DEFINE_CLEANUP(struct vhca_sysfs_dir, vhca_sysfs_closedir)

#define AUTO_DIR      VHCA_CLEANUP(vhca_sysfs_closedirp)
#define MODPROBE_CONF "/etc/modprobe.d/vhcad-mlx4.conf"

/*
 * What each errno of a write to sriov_numvfs means (drivers/pci/iov.c: sriov_numvfs_store,
 * sriov_enable), and the way out.
 */
static const struct numvfs_errno {
	int errnum;
	enum vhca_err kind;
	const char *code;
	const char *what;
	const char *hint;
} numvfs_errnos[] = {
	{EINVAL, VHCA_ERR_DEVICE, "sriov_refused",
	 "the driver or the device refused this number of VFs",
	 "look into dmesg for the driver's reason; try fewer VFs"},
	{ERANGE, VHCA_ERR_EXHAUSTED, "too_many_vfs",
	 "more VFs than the adapter offers (sriov_totalvfs)",
	 "lower vfs in the configuration, or raise NUM_OF_VFS with mlxconfig and reset the "
	 "firmware"},
	{ENOENT, VHCA_ERR_DEVICE, "no_sriov_configure",
	 "no driver is bound, or the driver cannot create VFs at run time",
	 "bind mlx5_core to the adapter; with mlx4 the module parameters decide"},
	{EBUSY, VHCA_ERR_CONFLICT, "vf_count_differs", "the adapter has VFs already",
	 "stop the guests that use them, write 0 to sriov_numvfs, try again"},
	{ENOMEM, VHCA_ERR_EXHAUSTED, "no_mmio_or_bus",
	 "not enough MMIO space or PCI bus numbers behind the bridge, or out of memory",
	 "turn on SR-IOV and 'above 4G decoding' in the BIOS, or boot with pci=realloc"},
	{EIO, VHCA_ERR_DEVICE, "sriov_io_error", "the device reports inconsistent SR-IOV registers",
	 "look into dmesg; update the firmware or reset the adapter (mlxfwreset)"},
	{ENODEV, VHCA_ERR_DEVICE, "sriov_no_device",
	 "the device or the function it depends on has gone",
	 "look into dmesg and lspci; the adapter may have been reset or unplugged"},
	{ENOSYS, VHCA_ERR_DEVICE, "no_pci_iov", "this kernel is built without PCI SR-IOV",
	 "boot a kernel with CONFIG_PCI_IOV=y"},
	{EPERM, VHCA_ERR_DENIED, "sriov_denied", "the driver says that VFs are assigned to guests",
	 "stop the guests that use them first"},
	{EACCES, VHCA_ERR_DENIED, "sriov_denied", "no permission to write it",
	 "run as root with a writable /sys (systemd: ProtectKernelTunables=no)"},
	{EROFS, VHCA_ERR_DENIED, "sriov_denied", "sysfs is mounted read-only here",
	 "remount it writable, or run outside the container"},
	/*
	 * The rest is what mlx5's firmware commands give back (mlx5/core/cmd.c: cmd_status_to_err,
	 * mlx5/core/sriov.c).
	 */
	{EAGAIN, VHCA_ERR_EXHAUSTED, "firmware_resources",
	 "the firmware has no resources left for so many VFs",
	 "try fewer VFs; lower NUM_VF_MSIX or PF_LOG_BAR_SIZE with mlxconfig"},
	{EOPNOTSUPP, VHCA_ERR_DEVICE, "sriov_unsupported",
	 "the driver does not create VFs on this function (SmartNIC host, or multi-host slave)",
	 "enable them on the function that manages the adapter's switch"},
	{ENOLINK, VHCA_ERR_DEVICE, "firmware_gone",
	 "the firmware takes no commands (adapter in reset or in error)",
	 "look into dmesg for mlx5_core health; mlxfwreset, or a power cycle"},
	{ETIMEDOUT, VHCA_ERR_DEVICE, "firmware_timeout", "the firmware did not answer in time",
	 "look into dmesg; reset the adapter (mlxfwreset) or the host"},
};

static int numvfs_error(const struct vhca_pf_facts *pf, uint16_t count, int errnum,
			struct vhca_error *err)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(numvfs_errnos); i++) {
		const struct numvfs_errno *e = &numvfs_errnos[i];

		if (e->errnum != errnum)
			continue;
		(void)vhca_error_set(err, e->kind, e->code, errnum, "%s: enable %u VFs: %s",
				     VHCA_BDF_STR(pf->bdf), count, e->what);
		vhca_error_hint(err, "%s", e->hint);
		return -errnum;
	}
	(void)vhca_error_set(err, VHCA_ERR_DEVICE, "sriov_failed", errnum, "%s: enable %u VFs",
			     VHCA_BDF_STR(pf->bdf), count);
	vhca_error_hint(err, "look into dmesg for the driver's reason");
	return -errnum;
}

/* ---- mlx4: module parameters ---- */

/*
 * A byte array parameter reads "4", "1,2" or "1,2,0" (kernel/params.c: param_array_get), and is
 * empty when it was not given (array of length 0). Only the single value is legal on InfiniBand
 * ports. MLNX_OFED has strings with PCI addresses here.
 */
static int read_param(struct vhca_sysfs *sys, const char *name, char *buf, size_t size)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	int r = vhca_sysfs_opendir(sys, "module/mlx4_core/parameters", &dir);

	if (r == 0)
		r = vhca_sysfs_read(dir, name, buf, size);
	return r < 0 ? r : 0;
}

static bool param_is(const char *text, uint16_t wanted)
{
	uint32_t value;

	if (text[0] == '\0')
		return wanted == 0;
	return vhca_parse_u32(text, 10, UINT16_MAX, &value) == 0 && value == wanted;
}

static void hint_modprobe(struct vhca_error *err, uint16_t count)
{
	vhca_error_hint(
		err,
		"put 'options mlx4_core num_vfs=%u probe_vf=0' into " MODPROBE_CONF
		" (and num_vfs into no other file there), run 'update-initramfs -u -k all', "
		"then reboot (or reload mlx4_core when no guest uses it)",
		count);
}

static enum vhca_enable_action plan_mlx4(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf,
					 uint16_t count, struct vhca_error *err)
{
	char text[128] = "";
	int r = read_param(sys, "num_vfs", text, sizeof(text));

	if (r < 0) {
		(void)vhca_error_set(err, VHCA_ERR_DEVICE, "no_module_params", -r,
				     "%s: read parameter num_vfs of mlx4_core",
				     VHCA_BDF_STR(pf->bdf));
		hint_modprobe(err, count);
		return VHCA_ENABLE_RELOAD;
	}
	if (!param_is(text, count)) {
		(void)vhca_error_set(
			err, VHCA_ERR_CONFLICT, "module_params_differ", EINVAL,
			"%s: has %u VFs, %u wanted; mlx4_core was loaded with num_vfs='%.40s'",
			VHCA_BDF_STR(pf->bdf), pf->num_vfs, count, text);
		hint_modprobe(err, count);
		return VHCA_ENABLE_RELOAD;
	}
	(void)vhca_error_set(err, VHCA_ERR_DEVICE, "params_without_effect", EIO,
			     "%s: mlx4_core was loaded with num_vfs=%u, but the adapter has %u VFs",
			     VHCA_BDF_STR(pf->bdf), count, pf->num_vfs);
	vhca_error_hint(err,
			"dmesg says why (search mlx4_core): NUM_OF_VFS in the firmware too small, "
			"SR-IOV off in the BIOS, or 64 and more VFs on old firmware");
	return VHCA_ENABLE_RELOAD;
}

/*
 * The driver of the host must not take VFs for itself at boot; binding sorts it out, so this is
 * advice.
 */
static void advise_probe_vf(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf)
{
	char text[128] = "";

	if (read_param(sys, "probe_vf", text, sizeof(text)) == 0 && !param_is(text, 0))
		vhca_log_notice("%s: mlx4_core was loaded with probe_vf='%s': the host's driver "
				"takes VFs at "
				"boot; set probe_vf=0 in " MODPROBE_CONF,
				VHCA_BDF_STR(pf->bdf), text);
}

/* ---- both families ---- */

static enum vhca_enable_action refuse_limit(const struct vhca_pf_facts *pf, uint16_t count,
					    struct vhca_error *err)
{
	if (pf->total_vfs == 0) {
		(void)vhca_error_set(err, VHCA_ERR_DEVICE, "sriov_off", EOPNOTSUPP,
				     "%s: the adapter offers no VFs", VHCA_BDF_STR(pf->bdf));
		vhca_error_hint(
			err,
			"mlxconfig -d %s set SRIOV_EN=1 NUM_OF_VFS=%u, enable SR-IOV in the BIOS, "
			"then reboot",
			VHCA_BDF_STR(pf->bdf), count);
		return VHCA_ENABLE_REFUSED;
	}
	(void)vhca_error_set(err, VHCA_ERR_EXHAUSTED, "too_many_vfs", ERANGE,
			     "%s: %u VFs wanted, the adapter offers %u (and vhcad uses at most %d)",
			     VHCA_BDF_STR(pf->bdf), count, pf->total_vfs, VHCA_VFS_MAX);
	vhca_error_hint(err, "lower vfs in the configuration, or raise NUM_OF_VFS with mlxconfig "
			     "and reset the firmware");
	return VHCA_ENABLE_REFUSED;
}

/* Only VFs on vfio-pci, or on nothing, can be known to be unused. */
static enum vhca_enable_action plan_replace(const struct vhca_pf_facts *pf, uint16_t count,
					    struct vhca_error *err)
{
	for (unsigned int i = 0; i < pf->n_vfs; i++) {
		if (pf->vfs[i].driver[0] == '\0' || strcmp(pf->vfs[i].driver, "vfio-pci") == 0)
			continue;
		(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_count_differs", EBUSY,
				     "%s: has %u VFs, %u wanted, and %s is on %s: this host may "
				     "use it",
				     VHCA_BDF_STR(pf->bdf), pf->num_vfs, count,
				     VHCA_BDF_STR(pf->vfs[i].bdf), pf->vfs[i].driver);
		vhca_error_hint(err, "set vfs = %u in the configuration, or unbind it from %s",
				pf->num_vfs, pf->vfs[i].driver);
		return VHCA_ENABLE_REFUSED;
	}
	(void)vhca_error_set(err, VHCA_ERR_CONFLICT, "vf_count_differs", EBUSY,
			     "%s: has %u VFs, %u wanted", VHCA_BDF_STR(pf->bdf), pf->num_vfs,
			     count);
	vhca_error_hint(err, "set vfs = %u in the configuration, or take the VFs from all guests",
			pf->num_vfs);
	return VHCA_ENABLE_REPLACE;
}

enum vhca_enable_action vhca_enable_plan(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf,
					 uint16_t count, struct vhca_error *err)
{
	if (count == pf->num_vfs)
		return VHCA_ENABLE_NOTHING;
	if (count > pf->total_vfs || count > VHCA_VFS_MAX)
		return refuse_limit(pf, count, err);
	if (pf->family == VHCA_FAMILY_MLX4)
		return plan_mlx4(sys, pf, count, err);
	return pf->num_vfs == 0 ? VHCA_ENABLE_WRITE : plan_replace(pf, count, err);
}

static int open_pf(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf,
		   struct vhca_sysfs_dir **ret, struct vhca_error *err)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "bus/pci/devices/%s", VHCA_BDF_STR(pf->bdf));
	r = vhca_sysfs_opendir(sys, path, ret);
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_NOT_FOUND, "pf_gone", -r, "%s: open",
				      VHCA_BDF_STR(pf->bdf));
	return 0;
}

static int write_numvfs(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf, uint16_t count,
			struct vhca_error *err)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	char text[8];
	int r = open_pf(sys, pf, &dir, err);

	if (r < 0)
		return r;
	/*
	 * First, so that the host's mlx5_core is not bound to each VF inside the next write. Stays
	 * 0 whatever happens then: a later try, by hand or by us, wants it too.
	 */
	if (pf->autoprobe) {
		r = vhca_sysfs_write(dir, "sriov_drivers_autoprobe", "0");
		if (r < 0)
			return vhca_error_set(err, VHCA_ERR_DEVICE, "autoprobe_failed", -r,
					      "%s: write 0 to sriov_drivers_autoprobe",
					      VHCA_BDF_STR(pf->bdf));
	}
	snprintf(text, sizeof(text), "%u", count);
	r = vhca_sysfs_write(dir, "sriov_numvfs", text);
	return r < 0 ? numvfs_error(pf, count, -r, err) : 0;
}

/*
 * The facts come from a scan, which counts links and waits for nobody. sriov_numvfs waits for a
 * write that is under way, so it says what there will be; facts that differ are read again.
 */
static int refresh(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf,
		   struct vhca_pf_facts *ret, struct vhca_error *err)
{
	AUTO_DIR struct vhca_sysfs_dir *dir = NULL;
	uint64_t now = 0;
	int r = open_pf(sys, pf, &dir, err);

	if (r < 0)
		return r;
	r = vhca_sysfs_read_u64(dir, "sriov_numvfs", 10, UINT16_MAX, &now);
	if (r < 0 && r != -ENOENT) /* SR-IOV is off: the plan says so */
		return vhca_error_set(err, VHCA_ERR_DEVICE, "pf_unreadable", -r,
				      "%s: read sriov_numvfs", VHCA_BDF_STR(pf->bdf));
	if (now != pf->num_vfs)
		return vhca_inventory_read_pf(sys, pf->bdf, ret, err);
	*ret = *pf;
	return 0;
}

int vhca_enable_clear(struct vhca_sysfs *sys, const char *dev_root, const struct vhca_pf_facts *pf,
		      struct vhca_error *err)
{
	VHCA_AUTO_FREE struct vhca_pf_facts *now = malloc(sizeof(*now));
	struct vhca_error why = VHCA_ERROR_INIT;
	int r;

	if (!now)
		return vhca_error_no_memory(err, "remove VFs");
	r = refresh(sys, pf, now, err);
	if (r < 0 || now->num_vfs == 0)
		return r;
	if (vhca_enable_plan(sys, now, 0, &why) != VHCA_ENABLE_REPLACE) {
		if (err)
			*err = why;
		return -EBUSY;
	}
	/* Nobody may have a VF open when the kernel is asked to take it away. */
	for (unsigned int i = 0; i < now->n_vfs; i++) {
		r = vhca_vf_check_unused(sys, dev_root, &now->vfs[i], false, err);
		if (r < 0) {
			vhca_error_prefix(err, "%s: its VFs stay: in use", VHCA_BDF_STR(now->bdf));
			return r;
		}
	}
	r = write_numvfs(sys, now, 0, err);
	if (r == 0)
		r = vhca_inventory_read_pf(sys, pf->bdf, now, err);
	if (r == 0 && now->num_vfs != 0)
		r = vhca_error_set(err, VHCA_ERR_DEVICE, "vfs_left", EIO,
				   "%s: %u VFs are left after 0 was written", VHCA_BDF_STR(pf->bdf),
				   now->num_vfs);
	return r;
}

int vhca_enable_vfs(struct vhca_sysfs *sys, const struct vhca_pf_facts *pf, uint16_t count,
		    struct vhca_pf_facts *ret_pf, struct vhca_error *err)
{
	struct vhca_error why = VHCA_ERROR_INIT;
	VHCA_AUTO_FREE struct vhca_pf_facts *now = malloc(sizeof(*now));
	enum vhca_enable_action action;
	int r;

	if (!now)
		return vhca_error_no_memory(err, "enable VFs");
	r = refresh(sys, pf, now, err);
	if (r < 0)
		return r;
	action = vhca_enable_plan(sys, now, count, &why);
	if (action != VHCA_ENABLE_NOTHING && action != VHCA_ENABLE_WRITE) {
		if (err)
			*err = why;
		return -why.errnum;
	}
	if (pf->family == VHCA_FAMILY_MLX4)
		advise_probe_vf(sys, pf);
	if (action == VHCA_ENABLE_WRITE)
		r = write_numvfs(sys, now, count, err);
	if (r < 0)
		return r;
	r = vhca_inventory_read_pf(sys, pf->bdf, now, err);
	if (r < 0)
		return r;
	/* A driver may enable fewer than asked, and the write succeeds: the read-back counts. */
	if (now->num_vfs != count) {
		(void)vhca_error_set(err, VHCA_ERR_DEVICE, "fewer_vfs", EIO,
				     "%s: asked for %u VFs, the adapter has %u",
				     VHCA_BDF_STR(now->bdf), count, now->num_vfs);
		vhca_error_hint(err,
				"dmesg says why; set vfs = %u in the configuration to accept it",
				now->num_vfs);
		return -EIO;
	}
	*ret_pf = *now;
	return 0;
}
