/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/host/hw.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/sim/kernel/sim_scan.h"

#define VFIO	  "vfio-pci"
#define HW_GUIDS  128
#define PORT_GUID UINT64_C(0x0002c90300a10001) /* of port 1 */
#define SM_CHOICE UINT64_C(0x0014050000000100) /* and the VF and port */

/* ---- what happens by itself ---- */

void hw_init(struct hw *hw, enum hw_card card, unsigned int n_keys, struct sim_rtnl *kernel)
{
	memset(hw, 0, sizeof(*hw));
	hw->card = card;
	hw->n_ports = card == HW_MLX4 ? HW_PORTS : 1;
	hw->n_keys = n_keys;
	hw->kernel = kernel;
	(void)snprintf(hw->ibdev, sizeof(hw->ibdev), card == HW_MLX4 ? "mlx4_0" : "mlx5_0");
	hw->registered = hw->sm_grants = true;
	for (unsigned int p = 0; p < HW_PORTS; p++)
		hw->pkeys[p][0] = 0xffff;
	for (unsigned int v = 0; v < HW_VFS; v++)
		(void)snprintf(hw->vfs[v].bdf, sizeof(hw->vfs[v].bdf), "0000:03:00.%u", v + 1);
	hw_driver_start(hw);
}

/*
 * infiniband/hw/mlx4/main.c init_pkeys(): virtual 0 -> physical 0, all others none. QPs live in
 * mlx4_core and keep their index.
 */
void hw_reset_maps(struct hw *hw)
{
	for (unsigned int v = 0; v < HW_VFS; v++) {
		for (unsigned int p = 0; p < HW_PORTS; p++) {
			for (unsigned int k = 0; k < HW_KEYS; k++)
				hw->vfs[v].map[p][k] = k ? HW_NONE : 0;
		}
	}
}

/* net mlx4/main.c mlx4_set_random_admin_guid() */
void hw_driver_start(struct hw *hw)
{
	hw->reload++;
	if (hw->card != HW_MLX4) {
		hw_vports_start(hw);
		return;
	}
	hw_reset_maps(hw);
	for (unsigned int v = 0; v < HW_VFS; v++) {
		for (unsigned int p = 0; p < HW_PORTS; p++) {
			hw->vfs[v].admin[p] = 0x0214050000000000 + hw->reload * 256u + v * 16u + p;
			hw->vfs[v].granted[p] = 0;
			hw->vfs[v].required[p] = HW_NO_GUID;
			hw->vfs[v].pending[p] = false;
		}
	}
}

/*
 * alias_GUID.c aliasguid_query_handler(): what the SM chose is what the administrator wants from
 * now on.
 */
static void settle(struct hw *hw, unsigned int v, unsigned int port)
{
	struct hw_vf *vf = &hw->vfs[v];

	if (!hw->sm_grants || !vf->pending[port])
		return;
	if (!vf->required[port])
		vf->required[port] = vf->admin[port] = SM_CHOICE + v * HW_PORTS + port;
	vf->granted[port] = vf->required[port] == HW_NO_GUID ? 0 : vf->required[port];
	vf->pending[port] = false;
}

static void require(struct hw *hw, unsigned int v, unsigned int port, uint64_t guid)
{
	hw->vfs[v].required[port] = guid;
	hw->vfs[v].pending[port] = true;
	settle(hw, v, port);
}

void hw_request(struct hw *hw, unsigned int v, unsigned int port, uint64_t guid)
{
	hw->vfs[v].admin[port] = guid;
	require(hw, v, port, guid);
}

/*
 * mlx4_ib_slave_alias_guid_event(slave_init = 0) at MLX4_DEV_EVENT_SLAVE_SHUTDOWN deletes the alias
 * at the SM
 */
void hw_close(struct hw *hw, unsigned int v)
{
	struct hw_vf *vf = &hw->vfs[v];

	vf->open = vf->guest_driver = false;
	memset(vf->qps, 0, sizeof(vf->qps));
	for (unsigned int p = 0; p < HW_PORTS; p++)
		if (vf->required[p] && vf->required[p] != HW_NO_GUID)
			require(hw, v, p, HW_NO_GUID);
	hw->vports[v].known = 0;
}

/* slave_init = 1: what is withdrawn is not asked for */
void hw_guest_driver(struct hw *hw, unsigned int v)
{
	hw->vfs[v].guest_driver = true;
	for (unsigned int p = 0; p < HW_PORTS; p++) {
		/* net mlx4/cmd.c mlx4_master_activate_admin_state() */
		hw->vfs[v].smi[p] = hw->vfs[v].smi_admin[p];
		if (hw->vfs[v].admin[p] != HW_NO_GUID)
			require(hw, v, p, hw->vfs[v].admin[p]);
	}
}

void hw_sm(struct hw *hw, bool answers)
{
	hw->sm_grants = answers;
	for (unsigned int v = 0; v < HW_VFS; v++)
		for (unsigned int p = 0; p < HW_PORTS; p++)
			settle(hw, v, p);
}

/* net mlx4/resource_tracker.c update_pkey_index(), from RST2INIT and INIT2RTR wrappers */
void hw_modify_qp(struct hw *hw, unsigned int v, unsigned int qp, unsigned int port,
		  unsigned int virt)
{
	hw->vfs[v].qps[qp] = (struct hw_qp){
		.live = true, .port = (uint8_t)port, .phys = hw->vfs[v].map[port][virt]};
}

/* ---- paths ---- */

/* sysfs.c get_name(): slave 0 is the PF, VF k is slave k + 1 */
static void fn_name(unsigned int slave, char *buf, size_t size)
{
	(void)snprintf(buf, size, HW_BUS "%.2u.%u", slave / 8, slave % 8);
}

/*
 * By hand: nothing is done as often as this, and with a sanitizer sscanf() and snprintf() would be
 * most of it.
 */
static bool take(const char **at, const char *text)
{
	const char *p = *at;

	for (; *text; text++, p++)
		if (*p != *text)
			return false;
	*at = p;
	return true;
}

static bool take_number(const char **at, unsigned int *ret)
{
	const char *begin = *at;

	for (*ret = 0; **at >= '0' && **at <= '9'; (*at)++)
		*ret = *ret * 10 + (unsigned int)(**at - '0');
	return *at > begin;
}

static bool take_name(const char **at, char *buf, size_t size)
{
	size_t len = 0;

	for (; **at && **at != '/' && len + 1 < size; (*at)++)
		buf[len++] = **at;
	buf[len] = '\0';
	return len > 0;
}

/* fn_name(), the other way round */
static bool take_slave(const char **at, unsigned int *ret)
{
	unsigned int device, function;
	const char *begin = *at;

	if (!take(at, HW_BUS) || !take_number(at, &device) || !take(at, ".") ||
	    !take_number(at, &function) || *at != begin + strlen(HW_PF) || function > 7)
		return false;
	*ret = device * 8 + function;
	return *ret <= HW_VFS;
}

/* "ports/<port>/<file>", which may be followed by "/<n>" */
struct place {
	unsigned int slave, port, n;
	char file[24];
};

static bool take_file(const char **at, struct place *ret)
{
	return take(at, "ports/") && take_number(at, &ret->port) && take(at, "/") &&
	       take_name(at, ret->file, sizeof(ret->file)) && ret->port >= 1 &&
	       ret->port-- <= HW_PORTS;
}

static bool take_entry(const char **at, struct place *ret)
{
	return take_file(at, ret) && take(at, "/") && take_number(at, &ret->n) && !**at;
}

/* "iov/<function>/ports/<port>/<file>/<n>" */
static bool parse_fn(const char *attr, struct place *ret)
{
	return take(&attr, "iov/") && take_slave(&attr, &ret->slave) && take(&attr, "/") &&
	       take_entry(&attr, ret);
}

/* "iov/ports/<port>/<file>/<n>" */
static bool parse_port(const char *attr, struct place *ret)
{
	return take(&attr, "iov/") && take_entry(&attr, ret);
}

/* "iov/<function>/ports/<port>/<file>", of VFs only (add_vf_smi_entries()); NULL = no such file */
static bool *smi_of(struct hw *hw, const char *attr, bool *ret_admin)
{
	struct place p;

	if (!take(&attr, "iov/") || !take_slave(&attr, &p.slave) || !p.slave || !take(&attr, "/") ||
	    !take_file(&attr, &p) || *attr)
		return NULL;
	*ret_admin = !strcmp(p.file, "enable_smi_admin");
	if (!*ret_admin && strcmp(p.file, "smi_enabled") != 0)
		return NULL;
	return *ret_admin ? &hw->vfs[p.slave - 1].smi_admin[p.port]
			  : &hw->vfs[p.slave - 1].smi[p.port];
}

bool hw_target(const struct hw_dir *dir, const char *attr, struct hw_target *ret)
{
	struct place p;

	if (dir->kind != HW_DIR_IBDEV)
		return false;
	if (parse_fn(attr, &p) && !strcmp(p.file, "pkey_idx") && p.slave > 0 && p.n < HW_KEYS) {
		*ret = (struct hw_target){p.slave - 1, p.port, p.n, true};
		return true;
	}
	if (parse_port(attr, &p) && !strcmp(p.file, "admin_guids") && p.n > 0 && p.n <= HW_VFS) {
		*ret = (struct hw_target){p.n - 1, p.port, 0, false};
		return true;
	}
	return false;
}

int hw_opendir(const struct hw *hw, const char *path, struct hw_dir *ret)
{
	char want[96];

	*ret = (struct hw_dir){.reload = hw->reload};
	if (hw->card != HW_MLX4 && hw_mlx5_opendir(hw, path, ret))
		return 0;
	(void)snprintf(want, sizeof(want), "bus/pci/devices/%s/infiniband/%s", HW_PF, hw->ibdev);
	if (!strcmp(path, want) && hw->registered && hw->card == HW_MLX4)
		return 0;
	for (unsigned int v = 0; v < HW_VFS; v++) {
		(void)snprintf(want, sizeof(want), "bus/pci/devices/%s", hw->vfs[v].bdf);
		ret->kind = HW_DIR_VF;
		ret->vf = v;
		if (!strcmp(path, want))
			return 0;
	}
	ret->kind = HW_DIR_DRIVER;
	return sscanf(path, "bus/pci/drivers/%23[^/]", ret->name) == 1 ? 0 : -ENOENT;
}

static bool gone(const struct hw *hw, const struct hw_dir *dir)
{
	return dir->kind == HW_DIR_IBDEV && (!hw->registered || dir->reload != hw->reload);
}

/* ---- reading ---- */

static int read_fn(const struct hw *hw, const struct place *p, char *buf, size_t size)
{
	int16_t phys;

	if (!strcmp(p->file, "gid_idx") && p->n == 0) { /* show_port_gid_idx(): "%d\n" */
		(void)snprintf(buf, size, "%u", p->slave);
		return 0;
	}
	if (strcmp(p->file, "pkey_idx") != 0 || p->n >= hw->n_keys)
		return -ENOENT;
	/* show_port_pkey(): "none\n" or "%d\n"; the PF's is the identity */
	phys = p->slave ? hw->vfs[p->slave - 1].map[p->port][p->n] : (int16_t)p->n;
	if (phys == HW_NONE)
		(void)snprintf(buf, size, "none");
	else
		(void)snprintf(buf, size, "%d", phys);
	return 0;
}

static int read_gid(uint64_t guid, char *buf, size_t size)
{
	(void)snprintf(buf, size, "fe80:0000:0000:0000:%04x:%04x:%04x:%04x",
		       (unsigned int)(guid >> 48), (unsigned int)(guid >> 32) & 0xffff,
		       (unsigned int)(guid >> 16) & 0xffff, (unsigned int)guid & 0xffff);
	return 0;
}

/*
 * The port's own, those of VFs, and those of functions that are not there: drawn as well, and never
 * granted
 */
static uint64_t admin_of(const struct hw *hw, const struct place *p)
{
	if (!p->n)
		return PORT_GUID + p->port;
	if (p->n <= HW_VFS)
		return hw->vfs[p->n - 1].admin[p->port];
	return UINT64_C(0x0214050100000000) + p->n * 16u + p->port;
}

static uint64_t granted_of(const struct hw *hw, const struct place *p)
{
	if (!p->n)
		return PORT_GUID + p->port;
	return p->n <= HW_VFS ? hw->vfs[p->n - 1].granted[p->port] : 0;
}

static int read_port(const struct hw *hw, const struct place *p, char *buf, size_t size)
{
	if (!strcmp(p->file, "pkeys") &&
	    p->n < hw->n_keys) { /* show_phys_port_pkey(): "0x%04x\n" */
		(void)snprintf(buf, size, "0x%04x", hw->pkeys[p->port][p->n]);
		return 0;
	}
	if (p->n >= HW_GUIDS)
		return -ENOENT;
	if (!strcmp(p->file, "gids")) /* show_port_gid() */
		return read_gid(granted_of(hw, p), buf, size);
	if (strcmp(p->file, "admin_guids") != 0)
		return -ENOENT;
	/* show_admin_alias_guid(): "%llx\n" */
	(void)snprintf(buf, size, "%" PRIx64, admin_of(hw, p));
	return 0;
}

int hw_read(const struct hw *hw, const struct hw_dir *dir, const char *attr, char *buf, size_t size)
{
	const bool *smi;
	struct place p;
	bool is_admin;

	if (gone(hw, dir))
		return -ENODEV;
	if (dir->kind == HW_DIR_PF || dir->kind == HW_DIR_VPORT)
		return hw_mlx5_read(hw, dir, attr, buf, size);
	if (dir->kind != HW_DIR_IBDEV)
		return -ENOENT;
	if (!strcmp(attr, "ports/1/link_layer") || !strcmp(attr, "ports/2/link_layer")) {
		(void)snprintf(buf, size, "InfiniBand");
		return 0;
	}
	smi = smi_of((struct hw *)hw, attr, &is_admin);
	if (smi) {
		(void)snprintf(buf, size, "%d", *smi);
		return 0;
	}
	if (parse_fn(attr, &p))
		return read_fn(hw, &p, buf, size);
	return parse_port(attr, &p) ? read_port(hw, &p, buf, size) : -ENOENT;
}

int hw_readlink(const struct hw *hw, const struct hw_dir *dir, const char *attr, char *buf,
		size_t size)
{
	if (dir->kind != HW_DIR_VF)
		return -ENOENT;
	if (!strcmp(attr, "iommu_group")) {
		(void)snprintf(buf, size, "%u", dir->vf + 1);
		return 0;
	}
	if (strcmp(attr, "driver") != 0 || !hw->vfs[dir->vf].driver[0])
		return -ENOENT;
	(void)snprintf(buf, size, "%s", hw->vfs[dir->vf].driver);
	return 0;
}

bool hw_exists(const struct hw *hw, const struct hw_dir *dir, const char *attr)
{
	if (dir->kind == HW_DIR_VF)
		return !strcmp(attr, "physfn");
	if (dir->kind == HW_DIR_PF)
		return hw->card == HW_MLX5_OFED && !strcmp(attr, "sriov");
	return dir->kind == HW_DIR_IBDEV && !gone(hw, dir) && !strcmp(attr, "iov");
}

/* ---- listing ---- */

static unsigned int table_size(const struct hw *hw, const char *attr)
{
	struct place p;
	bool is_fn;

	if (!take(&attr, "iov/"))
		return 0;
	is_fn = take_slave(&attr, &p.slave);
	if ((is_fn && !take(&attr, "/")) || !take_file(&attr, &p) || *attr)
		return 0;
	return !strcmp(p.file, is_fn ? "pkey_idx" : "pkeys") ? hw->n_keys : 0;
}

bool hw_name(const struct hw *hw, const struct hw_dir *dir, const char *attr, unsigned int i,
	     char *buf, size_t size)
{
	size_t len = strlen(attr);

	if (dir->kind == HW_DIR_VF) { /* a group of its own */
		(void)snprintf(buf, size, "%s", hw->vfs[dir->vf].bdf);
		return !strcmp(attr, "iommu_group/devices") && i == 0;
	}
	if (gone(hw, dir))
		return false;
	if (dir->kind == HW_DIR_PF || dir->kind == HW_DIR_VPORT)
		return hw_mlx5_name(hw, dir, attr, i, buf, size);
	if (!strcmp(attr, "iov")) {
		if (i <= HW_VFS)
			fn_name(i, buf, size);
		else
			(void)snprintf(buf, size, "ports");
		return i <= HW_VFS + 1;
	}
	if (len > 6 && !strcmp(attr + len - 6, "/ports")) {
		(void)snprintf(buf, size, "%u", i + 1);
		return i < HW_PORTS;
	}
	(void)snprintf(buf, size, "%u", i);
	return i < table_size(hw, attr);
}

/* ---- writing ---- */

/* store_port_pkey(): "no..." in any case, else "%i", within the table */
static int store_pkey(struct hw *hw, const struct place *p, const char *text)
{
	int16_t *entry, phys = HW_NONE;
	int n;

	if (p->slave == 0) /* "do not allow remapping Dom0 virtual pkey table" */
		return -EINVAL;
	if (p->n >= hw->n_keys)
		return -ENOENT;
	if (strncasecmp(text, "no", 2) != 0) {
		if (!sim_scan_int(text, &n) || n < 0 || n >= (int)hw->n_keys)
			return -EINVAL;
		phys = (int16_t)n;
	}
	entry = &hw->vfs[p->slave - 1].map[p->port][p->n];
	hw->writes += *entry != phys;
	*entry = phys;
	return 0;
}

/*
 * store_admin_alias_guid(): entry 0 is ignored, what is no number is not refused; the request goes
 * to the SM at once. Nobody here writes the entries of functions that are not there.
 */
static int store_guid(struct hw *hw, const struct place *p, const char *text)
{
	struct hw_vf *vf;
	uint64_t guid = UINT64_C(0xdeadbeefdeadbeef);

	if (p->n == 0)
		return 0;
	if (p->n > HW_VFS)
		return -ENOENT;
	vf = &hw->vfs[p->n - 1];
	(void)sim_scan_hex(text, &guid);
	hw->writes += vf->admin[p->port] != guid;
	hw_request(hw, p->n - 1, p->port, guid);
	return 0;
}

/* sysfs_store_enable_smi_admin(): "%i", 0 or 1 */
static int store_smi(struct hw *hw, bool *smi, const char *text)
{
	int n;

	if (!sim_scan_int(text, &n) || n < 0 || n > 1)
		return -EINVAL;
	hw->writes += *smi != (n == 1);
	*smi = n == 1;
	return 0;
}

/*
 * No store function, no opening for writing, not even for root (fs/kernfs/file.c kernfs_fop_open())
 */
static int store_nothing(const struct hw *hw, const struct hw_dir *dir, const char *attr)
{
	char shown[64];

	return hw_read(hw, dir, attr, shown, sizeof(shown)) < 0 ? -ENOENT : -EACCES;
}

/* drivers/base/bus.c bind_store(), unbind_store(); drivers/pci/pci-driver.c pci_match_device() */
static int store_driver(struct hw *hw, const char *driver, const char *attr, const char *bdf)
{
	struct hw_vf *vf = NULL;

	for (unsigned int v = 0; v < HW_VFS; v++)
		if (!strcmp(hw->vfs[v].bdf, bdf))
			vf = &hw->vfs[v];
	if (!vf)
		return -ENODEV;
	if (!strcmp(attr, "unbind")) {
		if (strcmp(vf->driver, driver) != 0)
			return -ENODEV;
		vf->driver[0] = '\0';
		return 0;
	}
	if (strcmp(attr, "bind") != 0)
		return -ENOENT;
	if (vf->driver[0])
		return -EBUSY;
	if (strcmp(vf->override, driver) != 0)
		return -ENODEV;
	(void)snprintf(vf->driver, sizeof(vf->driver), "%.15s", driver);
	return 0;
}

int hw_write(struct hw *hw, const struct hw_dir *dir, const char *attr, const char *text)
{
	bool *smi, is_admin;
	struct place p;

	if (gone(hw, dir))
		return -ENODEV;
	if (dir->kind == HW_DIR_DRIVER)
		return store_driver(hw, dir->name, attr, text);
	if (dir->kind == HW_DIR_VF) {
		if (strcmp(attr, "driver_override") != 0)
			return -ENOENT;
		(void)snprintf(hw->vfs[dir->vf].override, sizeof(hw->vfs[dir->vf].override),
			       "%.15s", text);
		return 0;
	}
	if (dir->kind == HW_DIR_VPORT)
		return hw_mlx5_write(hw, dir, attr, text);
	smi = smi_of(hw, attr, &is_admin);
	if (smi && is_admin)
		return store_smi(hw, smi, text);
	if (parse_fn(attr, &p) && !strcmp(p.file, "pkey_idx"))
		return store_pkey(hw, &p, text);
	if (parse_port(attr, &p) && !strcmp(p.file, "admin_guids"))
		return store_guid(hw, &p, text);
	return store_nothing(hw, dir, attr);
}
