/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOSTS_CHAOS_H
#define VHCA_TESTS_SIM_HOSTS_CHAOS_H
/*
 * Two to five hosts (world.h) with the whole production agent of each between the hooks of libvirt
 * and the kernel: engine, migration machine, journal, outbox, and both ends of the peer protocol
 * with its JSON. Between them a network that loses, delays, repeats and cuts, an SM (the plugin's
 * own table), and libvirt with its migrations. All of it on one thread, in time that the seed makes
 * (vtime.h), with the journal in memory (memstore.h). docs/design/0006-chaos.md.
 *
 * A step is what an agent does that others, or its next life, can see: a transaction, an effect on
 * a VF, a request, a call to libvirt. Before and after each, on_step() may kill somebody.
 */
#include "agent/api/peer_server.h"
#include "agent/migration/drain.h"
#include "agent/migration/migration.h"
#include "agent/migration/peer.h"
#include "common/http/server.h"
#include "opensm/bindings/agents.h"
#include "tests/sim/host/memstore.h"
#include "tests/sim/host/world.h"
#include "tests/sim/host/world_mlx5.h"
#include "tests/sim/hosts/ledger.h"
#include "tests/sim/sm/sim_sm.h"

#define CHAOS_HOSTS_MAX	 5
#define CHAOS_GUESTS_MAX WORLD_DOMAINS
#define CHAOS_VFS_MAX	 3 /* of one guest */
#define CHAOS_BEGUN_MAX	 256
#define CHAOS_SMS	 LEDGER_SMS

enum chaos_when { CHAOS_BEFORE, CHAOS_AFTER };

struct chaos;
struct chaos_call;

struct chaos_commit {
	TAILQ_ENTRY(chaos_commit) link;
	struct chaos_host *host;
	struct memstore_commit mem;
	int rc;
};

struct chaos_host {
	struct world w;
	struct world_mlx5 mlx5; /* of a ConnectX-5 */
	struct chaos *chaos;
	unsigned int n;
	unsigned int life; /* counts the starts */
	bool dying;
	bool failing; /* its power does, as soon as no agent runs */
	bool off;
	uint64_t off_ms; /* so long */
	TAILQ_HEAD(, chaos_commit) commits;
	uint64_t sm_answer_ms; /* in order */
	struct vhca_migrations *ms;
	struct vhca_drain *drain;
	struct vhca_peer *peer;
	struct vhca_peer_api *peer_api;
	struct vhca_outbox *outbox;
	const struct vhca_http_route *routes;
	void *routes_ctx;
};

/* libvirt's migration of one guest. */
struct chaos_job {
	bool active, cancel;
	unsigned int serial; /* tells jobs apart */
	unsigned int from, to;
	unsigned int life; /* of the agent that waits for it */
	uint64_t begun_us;
	struct vhca_mig *m;
};

/* What a VF must be, wherever its guest runs. */
struct chaos_vf {
	char name[16];
	uint16_t pkey;
	uint64_t guid;
	struct vhca_bdf guest; /* PCI address there */
};

enum chaos_plan {
	CHAOS_PLAN_MIGRATES, /* parked: saves the guest, and restores it later */
	CHAOS_PLAN_BLINDLY,  /* migrates without looking whether the guest is ready, or still is */
	CHAOS_PLAN_CANCELS,
	CHAOS_PLAN_EXTENDS, /* the lease, and migrates then */
	CHAOS_PLAN_DIES,
	CHAOS_PLANS
};

/* Who moves a guest by himself; one at a time. */
struct chaos_orch {
	enum vhca_mig_mode mode;
	enum chaos_plan plan;
	unsigned int to;
	uint64_t lease_ms;
	uint64_t think_ms; /* from the moment in which it sees that the guest is ready */
	/* of chaos_orch.c */
	bool on;
	unsigned int serial; /* tells them apart */
	unsigned int from;
	struct vhca_uuid id;
	uint64_t begun_ms, ready_ms, lease_from;
};

struct chaos_guest {
	unsigned int at; /* the host where it runs */
	bool down;	 /* saved, or lost with its host, and not started again yet */
	/*
	 * ...and is paused there, or a second copy is: libvirt does not know how the migration
	 * ended
	 */
	bool held;
	struct chaos_job job;
	unsigned int n_vfs;
	struct chaos_vf vfs[CHAOS_VFS_MAX];
	/* somewhere the VFs were plugged in anew: their addresses are not the old ones */
	bool fresh;
	struct chaos_orch orch;
	uint64_t bare_since;			/* it lacks a VF; 0 = it does not */
	uint64_t nameless_since[CHAOS_VFS_MAX]; /* the VF has no identity, though this is proven */
	unsigned int starts;
	unsigned int lost; /* times, with its host; tells operators apart */
};

/* What the environment does, each in 1/1000 of the cases; 0 = never. */
struct chaos_odds {
	unsigned int lost, repeated, late; /* messages */
	unsigned int copy_fails, confirm_lost, effect_fails;
	unsigned int slow_copy; /* takes longer than a lease */
};

/* What the checker wants; each has a mutant that breaks it (chaos_mutant.c). */
enum chaos_rule {
	CHAOS_NO_RULE,
	CHAOS_RULE_KEYS,	/* 1: a VF shows the keys of its vGUID, and no other */
	CHAOS_RULE_BARE_ATTACH, /* 1: nothing is attached before its identity is programmed */
	CHAOS_RULE_CLEAN,	/* 2: what the journal calls free is scrubbed */
	CHAOS_RULE_PROOF,	/* 3: programmed only by who can know that it may */
	CHAOS_RULE_HERE,	/* 3: ...and only where the guest is, or is to be */
	CHAOS_RULE_ONE_OWNER,	/* 3: on one VF of all hosts */
	CHAOS_RULE_HANDED,	/* 3: nothing is handed over that a VF still shows */
	CHAOS_RULE_FENCE,	/* 3: the SM refuses what is over, and nothing else */
	CHAOS_RULE_VOUCHED,	/* 3: a generation begins only if an operator has vouched */
	CHAOS_RULE_GENERATION,	/* 3: no take-over without a generation */
	CHAOS_RULE_PULLED,	/* 4: no detach without a migration */
	CHAOS_RULE_STRIPPED,	/* 4: no strip under a guest */
	CHAOS_RULE_MARKER,	/* 4: no copy begins without the marker */
	CHAOS_RULE_COPY,	/* 4: no copy begins with a VF in the guest */
	CHAOS_RULE_INCOMING,	/* 4: no attach to a guest that is still coming in */
	CHAOS_RULE_VF_INTENT,	/* 5: the VF's state in the journal stands for the effect */
	CHAOS_RULE_MIG_INTENT,	/* 5: ...and the migration's */
	CHAOS_RULE_GIVEN_BACK,	/* 8: what a failed migration leaves */
	CHAOS_RULE_ADDRESS,	/* 8: ...where it was */
	CHAOS_RULE_DEVICE,	/* 8: no guest is without a VF for long */
	CHAOS_RULE_WITHHELD,	/* 8: no identity is withheld for long after ownership is proven */
	CHAOS_RULE_VPORT,	/* LIDs: no vport is named that does not show the GUID */
	CHAOS_RULE_KEPT,	/* LIDs: none is given up whose guest runs here */
	CHAOS_RULE_ENDED,	/* in the end: no migration is open */
	CHAOS_RULE_TOLD,	/* 7: ...no report waits */
	CHAOS_RULE_SM,		/* 7: ...SM and journal are at one epoch */
	CHAOS_RULE_GUEST,	/* 8: ...each guest has what it asked for */
	CHAOS_RULE_POOL,	/* 2: ...everything else is free and clean */
	CHAOS_RULE_LIDS,	/* LIDs: ...each leads to where its guest is */
	CHAOS_RULE_CLAIMS,	/* ...and no claim is left over */
	CHAOS_RULE_AUTHORITY,	/* no node changes what is another's */
	CHAOS_RULES
};

/*
 * What is broken on purpose, in an agent or around it: the checker must see it (chaos_mutant.c says
 * how and by which rule).
 */
enum chaos_breakage {
	CHAOS_INTACT,
	CHAOS_OLD_GENERATION,
	CHAOS_UNASKED,
	CHAOS_SAME_BOOT,
	CHAOS_WRONG_KEY,
	CHAOS_NO_PROGRAM,
	CHAOS_NO_SCRUB,
	CHAOS_SILENCE_IS_YES,
	CHAOS_FALSE_ABORT,
	CHAOS_KEEPS_IDENTITY,
	CHAOS_NO_FENCE,
	CHAOS_NO_INTENT_TO_LEAVE,
	CHAOS_STRIPS,
	CHAOS_NO_MARKER,
	CHAOS_EARLY_COPY,
	CHAOS_PLUGS_EARLY,
	CHAOS_LOST_VF_COMMIT,
	CHAOS_LOST_COMMIT,
	CHAOS_FAILS_EARLY,
	CHAOS_NO_ADDRESS,
	CHAOS_NO_ATTACH,
	CHAOS_STAYS_BARE,
	CHAOS_LOST_END,
	CHAOS_NO_ANSWER,
	CHAOS_FORGETFUL_SM,
	CHAOS_KEEPS_MARKER,
	CHAOS_LOST_FREE,
	CHAOS_KEEPS_CLAIMS,
	CHAOS_DENIED_IS_NO,
	CHAOS_STANDBY_IS_YES,
	CHAOS_UNHEARD_MASTER,
	CHAOS_WRONG_REPORT,
	CHAOS_KEYLESS_SM,
	CHAOS_WRONG_VPORT,
	CHAOS_FREES_LID,
	CHAOS_NO_LID,
	CHAOS_NO_NODES,
	CHAOS_NO_NAMES,
	CHAOS_BREAKAGES
};

struct chaos_mutant {
	const char *name, *text;
	enum chaos_rule rule; /* that has to catch it */
};

/* What the SM says instead of an answer, to everybody or to one of the hosts. */
enum chaos_sm_mood {
	CHAOS_SM_WELL,
	CHAOS_SM_REBUILDS,	/* 409 rebuilding: it asks for all that the agents know */
	CHAOS_SM_UNAUTHORIZED,	/* 401: the token was revoked */
	CHAOS_SM_NO_ROLE,	/* 403 role_needed: the token may read only */
	CHAOS_SM_SWEEPS,	/* 503 sweep_in_progress: the LID does not move */
	CHAOS_SM_NOT_YOUR_PORT, /* 403 not_your_port: the port is in another node's line */
	CHAOS_SM_MOODS
};

#define CHAOS_EVERYBODY CHAOS_HOSTS_MAX

/* To an SM. */
struct chaos_request {
	unsigned int from, sm;
	const char *method, *path;
	struct json_object *body;
};

/* The LID that a vGUID has of its own. */
struct chaos_lid {
	uint64_t vguid;
	uint64_t
		port; /* leads to the hypervisor with this one; 0 = there is none, or nobody said */
	uint16_t vport; /* lid_policy vport: to this one of its ports */
};

/* Who has a vGUID, as an SM knows it that goes by tickets. */
struct chaos_owner {
	uint64_t vguid, epoch;
	unsigned int owner;
	unsigned int other;  /* of a hand-over that has not settled; CHAOS_HOSTS_MAX = nobody */
	unsigned int proven; /* times that it went to another owner */
};

/* What was said to a host, or to CHAOS_HOSTS_MAX and the number of an SM. */
struct chaos_heard {
	unsigned int to;
	char method[8], path[112];
	struct json_object *body;
};
#define CHAOS_HEARD_MAX 64

/* Somebody has the name of a host (chaos_attacker.h). */
struct chaos_attacker {
	bool on;
	unsigned int host;
	bool takes; /* it also binds what is others' to its own port */
	uint64_t rng;
	unsigned int sent, n_heard;
	struct chaos_heard heard[CHAOS_HEARD_MAX]; /* the last ones */
};

struct chaos_stats {
	unsigned int started, kills, messages, lost, steps, power_offs, takeovers;
	uint64_t digest; /* of who took a step when, after which draws */
};

struct chaos {
	uint64_t rng;
	unsigned int n_hosts, n_guests;
	enum chaos_breakage breakage;
	bool fenced;
	bool mlx5;	   /* as in struct chaos_size */
	uint32_t alone_ms; /* the same */
	bool ports;	   /* the same */
	struct chaos_host hosts[CHAOS_HOSTS_MAX];
	struct chaos_guest guests[CHAOS_GUESTS_MAX];
	bool cut[CHAOS_HOSTS_MAX][CHAOS_HOSTS_MAX];
	struct sim_sm sms[CHAOS_SMS]; /* each with a table of its own, as its state file is */
	bool sm_down;
	bool standby;			      /* there are two SMs, of which one is master */
	unsigned int sm_master;		      /* this one */
	enum vhca_conf_lid_policy lid_policy; /* as in struct chaos_size */
	struct chaos_lid lids[LEDGER_IDS];
	unsigned int n_lids;
	enum chaos_sm_mood mood; /* the master's... */
	unsigned int mood_to;	 /* ...to this host, or CHAOS_EVERYBODY */
	struct chaos_odds odds;
	bool next_copy_fails;
	/* agents, links, libvirtds, SM, or guests are not as they should be */
	uint64_t trouble_until;
	TAILQ_HEAD(, chaos_call) calls;
	uint64_t last_call;
	void (*on_step)(struct chaos *c, struct chaos_host *h, enum chaos_when when,
			const char *label);
	void *arg;	   /* on_step's */
	bool wants_labels; /* on_step does; they cost time */
	struct chaos_stats stats;
	bool trace;
	struct ledger ledger;
	struct vhca_osm_agents agents;
	struct vhca_http_auth *authority; /* by which the SM verifies tickets; NULL: it does not */
	struct vhca_http_auth *credentials[CHAOS_HOSTS_MAX];
	struct chaos_owner owners[LEDGER_IDS];
	unsigned int n_owners;
	unsigned int n_strangers; /* reports that it has refused, for want of a ticket */
	struct chaos_attacker attacker;
	struct {
		char id[37];
		unsigned int starts;	 /* of its guest, when it began */
		bool had[CHAOS_VFS_MAX]; /* which VFs the guest had then */
	} begun[CHAOS_BEGUN_MAX];	 /* migrations, the last ones */
	unsigned int n_begun;
	bool broken;	      /* a violation was found... */
	enum chaos_rule rule; /* ...of this rule... */
	char why[256];	      /* ...this one */
};

struct chaos_size {
	unsigned int hosts, guests, vfs; /* vfs: of a guest, at most; how many, the seed says */
	bool mlx5;			 /* the hosts' adapters: their VFs are ports */
	enum vhca_conf_lid_policy lid_policy; /* of mlx5 hosts */
	bool standby; /* a second SM, which answers 421 until it is master */
	/* for a guest that has arrived before the hand-over; 0 = the agents' own */
	uint32_t alone_ms;
	bool ports; /* the last VF of each host is kept for a cloud's ports, if there is room */
	/* host0.pem, host0.key, ..., ca.pem; the SM goes by tickets. NULL: nobody has one */
	const char *certificates;
	enum chaos_breakage breakage;
};
/* All agents up, every guest with its VFs on a host. */
void chaos_init(struct chaos *c, uint64_t seed, const struct chaos_size *size);
void chaos_done(struct chaos *c);
void chaos_run(struct chaos *c, uint64_t ms);
/*
 * Runs until chaos_at_rest() or for so long; false: not reached, and what is missing is told in
 * c->why.
 */
bool chaos_settle(struct chaos *c, uint64_t ms);
uint32_t chaos_random(struct chaos *c, uint32_t n);
bool chaos_odd(struct chaos *c, unsigned int of_1000);
/* A violation; the first one counts. */
void chaos_broken(struct chaos *c, enum chaos_rule rule, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void chaos_trace(const struct chaos *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- what can be done to it ---- */
/* True if the source's agent took it. */
bool chaos_migrate(struct chaos *c, unsigned int guest, unsigned int to);
/* The same by a program of its own: mode, plan, to and times are the caller's. */
bool chaos_orchestrate(struct chaos *c, unsigned int guest, const struct chaos_orch *orch);
/*
 * Drained: its guests go to this peer, or, if that is the host itself, have their VFs parked.
 * False: ask again.
 */
bool chaos_drain(struct chaos_host *h, unsigned int peer);
bool chaos_undrain(struct chaos_host *h);
/* A cloud reserves the host's VF for the port of a guest that never comes. */
void chaos_reserve(struct chaos_host *h, uint32_t lease_s);
/* Somebody is in trouble from now on for so long: nobody can be expected to be quick. */
void chaos_trouble(struct chaos *c, uint64_t ms);
void chaos_cancel(struct chaos *c, unsigned int guest);
/* SIGKILL now or, from inside an agent, when it returns. Nothing, if it is down. */
void chaos_kill(struct chaos_host *h);
void chaos_start(struct chaos_host *h);
/*
 * Its power fails, now or when its agent returns, for so long: guests and the VFs' registers are
 * lost, the journal is not. Operators look after the guests.
 */
void chaos_power_off(struct chaos_host *h, uint64_t ms);
/* At once. */
void chaos_power_on(struct chaos_host *h);
void chaos_cut(struct chaos *c, unsigned int a, unsigned int b, bool cut);
/* libvirtd goes: its migrations fail, its guests stay. */
void chaos_virt(struct chaos_host *h, bool up);
/* The other side's QEMU of a migration that is coming in dies. */
void chaos_kill_incoming(struct chaos *c, unsigned int guest);

/* ---- between the files of the simulation ---- */
/* A step of h; false: h dies here. */
bool chaos_step(struct chaos_host *h, enum chaos_when when, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* chaos_net.c */
void chaos_net_dead(struct chaos_host *h);
/* chaos.c */
struct chaos *chaos_of_loop(const struct vhca_loop *loop);
void chaos_net_serve(unsigned int host, const struct vhca_http_route *routes, void *ctx);
/* True if the source's agent took it. */
bool chaos_request(struct chaos *c, unsigned int guest, unsigned int to,
		   const struct vhca_mig_request *req, struct vhca_uuid *ret_id);
unsigned int chaos_guest_of(const struct chaos *c, const struct vhca_uuid *domain);
/* chaos_sm.c: who is master */
struct sim_sm *chaos_master(struct chaos *c);
/*
 * The other SM is, with what it was told in its own time, or with nothing. Ports hear of it a
 * little later.
 */
void chaos_sm_takes_over(struct chaos *c, bool knows_nothing);
/* ...an answer to a request; the status, *ret is the caller's. */
int chaos_sm_answer(struct chaos *c, const struct chaos_request *req, struct json_object **ret);
/* chaos_lids.c: a binding was accepted, of a body, at a place; it ends, and so does its LID */
void chaos_lid_comes(struct chaos *c, const struct vhca_osm_binding *b, struct json_object *body,
		     struct json_object *where);
void chaos_lid_ends(struct chaos *c, uint64_t vguid);
/* ...who comes out of standby does */
void chaos_lids_forget(struct chaos *c);
/* ...false: it leads somewhere else */
bool chaos_lid_leads(struct chaos *c, uint64_t vguid, uint64_t port, uint16_t vport);
/* ...no sweep keeps it from going where a report of this host wants it */
bool chaos_lid_moves(const struct chaos *c, unsigned int host);
/* ...the LID that is to move with a report did not: 503; 0: it did, or none is */
int chaos_lid_refuse(const struct chaos *c, const struct chaos_request *req,
		     struct json_object **ret);
/* chaos_refusal.c: the same for an SM that answers nothing of this host; 0: it does. */
int chaos_sm_refuse(const struct chaos *c, const struct chaos_request *req,
		    struct json_object **ret);
/* chaos_nodes.c: each host is a node; the same for what is another one's to say. */
void chaos_nodes_list(struct chaos *c);
int chaos_nodes_refuse(const struct chaos *c, const struct chaos_request *req,
		       struct json_object **ret);
/* chaos_tickets.c: the same for what is another one's, without a ticket; accepted */
int chaos_tickets_refuse(struct chaos *c, const struct chaos_request *req,
			 struct json_object **ret);
void chaos_tickets_take(struct chaos *c, const struct chaos_request *req);
/* ...borrowed; NULL: the SM has not heard of it */
const struct chaos_owner *chaos_owner_of(struct chaos *c, uint64_t vguid);
void chaos_tickets_begin(struct chaos *c, const char *dir);
void chaos_tickets_end(struct chaos *c);
/* chaos_virt.c */
void chaos_virt_effect(void *host, struct vhca_mig *m, enum vhca_mig_effect effect);
/* An orchestrator's virsh migrate. */
int chaos_virt_migrate(struct chaos *c, unsigned int guest, unsigned int to,
		       struct vhca_error *err);
/* Its QEMU ends with its host: what libvirt did with it at this host ends, too. */
void chaos_virt_lose(struct chaos_host *h, unsigned int guest);
/* The guest stops for good, or to be saved; false: libvirt cannot do it now. */
bool chaos_virt_stop(struct chaos *c, unsigned int guest);
bool chaos_virt_start(struct chaos *c, unsigned int guest, unsigned int at);
/* chaos_orch.c: once a second */
void chaos_look_after_guests(void *chaos);
/* chaos_power.c: no agent runs */
void chaos_power_fails(struct chaos_host *h);
/* chaos_mutant.c; rules are told by their name, "3 proof" */
extern const struct chaos_mutant chaos_mutants[CHAOS_BREAKAGES];
extern const char *const chaos_rules[CHAOS_RULES];
bool chaos_is(const struct chaos *c, enum chaos_breakage breakage);
/* The rule that world_must() has found broken by these words. */
enum chaos_rule chaos_rule_of(const char *what);
void chaos_twist(struct world *w, unsigned int v, struct world_twist *twist);
/* The commit is lost, and is said to be durable. */
bool chaos_loses(const struct chaos *c, const char *label);
/* The agent says something else. */
void chaos_misreport(const struct chaos *c, struct json_object *body, char *path);
/* The agent takes the SM's answer for another one. */
void chaos_mishear(const struct chaos *c, int *status, struct json_object **body);
/* chaos_check.c */
bool chaos_leaves(const struct chaos_host *h, const struct vhca_uuid *domain);
/* A report leaves the host. */
void chaos_check_report(struct chaos *c, const struct ledger_message *m);
/* A hand-over leaves the host. */
void chaos_check_handed(struct chaos *c, const struct ledger_message *m);
/* The SM answers. */
void chaos_check_sm(struct chaos *c, const struct ledger_message *m);
void chaos_check_vfs(struct chaos *c);
void chaos_check_effect(struct chaos *c, const struct chaos_host *h, unsigned int v,
			enum vhca_effect effect);
void chaos_check_call(struct chaos *c, const struct chaos_host *h, const struct vhca_mig *m,
		      enum vhca_mig_effect effect);
void chaos_check_commit(struct chaos *c, const struct chaos_host *h, const char *label);
bool chaos_at_rest(struct chaos *c);
void chaos_path(const struct chaos_host *h, char ret[static 96]);

#endif
