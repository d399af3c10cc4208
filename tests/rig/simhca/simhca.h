/* SPDX-License-Identifier: GPL-2.0 */
/*
 * simhca: a simulated ConnectX-3 on an SR-IOV capable PCI function that is none.
 *
 * mlx4_core owns the "hardware": PCI functions, ports, the subnet management agent and the
 * cable. mlx4_ib, a client of it, owns what the kernel's own mlx4_ib owns: the ib_device, MADs,
 * the iov/ tree and the alias GUIDs. README.md says what is modelled and what is not.
 */
#ifndef SIMHCA_H
#define SIMHCA_H

#include <linux/dcache.h>
#include <linux/etherdevice.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#define SIMHCA_MAX_PORTS   2
#define SIMHCA_PKEYS	   128 /* physical table; the last entry is the driver's "none" */
#define SIMHCA_PKEY_NONE   (SIMHCA_PKEYS - 1)
#define SIMHCA_GUIDS	   128	   /* GuidCap */
#define SIMHCA_MAX_VFS	   126	   /* MLX4_MAX_NUM_VF */
#define SIMHCA_MAX_FUNCS   128	   /* MLX4_MFUNC_MAX */
#define SIMHCA_GUID_DELETE (~0ull) /* MLX4_GUID_FOR_DELETE_VAL */
#define SIMHCA_VENDOR	   0x15b3
#define SIMHCA_DEVICE_PF   0x1003
#define SIMHCA_DEVICE_VF   0x1004

#define SIMHCA_MAD_SIZE 256
#define SIMHCA_UUID	36 /* characters of a domain's UUID */
#define SIMHCA_SEEN	8  /* keys that are told apart in a record */

/* What the adapter reports to its client; port is 1..2, or 0 where it means nothing. */
enum simhca_event {
	SIMHCA_EV_PORT_UP,   /* port became ACTIVE */
	SIMHCA_EV_PORT_DOWN, /* port left ACTIVE */
	SIMHCA_EV_LID_CHANGE,
	SIMHCA_EV_GID_PREFIX,
	SIMHCA_EV_CLIENT_REREG,
	SIMHCA_EV_PKEY_TABLE,	  /* arg: block of 32 entries, bitmap: which changed */
	SIMHCA_EV_GUID_INFO,	  /* arg: block of 8 entries */
	SIMHCA_EV_SLAVE_INIT,	  /* arg: function number */
	SIMHCA_EV_SLAVE_SHUTDOWN, /* arg: function number */
	SIMHCA_EV_RAW,		  /* arg: enum ib_event_type, from debugfs */
};

/* mlx4_core/eq.c: enum slave_port_state. What a guest would see of its port. */
enum simhca_slave_port { SIMHCA_SLAVE_DOWN, SIMHCA_SLAVE_PENDING_UP, SIMHCA_SLAVE_UP };

struct simhca_port {
	u64 gid_prefix;
	u64 mkey;
	u16 lid;
	u16 sm_lid;
	u16 mkey_lease;
	u8 lmc;
	u8 sm_sl;
	u8 subnet_timeout;
	u8 state; /* enum ib_port_state */
	u8 phys;  /* enum ib_port_phys_state */
	u8 mkeyprot;
	u8 vl_high_limit;
	u8 operational_vls;
	u32 cap_mask;
	u32 pkey_violations;
	bool client_up;	 /* mlx4_ib has brought QP0 up: MLX4_CMD_INIT_PORT was done */
	bool admin_down; /* debugfs "port down" */
	bool peer_up;	 /* link pulses of the other side arrive and say up */
	u32 session;	 /* changes when this side lost the link: the other side retrains too */
	u32 peer_session;
	u64 peer_guid;
	unsigned long peer_seen; /* jiffies of the last pulse */
	u16 pkey[SIMHCA_PKEYS];
	u64 guid[SIMHCA_GUIDS];
	u8 sl2vl[8];
	u8 vlarb[4][64];
};

/* One frame on the cable. All fields in network byte order; one read() or write() is one frame. */
struct simhca_frame {
	__be32 magic;
	u8 version;
	u8 kind; /* enum simhca_frame_kind */
	u8 port;
	u8 up; /* of a pulse: the sender's side of the link is up */
	__be64 sender;
	__be32 session;
	__be32 dest_qpn;
	__be32 src_qpn;
	__be16 slid;
	__be16 dlid;
	__be16 pkey;
	u8 sl;
	u8 reserved;
	u8 mad[SIMHCA_MAD_SIZE];
} __packed;

#define SIMHCA_FRAME_MAGIC   0x53494d48
#define SIMHCA_FRAME_VERSION 1

enum simhca_frame_kind { SIMHCA_FRAME_MAD = 1, SIMHCA_FRAME_PULSE = 2 };

struct simhca_mailbox;

/* What matters here of a guest's queue pair. */
struct simhca_qp_context {
	u16 pkey; /* what the guest has seen at virtual index 0, 0 = nothing yet */
	u8 physical;
	bool live;
};

/*
 * What a virtual machine that holds a VF sees on one of its ports. Zeroed before it is filled: it
 * is compared as memory.
 */
struct simhca_sight {
	char holder[SIMHCA_UUID + 1]; /* UUID of the domain; empty: nobody has the VF open */
	u64 requested;
	u64 granted;
	u16 keys[SIMHCA_SEEN];
	u16 n_keys;
	bool more;
};

/* A virtual function as the PF's driver knows it (mlx4.h: struct mlx4_slave_state). */
struct simhca_func {
	struct pci_dev *vf; /* NULL for the PF */
	bool active;	    /* the guest's driver runs */
	u8 announced;	    /* with which value it said so */
	u8 stale;	    /* announcement that a reset has ended, though it can still be read */
	bool in_flr;	    /* mlx4_core/mlx4.h: last_cmd is MLX4_COMM_CMD_FLR... */
	unsigned long flr_done; /* ...until then */
	u8 refused;		/* a start that came without a reset, while a driver ran */
	u8 port_state[SIMHCA_MAX_PORTS + 1];
	u8 enable_smi[SIMHCA_MAX_PORTS + 1];
	u8 smi_enabled[SIMHCA_MAX_PORTS + 1];
	struct simhca_mailbox *mail;
	u64 admin_guid[SIMHCA_MAX_PORTS + 1];
	u8 virt2phys[SIMHCA_MAX_PORTS + 1][SIMHCA_PKEYS];
	struct simhca_qp_context ipoib[SIMHCA_MAX_PORTS + 1];
	struct pci_dev *held; /* this and the next two: core_sight.c */
	char holder[SIMHCA_UUID + 1];
	struct simhca_sight sight[SIMHCA_MAX_PORTS + 1];
};

/* What debugfs counts. */
struct simhca_stats {
	atomic_t admin_guid_writes;
	atomic_t pkey_idx_writes;
	atomic_t sa_sets;
	atomic_t sa_deletes;
	atomic_t sa_declined;
	atomic_t sa_errors;
	atomic_t slave_inits;
	atomic_t slave_shutdowns;
	atomic_t flrs;
	atomic_t comm_resets;
	atomic_t comm_refused;
	atomic_t wire_tx;
	atomic_t wire_rx;
	atomic_t wire_dropped;
};

struct simhca_wire;
struct ib_device_ops;

/* What differs between the families of adapters: mlx4's is in core_pci.c, mlx5's in mlx5_pci.c. */
struct simhca_family {
	const char *ib_name; /* pattern for the name of the ib_device */
	const char *node_desc;
	bool vfs_at_probe;
	int max_ports;
	const struct ib_device_ops *ib_ops; /* besides simhca_ib_ops, or NULL */
};

struct simhca {
	struct pci_dev *pdev;
	const struct simhca_family *family;
	void *family_priv;
	struct list_head link;	      /* in the list of all adapters */
	struct list_head master_link; /* in core_vf.c's list, for resets of VFs */
	int index;		      /* position among this host's adapters */
	bool is_vf;		      /* in a guest: this function is somebody's VF */
	u64 guid;		      /* node GUID; port GUID is +port, system image GUID +3 */
	int num_ports;
	int num_vfs;
	spinlock_t lock; /* ports and funcs */
	struct simhca_port port[SIMHCA_MAX_PORTS + 1];
	struct simhca_func *func; /* [num_vfs + 1] used, SIMHCA_MAX_FUNCS allocated */

	struct mutex client_mutex; /* client_priv, and event calls against removal */
	spinlock_t rx_lock;	   /* client_rx and received frames against removal */
	void *client_priv;
	bool client_rx;
	bool offered; /* completely built: the client may have it */

	struct workqueue_struct *wq; /* ordered: events in the order they arose */
	struct work_struct event_work;
	struct list_head events;
	spinlock_t event_lock;
	struct delayed_work vf_poll;
	struct delayed_work pulse;

	struct simhca_wire *wire;
	struct simhca_mailbox *mail; /* in a guest */
	struct dentry *debugfs;
	struct simhca_stats stats;
};

struct simhca_event_info {
	enum simhca_event type;
	int port;
	unsigned int arg;
	u32 bitmap;
};

/* mlx4_core/mlx4.h: struct mlx4_interface. There is one client, mlx4_ib. */
struct simhca_client {
	void *(*add)(struct simhca *hca);
	void (*remove)(struct simhca *hca, void *priv);
	void (*event)(struct simhca *hca, void *priv, const struct simhca_event_info *ev);
	void (*receive)(struct simhca *hca, void *priv, const struct simhca_frame *frame);
};

static inline bool simhca_is_master(const struct simhca *hca)
{
	return hca->num_vfs > 0;
}

/* mlx4_core/main.c:mlx4_parav_master_pf_caps: a master keeps the last P_Key entry for itself. */
static inline int simhca_pkey_table_len(const struct simhca *hca)
{
	return simhca_is_master(hca) || hca->is_vf ? SIMHCA_PKEYS - 1 : SIMHCA_PKEYS;
}

static inline u64 simhca_port_guid(const struct simhca *hca, int port)
{
	return hca->guid + port;
}

/* core_pci.c: what every family's probe and remove do */
int simhca_load(struct pci_dev *pdev, const struct simhca_family *family, void *priv);
void simhca_unload(struct pci_dev *pdev);
void simhca_wear_ids(struct pci_dev *pdev, u16 device);
bool simhca_func_has_port(const struct simhca *hca, int fn, int port);

/* core_event.c */
int simhca_register_client(const struct simhca_client *client);
void simhca_unregister_client(const struct simhca_client *client);
void simhca_client_ready(struct simhca *hca, void *priv);
void simhca_client_gone(struct simhca *hca);
int simhca_add(struct simhca *hca);
void simhca_offer(struct simhca *hca);
void simhca_remove(struct simhca *hca);
void simhca_free_events(struct simhca *hca);
void simhca_post(struct simhca *hca, enum simhca_event type, int port, unsigned int arg);
void simhca_post_bitmap(struct simhca *hca, enum simhca_event type, int port, unsigned int arg,
			u32 bitmap);
void simhca_receive(struct simhca *hca, const struct simhca_frame *frame);

/* core_port.c: the link, and what only its state machine may change */
void simhca_port_init(struct simhca *hca, int port);
void simhca_port_client(struct simhca *hca, int port, bool up);
void simhca_port_admin(struct simhca *hca, int port, bool down);
void simhca_port_pulse_in(struct simhca *hca, const struct simhca_frame *frame);
void simhca_port_pulse_work(struct work_struct *work);
void simhca_port_eval(struct simhca *hca, int port);
void simhca_port_set_state(struct simhca *hca, int port, u8 state);
bool simhca_port_carries(struct simhca *hca, int port);

/* core_sma.c: the firmware's agent (MAD_IFC), network view */
struct ib_smp;
void simhca_sma(struct simhca *hca, int port, const struct ib_smp *in, struct ib_smp *out);
int simhca_sma_set_pkey(struct simhca *hca, int port, int index, u16 pkey);
void simhca_sma_rotate_pkeys(struct simhca *hca, int port);

/* core_wire.c */
int simhca_wire_create(struct simhca *hca);
void simhca_wire_destroy(struct simhca *hca);
void simhca_wire_send(struct simhca *hca, struct simhca_frame *frame);

/* core_vf.c: life of the VFs, seen from the PF; and the VF's own half */
int simhca_vf_init(void);
void simhca_vf_exit(void);
void simhca_vf_start(struct simhca *hca);
void simhca_vf_stop(struct simhca *hca);
int simhca_vf_active_count(struct simhca *hca);
void simhca_vf_unbound(struct pci_dev *pdev);
int simhca_vf_begin(struct pci_dev *pdev);
void simhca_vf_end(struct pci_dev *pdev);
void simhca_slave_port_event(struct simhca *hca, int func, int port, bool valid);
void simhca_slave_all_ports(struct simhca *hca, int port, bool up);

/* core_flr.c: how long a reset takes */
unsigned long simhca_flr_done(void);
void simhca_flr_watch(struct simhca *hca);
void simhca_flr_unwatch(struct simhca *hca);

/* core_qp.c: QPs of guests */
struct seq_file;
void simhca_qp_guest_sees(struct simhca *hca, int fn, int port, u16 pkey);
void simhca_qp_forget(struct simhca *hca, int fn);
void simhca_qp_show(struct seq_file *s, struct simhca *hca);

/* core_mailbox.c: the PF's reports to a VF's driver */
struct simhca_mailbox *simhca_mail_create(struct simhca *hca);
void simhca_mail_free(struct simhca_mailbox *m);
void simhca_mail_forget(struct simhca_mailbox *m);
u8 simhca_mail_step(struct simhca *hca, int fn, u8 reg, bool *busy);
int simhca_mail_listen(struct simhca *hca);
void simhca_mail_unlisten(struct simhca *hca);

/* core_sight.c: what guests see, recorded in the writes that change it */
void simhca_set_map(struct simhca *hca, int fn, int port, int index, u8 physical);
void simhca_set_admin_guid(struct simhca *hca, int fn, int port, u64 guid);
void simhca_table_changed(struct simhca *hca);
void simhca_current_domain(char uuid[SIMHCA_UUID + 1]);
void simhca_sight_held(struct simhca *hca, int fn, struct pci_dev *vf, const char *uuid);
void simhca_set_vport_guids(struct simhca *hca, int fn, u64 node, u64 port);
int simhca_sight_init(struct dentry *root);
void simhca_sight_exit(void);

/* core_debugfs.c */
int simhca_debugfs_init(void);
void simhca_debugfs_exit(void);
void simhca_debugfs_add(struct simhca *hca);
void simhca_debugfs_remove(struct simhca *hca);

#endif
