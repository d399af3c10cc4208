/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOST_WORLD_H
#define VHCA_TESTS_SIM_HOST_WORLD_H
/*
 * A host in memory for the production engine: one HCA with VFs whose identities, vfio groups and
 * users are kept here, domains with live hostdevs, and a store on disk. The world carries out
 * effects as the kernel and libvirt would, checks before each that the intent is durable (by a
 * database connection of its own), and can fail an effect or crash the agent before or after it.
 */
#include <stdbool.h>

#include "agent/vf/engine.h"

#define WORLD_VFS     4 /* unless the test sets n_vfs */
#define WORLD_VFS_MAX 12
#define WORLD_DOMAINS 4
#define WORLD_DEVICE  0x1003 /* PCI ID of its adapters: a ConnectX-3 */
#define WORLD_KEYS    8

/* Ground truth of one VF; its number is its place on the card. */
struct world_vf {
	struct vhca_bdf bdf;
	char driver[32];
	uint64_t guid;			/* requested; all ones = withdrawn */
	uint64_t last;			/* mlx5: the last that was asked for */
	uint64_t boot_guid;		/* which the driver gives it when it loads */
	uint64_t epoch;			/* at which it was requested */
	int16_t map[VHCA_VF_PKEYS_MAX]; /* virtual -> physical, -1 = none */
	uint8_t port;			/* which these are on */
	bool gone;			/* the kernel does not show it... */
	bool lost;			/* ...and neither can its adapter reach it */
	bool group_open;		/* a QEMU has it */
	struct vhca_uuid user;		/* domain, while group_open */
	char name[VHCA_NAME_MAX];
	struct vhca_bdf guest; /* PCI address in the guest, while group_open */
	uint16_t other_maps;   /* P_Keys on the adapter's second port, where none should be */
	bool guest_driver;     /* the guest's driver is up: an SM that works grants */
	/*
	 * the GUID was asked for after the last reset: it grants that as well, whoever uses the VF
	 */
	bool asked;
	/* in the port's table though withdrawn, 0 = none: the SM has not heard of it */
	uint64_t held;
};

struct world_domain {
	bool running;
	uint64_t stopped_ms; /* vhca_now_ms() when it ended, or went */
	bool incoming;	     /* held by libvirt: its guest does not run here yet, or no longer */
	bool unreadable;     /* its XML is */
	bool transient;	     /* libvirt forgets it with its end */
	bool paused;	     /* its guest lets go of nothing */
	struct vhca_dom_info info;
};

/* The agent in every guest. */
enum world_agent {
	WORLD_AGENT_NONE, /* the domain has no channel for one */
	WORLD_AGENT_HELPS,
	WORLD_AGENT_NO_SLOT, /* its kernel has none */
	WORLD_AGENT_HANGS,   /* the program does not end */
	WORLD_AGENT_LIES,    /* says that it let go, and has not */
};

/* Where to interfere: at the n-th effect (from 1), counted over the life of the world. */
enum world_fault {
	WORLD_NOTHING,
	WORLD_FAIL,
	WORLD_CRASH_BEFORE,
	WORLD_CRASH_AFTER,
	WORLD_HANG, /* until world_release() */
	WORLD_MUTE, /* libvirtd does it and goes, without a word; back with world_sync_domains() */
	WORLD_AWAY, /* nobody answers at libvirt */
	WORLD_HELD, /* libvirt is at another job of the domain */
};

struct world_job;

/* What is about to be done to a VF; whoever breaks it changes it. */
struct world_twist {
	enum vhca_effect effect;
	struct vhca_identity *want;
	bool *has_guest;
	bool moves; /* the claim does */
};

struct world;
/* For a world that is one of several, in time that the test makes (tests/sim/hosts/chaos.h). */
struct world_hooks {
	/* What the journal says of the VF. */
	void (*journaled)(const struct world *w, struct vhca_bdf bdf, char ret[static 32]);
	/* Instead of fault_at: asked when the effect is about to happen. */
	enum world_fault (*interfere)(struct world *w, const struct vhca_vf *vf,
				      enum vhca_effect effect);
	/* fn(arg) some time later in this life of the agent, else free(arg). */
	void (*later)(struct world *w, void (*fn)(void *arg), void *arg);
	/* About to be done as asked for. */
	void (*twist)(struct world *w, unsigned int v, struct world_twist *twist);
	/* The effect has happened. */
	void (*happened)(struct world *w, unsigned int v, enum vhca_effect effect);
};

struct world {
	char dir[64];
	struct vhca_conf conf;
	struct world_vf vfs[WORLD_VFS_MAX];
	unsigned int n_vfs;
	bool driverless;	 /* the adapters are on the bus, and on no driver */
	uint16_t plugged_device; /* what the bus has in their slots; 0 = cannot be read */
	enum vhca_ib_ports ib_ports;
	/* VFs from this number on are of a second adapter; 0 = there is none */
	unsigned int second_from;
	int numa[2];			/* the adapters' nodes */
	struct vhca_numa_node nodes[2]; /* of the host */
	unsigned int n_nodes;
	bool port_down[2];  /* ...and that their ports are */
	unsigned int plugs; /* the last PCI address that libvirt chose in a guest */
	struct world_domain domains[WORLD_DOMAINS];
	uint16_t port_pkeys[WORLD_KEYS];
	bool sm_grants;	    /* OpenSM answers the driver */
	bool sm_deaf;	    /* it hears of no withdrawal */
	uint64_t sm_choice; /* the GUID that it chooses; 0: it does not answer */
	bool deaf_guest;    /* ignores unplug requests */
	uint32_t deaf_vfs;  /* ...or just those for these, by number */
	enum world_agent guest_agent;
	unsigned int asked;  /* times that it was asked to begin */
	bool odd_bus;	     /* how a guest gets to its VFs is not known */
	bool vfs_lie;	     /* the scrub's read-back differs */
	uint32_t broken_vfs; /* by number: these fail this effect */
	enum vhca_effect broken_effect;
	bool virt_down;	      /* nothing is heard of libvirt */
	bool events_lost;     /* only its live XML is */
	bool shows_too_early; /* libvirt shows a guest that is coming in as one that runs */
	/* it gives an index in use to others: what a guest's map shows is not the agent's fault */
	bool hostile_sm;
	enum world_fault fault;
	unsigned int fault_at;
	enum vhca_effect fault_effect; /* only effects of this kind count; NONE = all */
	unsigned int effects;	       /* counted so far */
	bool crashed;
	struct world_job *hung;
	/* as in struct vhca_engine_args */
	uint32_t adopt_ms, absent_ms, retry_ms, request_ms, word_ms;

	/* the agent's life */
	struct vhca_loop *loop;
	const struct vhca_migration *schema; /* of state.db */
	unsigned int n_schema;
	struct vhca_store *store;
	struct vhca_events *events;
	struct vhca_engine *engine;
	struct world_mlx5 *mlx5; /* world_mlx5.h; NULL: the HCA is a mlx4 one */
	bool sm_accepts;	 /* it says yes to whatever is reported */
	bool no_vports;		 /* the SM leaves ports of mlx5 VFs down */
	uint64_t port_guid;
	uint16_t lid;	 /* of the first adapter's port; the next one's is one more */
	uint16_t sm_lid; /* the SM's, as the port has it */
	/* the RDMA device is not up yet: world_start() says nothing of the port */
	bool port_unseen;
	bool fenced; /* the SM is asked before anything is programmed; the test answers for it */
	/* For a world that is one of two: after a start, before an end. */
	void (*started)(struct world *w);
	void (*stopping)(struct world *w);
	void (*programming)(struct world *w, uint64_t guid, uint64_t epoch); /* or NULL: about to */
	void *pair;
	const struct world_hooks *hooks; /* or NULL */
	unsigned int boots;
	char boot_id[VHCA_UUID_STRLEN];
};

/* Hears what is wrong before the process aborts. */
extern void (*world_judge)(const char *what);

void world_init(struct world *w);
void world_done(struct world *w);

/*
 * Starts an agent on the world: loads the journal, shows it the hardware, the port and all running
 * domains.
 */
void world_start(struct world *w);
/* Ends it as SIGKILL would: nothing is finished. */
void world_kill(struct world *w);
void world_reboot(
	struct world
		*w); /* every guest gone, VFs reset by the driver, another boot id; no agent runs */

/* A domain whose metadata asks for one VF "ib0" (partition NULL = asks for none). */
struct vhca_uuid world_domain_start(struct world *w, unsigned int i, const char *partition);
/* It asks for one more, by this name. */
void world_ask(struct world *w, unsigned int i, const char *name, const char *partition);
void world_domain_stop(struct world *w, unsigned int i);
/* Somebody else plugs VF v into domain i, without us. */
void world_plug(struct world *w, unsigned int v, unsigned int i, const char *name);
void world_set_key(struct world *w, unsigned int index,
		   uint16_t pkey); /* the SM writes the port's table */

/* The card's VFs are made anew: a and b, which nobody has, are at each other's address. */
void world_swap(struct world *w, unsigned int a, unsigned int b);
/* The engine looks at the adapter again. */
void world_show_hardware(struct world *w);
/* The SM, or another one, asks for everything that it should know. */
void world_set_lid(struct world *w, uint16_t lid);
void world_reregister(struct world *w);
/* The RDMA device is up. */
void world_show_port(struct world *w);

void world_release(struct world *w); /* the effect that hangs comes to its end */

/* Guests let go of nothing from now on, and that is soon given up. */
void world_deafen(struct world *w);

/* A full listing of the domains; nothing, while no agent runs. */
void world_sync_domains(struct world *w);
/* One round of the loop; a crash asked for by `fault` kills and restarts the agent. */
void world_round(struct world *w, int wait_ms);
/* The engine looks at domain i again. */
void world_look(struct world *w, unsigned int i);
/* Domain i is coming in by migration (its guest does not run yet), or runs here now. */
void world_incoming(struct world *w, unsigned int i, bool incoming);
/*
 * Runs the loop until cond() holds; false after about 5 s. A crash asked for by `fault` kills and
 * restarts the agent on the way.
 */
bool world_until(struct world *w, bool (*cond)(const struct world *w, const void *arg),
		 const void *arg);
/* Runs for 60 ms: enough for nothing to happen, not for something. */
void world_settle(struct world *w);

/*
 * Invariants that hold at every moment, from ground truth alone; aborts the test with the reason.
 */
void world_check(const struct world *w);
/* VF v belongs to nobody: scrubbed. */
bool world_clean(const struct world *w, unsigned int v);
/* An event whose JSON contains this was told. */
bool world_told(const struct world *w, const char *text);
/* The VF that domain i has under this name, or -1. */
int world_vf_of(const struct world *w, unsigned int i, const char *name);
/* Domain i has any VF. */
bool world_has_vf(const struct world *w, unsigned int i);

#endif
