/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Attributes of an adapter and of the host's memory with whatever values: parts of an attribute's
 * name in the first line and its content below it. What is read is refused, or stands in the
 * attribute and is within every limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/memory.h"
#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "pkey/identity.h"
#include "pkey/vport.h"
#include "sriov/inventory.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/kit/input.h"

#define PF    "bus/pci/devices/0000:01:00.0"
#define IB    PF "/infiniband/mlx4_0"
#define VF    IB "/iov/0000:01:00.1/ports/1"
#define PORT  IB "/iov/ports/1"
#define POOL  "kernel/mm/hugepages/hugepages-2048kB"
#define KEYS  3
#define CLEAN "ffffffffffffffff\n"

static const struct attribute {
	const char *name, *path, *value;
} attributes[] = {
	{"vendor", PF "/vendor", "0x15b3\n"},
	{"device", PF "/device", "0x1003\n"},
	{"total", PF "/sriov_totalvfs", "4\n"},
	{"autoprobe", PF "/sriov_drivers_autoprobe", "1\n"},
	{"numa", PF "/numa_node", "-1\n"},
	{"node_guid", IB "/node_guid", "0002:c903:0000:0010\n"},
	{"link_layer", IB "/ports/1/link_layer", "InfiniBand\n"},
	{"gid_idx", VF "/gid_idx/0", "1\n"},
	{"map0", VF "/pkey_idx/0", "none\n"},
	{"map1", VF "/pkey_idx/1", "1\n"},
	{"map2", VF "/pkey_idx/2", "none\n"},
	{"smi_admin", VF "/enable_smi_admin", "0\n"},
	{"pkey0", PORT "/pkeys/0", "0xffff\n"},
	{"pkey1", PORT "/pkeys/1", "0x8001\n"},
	{"pkey2", PORT "/pkeys/2", "0x0000\n"},
	{"gid0", PORT "/gids/0", "fe80:0000:0000:0000:0002:c903:0000:0011\n"},
	{"gid1", PORT "/gids/1", "fe80:0000:0000:0000:0000:0000:0000:0000\n"},
	{"admin", PORT "/admin_guids/1", CLEAN},
	{"node", PF "/sriov/0/node", "00:00:00:00:00:00:00:00\n"},
	{"port", PF "/sriov/0/port", "02:c9:ab:00:00:00:00:01\n"},
	{"policy", PF "/sriov/0/policy", "Follow\n"},
	{"free", POOL "/free_hugepages", "100\n"},
	{"overcommit", POOL "/nr_overcommit_hugepages", "0\n"},
	{"resv", POOL "/resv_hugepages", "3\n"},
	{"surplus", POOL "/surplus_hugepages", "0\n"},
	{"meminfo", "meminfo",
	 "MemTotal: 9 kB\nMemAvailable:   32561328 kB\nHugepagesize: 2048 kB\n"},
};
#define N_ATTRIBUTES VHCA_ARRAY_SIZE(attributes)

static struct {
	char root[64], meminfo[80];
	struct vhca_sysfs *sys;
	bool changed[N_ATTRIBUTES];
} t;

/* ---- the tree: made once, in memory if there is such a place ---- */

static void path_of(char buf[static 256], const char *path)
{
	FUZZ_ASSERT(snprintf(buf, 256, "%s/%s", t.root, path) < 256);
}

static void write_value(const struct attribute *a, const char *value, size_t len)
{
	char path[256];
	int fd;

	path_of(path, a->path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FUZZ_ASSERT(fd >= 0 && write(fd, value, len) == (ssize_t)len && close(fd) == 0);
}

static void make_parents(const char *path)
{
	char dir[256];

	path_of(dir, path);
	*strrchr(dir, '/') = '\0';
	FUZZ_ASSERT(vhca_mkdir_p(dir, 0700) == 0);
}

static void make_link(const char *path, const char *target)
{
	char link[256];

	make_parents(path);
	path_of(link, path);
	FUZZ_ASSERT(symlink(target, link) == 0);
}

static void remove_tree(void)
{
	char command[128];

	/* Not in the product: no shell there. */
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", t.root);
	(void)!system(command);
}

static void make_tree(void)
{
	(void)snprintf(t.root, sizeof(t.root), "%s/vhca-fuzz-sysfs.%ld",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (long)getpid());
	(void)snprintf(t.meminfo, sizeof(t.meminfo), "%s/meminfo", t.root);
	for (size_t i = 0; i < N_ATTRIBUTES; i++) {
		make_parents(attributes[i].path);
		write_value(&attributes[i], attributes[i].value, strlen(attributes[i].value));
	}
	make_link(PF "/driver", "../../../drivers/mlx4_core");
	make_link(PF "/virtfn0", "../0000:01:00.1");
	make_link("bus/pci/devices/0000:01:00.1/physfn", "../0000:01:00.0");
	make_link("bus/pci/drivers/mlx4_core/0000:01:00.0", "../../devices/0000:01:00.0");
	FUZZ_ASSERT(atexit(remove_tree) == 0 && vhca_sysfs_open(t.root, &t.sys) == 0);
	vhca_log_set_level(VHCA_LOG_ERROR);
}

static void set_values(const uint8_t *data, size_t size)
{
	size_t len = 0;
	char *part;

	while ((part = input_part(&data, &size, &len))) {
		char *value = memchr(part, '\n', len);

		for (size_t i = 0; value && i < N_ATTRIBUTES; i++) {
			size_t n = strlen(attributes[i].name);

			if ((size_t)(value - part) != n || memcmp(part, attributes[i].name, n) != 0)
				continue;
			t.changed[i] = true;
			write_value(&attributes[i], value + 1, len - n - 1);
		}
		free(part);
	}
}

static void reset_values(void)
{
	for (size_t i = 0; i < N_ATTRIBUTES; i++)
		if (t.changed[i])
			write_value(&attributes[i], attributes[i].value,
				    strlen(attributes[i].value));
	memset(t.changed, 0, sizeof(t.changed));
}

/* The attribute as the kernel would show it: without its newline. */
static const char *value_of(const char *path, char buf[static 4096])
{
	VHCA_AUTO_FREE char *text = NULL;
	char file[256];
	size_t len = 0;

	path_of(file, path);
	FUZZ_ASSERT(vhca_read_file(file, 1u << 20, &text, &len) == 0);
	if (len && text[len - 1] == '\n')
		text[len - 1] = '\0';
	(void)snprintf(buf, 4096, "%s", text);
	return buf;
}

/* ---- what is read ---- */

static const struct vhca_identity_at *here(void)
{
	static struct vhca_identity_at at;

	at = (struct vhca_identity_at){
		.sys = t.sys, .pf = {.bus = 1}, .ibdev = "mlx4_0", .port = 1, .n_ports = 1};
	return &at;
}

static void check_map(const struct vhca_identity_state *state)
{
	FUZZ_ASSERT(state->n_virtual == KEYS);
	for (unsigned int i = 0; i < KEYS; i++) {
		char path[128], text[4096];
		int16_t physical = state->map[i];

		FUZZ_ASSERT(physical >= VHCA_PKEY_UNMAPPED && physical < VHCA_PKEY_TABLE_MAX);
		FUZZ_ASSERT(physical != VHCA_PKEY_UNMAPPED || state->value[i] == 0);
		(void)snprintf(path, sizeof(path), VF "/pkey_idx/%u", i);
		(void)value_of(path, text);
		FUZZ_ASSERT((physical == VHCA_PKEY_UNMAPPED) == !strcmp(text, "none"));
		if (physical >= KEYS)
			FUZZ_ASSERT(state->value[i] == 0);
	}
}

static bool check_identity(void)
{
	struct vhca_identity_state state = {0};
	struct vhca_error err = VHCA_ERROR_INIT;
	char text[4096];
	uint64_t guid = 0;

	if (vhca_identity_mlx4.read(here(), &state, &err) < 0) {
		FUZZ_ASSERT(err.kind != VHCA_ERR_NONE && *err.code && err.msg[0]);
		return false;
	}
	check_map(&state);
	FUZZ_ASSERT(state.gid_index == 1);
	FUZZ_ASSERT(vhca_parse_u64(value_of(PORT "/admin_guids/1", text), 16, UINT64_MAX, &guid) ==
			    0 &&
		    guid == state.requested);
	FUZZ_ASSERT(!vhca_identity_is_clean(&state) ||
		    (state.requested == VHCA_GUID_ALL1 && state.map[0] == VHCA_PKEY_UNMAPPED));
	return true;
}

static bool check_vport(void)
{
	struct vhca_vport vport = {.node_guid = 7};
	char text[4096];
	uint64_t guid = 0;

	if (vhca_vport_sysfs.read(here(), &vport) < 0) {
		FUZZ_ASSERT(vport.node_guid == 7);
		return false;
	}
	FUZZ_ASSERT(vport.policy <= VHCA_LINK_DOWN);
	FUZZ_ASSERT(vhca_guid_parse(value_of(PF "/sriov/0/node", text), &guid) == 0 &&
		    guid == vport.node_guid);
	FUZZ_ASSERT(vhca_guid_parse(value_of(PF "/sriov/0/port", text), &guid) == 0 &&
		    guid == vport.port_guid);
	return true;
}

static bool check_inventory(void)
{
	struct vhca_inventory *inv = NULL;
	bool good;
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_inventory_scan(t.sys, &inv, &err) < 0) {
		FUZZ_ASSERT(!inv && err.kind != VHCA_ERR_NONE && *err.code);
		return false;
	}
	FUZZ_ASSERT(inv->n_pfs <= 1);
	for (unsigned int i = 0; i < inv->n_pfs; i++) {
		const struct vhca_pf_facts *pf = &inv->pfs[i];

		FUZZ_ASSERT(pf->n_vfs <= VHCA_VFS_MAX && pf->numa_node >= -1);
		FUZZ_ASSERT(pf->n_vfs == 0 || (pf->n_vfs == 1 && pf->vfs[0].index == 0));
		FUZZ_ASSERT(!strcmp(pf->ibdev, "mlx4_0") && !strcmp(pf->driver, "mlx4_core"));
	}
	good = inv->n_pfs == 1;
	(void)vhca_inventory_free(inv);
	return good;
}

static bool check_memory(enum vhca_pages pages)
{
	const struct vhca_guest_memory guest = {.kib = 1, .pages = pages};
	struct vhca_memory_room room = {.kib = 0};
	struct vhca_error err = VHCA_ERROR_INIT;

	if (vhca_host_memory_read(t.sys, t.meminfo, &guest, &room, &err) < 0) {
		FUZZ_ASSERT(err.kind == VHCA_ERR_DEVICE && *err.code);
		return false;
	}
	FUZZ_ASSERT(room.kib <= UINT64_MAX / 1024);
	FUZZ_ASSERT(pages == VHCA_PAGES_ORDINARY || room.no_such_pages || room.page_kib == 2048);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool good;

	if (!t.sys)
		make_tree();
	set_values(data, size);
	good = check_identity();
	good &= check_vport();
	good &= check_inventory();
	good &= check_memory(VHCA_PAGES_ORDINARY);
	good &= check_memory(VHCA_PAGES_HUGE);
	fuzz_verdict(good);
	reset_values();
	return 0;
}
