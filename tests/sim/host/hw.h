/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_HW_H
#define VHCA_TESTS_SIM_HOST_HW_H
/*
 * An adapter with its driver, in memory: what sysfs shows and does (formats and rules: Linux 6.1
 * and MLNX_OFED, the function stands with each). Shares nothing with the product. No file, no
 * thread, no clock.
 *
 *   mlx4   ConnectX-3 (hw.c): the iov tree, and what no map shows: the live QPs of guests, which keep the physical P_Key index that they
 *          were given when they were modified
 *   mlx5   ConnectX-4 and later (hw_mlx5.c): what firmware holds of each vport, what the driver remembers of it, and the P_Keys that the SM
 *          gave to the port. Reached by rtnetlink (sim_rtnl.h), or by the files of MLNX_OFED
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HW_VFS	     5
#define HW_PORTS     2
#define HW_KEYS	     127 /* usable P_Key entries of a port of a card */
#define HW_KEYS_FEW  16	 /* of a card on which scarcity and reuse are common */
#define HW_QPS	     3
#define HW_VPORT_MAX 8 /* keys that the SM gives to one vport */
#define HW_NONE	     (-1)
#define HW_NO_GUID   UINT64_MAX /* admin_guids: withdrawn */
#define HW_BUS	     "0000:03:"
#define HW_PF	     HW_BUS "00.0"

struct hw_qp {
	bool live;
	uint8_t port;
	int16_t phys; /* translated at modify time; HW_NONE: the entry that the SM never fills */
};

struct hw_vf {
	char bdf[16], driver[16], override[16];
	int16_t map[HW_PORTS][HW_KEYS];
	uint64_t admin[HW_PORTS], granted[HW_PORTS];
	bool smi_admin[HW_PORTS],
		smi[HW_PORTS]; /* the next driver may, this one may send any SMP */
	/* what the driver wants of the SM: the admin GUID, or none while no guest uses it */
	uint64_t required[HW_PORTS];
	bool pending[HW_PORTS]; /* which the SM has not answered yet */
	bool open;		/* a QEMU has the vfio group */
	bool guest_driver;
	struct hw_qp qps[HW_QPS];
};

/* A VF of mlx5. Values as in IFLA_VF_*: a GUID that is 0 or all ones is nobody's. */
enum hw_link { HW_LINK_AUTO, HW_LINK_UP, HW_LINK_DOWN };
struct hw_vport {
	uint64_t node, port; /* firmware */
	enum hw_link link;   /* firmware */
	uint64_t cached_node,
		cached_port; /* what the driver will apply when the VF is made again */
	uint64_t known; /* port GUID under which the SM has made the port ACTIVE; 0 = it is down */
	uint16_t keys[HW_VPORT_MAX]; /* that it has there; 0 ends them */
};

enum hw_card { HW_MLX4, HW_MLX5, HW_MLX5_OFED };

struct sim_rtnl;

struct hw {
	enum hw_card card;
	unsigned int n_ports, n_keys;
	struct sim_rtnl *kernel; /* mlx5: what agents read and write */
	struct hw_vport vports[HW_VFS];
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
	enum { HW_DIR_IBDEV, HW_DIR_PF, HW_DIR_VPORT, HW_DIR_VF, HW_DIR_DRIVER } kind;
	unsigned int vf, reload;
	char name[24];
};

void hw_init(struct hw *hw, enum hw_card card, unsigned int n_keys, struct sim_rtnl *kernel);
/* The driver's start: every map and GUID as it makes them. */
void hw_driver_start(struct hw *hw);
/* Its last act, some time after the files have appeared: the maps again. */
void hw_reset_maps(struct hw *hw);
/* The group is closed: FLR, QPs gone, the driver takes the alias back. */
void hw_close(struct hw *hw, unsigned int vf);
/* The guest's driver comes up: its alias is asked for. */
void hw_guest_driver(struct hw *hw, unsigned int vf);
/* A write to admin_guids: it is asked for at once. */
void hw_request(struct hw *hw, unsigned int vf, unsigned int port, uint64_t guid);
/* The SM hears and answers, or does not; what has waited is asked again. */
void hw_sm(struct hw *hw, bool answers);
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
/*
 * The i-th name below attr, false when there are no more; -ENOENT in *ret_r if there is no such
 * directory.
 */
bool hw_name(const struct hw *hw, const struct hw_dir *dir, const char *attr, unsigned int i,
	     char *buf, size_t size);

/* What a write to this file changes: a map entry or a GUID of a VF; false = neither. */
struct hw_target {
	unsigned int vf, port, virt;
	bool is_map;
};
bool hw_target(const struct hw_dir *dir, const char *attr, struct hw_target *ret);

/* ---- hw_mlx5.c ---- */
bool hw_is_nobody(uint64_t guid);
/* It is up and has an address: what the SM may find. */
bool hw_vport_is_up(const struct hw *hw, unsigned int vf);
/*
 * What the kernel has of VF v is what firmware has; a port that is not up any more has lost its
 * keys.
 */
void hw_vport_sync(struct hw *hw, unsigned int vf);
/* The host's start; mlx5_core's recovery, which applies what it remembers. */
void hw_vports_start(struct hw *hw);
void hw_vports_recover(struct hw *hw);
/* The SM finds the port and gives it these keys. */
void hw_vport_give(struct hw *hw, unsigned int vf, const uint16_t *keys, unsigned int n);

bool hw_mlx5_opendir(const struct hw *hw, const char *path, struct hw_dir *ret);
int hw_mlx5_read(const struct hw *hw, const struct hw_dir *dir, const char *attr, char *buf,
		 size_t size);
int hw_mlx5_write(struct hw *hw, const struct hw_dir *dir, const char *attr, const char *text);
bool hw_mlx5_name(const struct hw *hw, const struct hw_dir *dir, const char *attr, unsigned int i,
		  char *buf, size_t size);

#endif
