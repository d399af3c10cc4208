/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SIM_HW_H
#define VHCA_SIM_HW_H
/*
 * A ConnectX-3 with its mlx4 driver, in memory: what sysfs shows and does (formats and rules: Linux 6.1, the function stands with each
 * in hw.c), and what no map shows: the live QPs of guests, which keep the physical P_Key index that they were given when they were
 * modified. Shares nothing with the product. No file, no thread, no clock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_VFS	 5
#define HW_PORTS 2
#define HW_KEYS \
	16 /* usable P_Key entries of a port; 127 on a card, where nothing is different but the time a scan takes */
#define HW_QPS	   3
#define HW_NONE	   (-1)
#define HW_NO_GUID UINT64_MAX /* admin_guids: withdrawn */
#define HW_PF	   "0000:03:00.0"

struct hw_qp {
	bool live;
	uint8_t port;
	int16_t phys; /* translated at modify time; HW_NONE: the entry that the SM never fills */
};

struct hw_vf {
	char bdf[16], driver[16], override[16];
	int16_t map[HW_PORTS][HW_KEYS];
	uint64_t admin[HW_PORTS], granted[HW_PORTS];
	bool open; /* a QEMU has the vfio group */
	bool guest_driver;
	struct hw_qp qps[HW_QPS];
};

struct hw {
	char ibdev[16];
	bool registered;     /* the RDMA device is there, with its iov tree */
	unsigned int reload; /* counts: an old descriptor reaches nothing */
	uint16_t pkeys[HW_PORTS][HW_KEYS];
	struct hw_vf vfs[HW_VFS];
	bool sm_grants;
	unsigned int writes; /* that changed a value */
};

/* A directory opened once. */
struct hw_dir {
	enum { HW_DIR_IBDEV, HW_DIR_VF, HW_DIR_DRIVER } kind;
	unsigned int vf, reload;
	char name[24];
};

void hw_init(struct hw *hw);
/* The driver's start: every map and GUID as it makes them. */
void hw_driver_start(struct hw *hw);
/* Its last act, some time after the files have appeared: the maps again. */
void hw_reset_maps(struct hw *hw);
/* The group is closed: FLR, QPs gone, the driver takes the alias back. */
void hw_close(struct hw *hw, unsigned int vf);
/* The guest's driver comes up: its alias is asked for. */
void hw_guest_driver(struct hw *hw, unsigned int vf);
/* The guest modifies a QP: virtual index -> physical, now. */
void hw_modify_qp(struct hw *hw, unsigned int vf, unsigned int qp, unsigned int port,
		  unsigned int virt);

/* Files, relative to the root; negative errnos are the kernel's. Text without its newline. */
int hw_opendir(const struct hw *hw, const char *path, struct hw_dir *ret);
int hw_read(const struct hw *hw, const struct hw_dir *dir, const char *attr, char *buf,
	    size_t size);
int hw_write(struct hw *hw, const struct hw_dir *dir, const char *attr, const char *text);
int hw_readlink(const struct hw *hw, const struct hw_dir *dir, const char *attr, char *buf,
		size_t size);
bool hw_exists(const struct hw *hw, const struct hw_dir *dir, const char *attr);
/* The i-th name below attr, false when there are no more; -ENOENT in *ret_r if there is no such directory. */
bool hw_name(const struct hw *hw, const struct hw_dir *dir, const char *attr, unsigned int i,
	     char *buf, size_t size);

/* What a write to this file changes: a map entry or a GUID of a VF; false = neither. */
struct hw_target {
	unsigned int vf, port, virt;
	bool is_map;
};
bool hw_target(const struct hw_dir *dir, const char *attr, struct hw_target *ret);

#endif
