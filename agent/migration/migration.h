/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_MIGRATION_H
#define VHCA_AGENT_MIGRATION_MIGRATION_H
/*
 * Migrations, both sides (docs/design/0002-migration.md). Like the engine: the state is journaled
 * before its effect starts, every effect is idempotent and done again after a restart, and what is
 * looked at is the level of things. The rules of both sides are tables (agent/migration/table.h),
 * printed in docs/migration-states.md.
 */
#include "agent/vf/engine.h"
#include "agent/migration/vfs.h"

#define VHCA_MIGRATIONS_MAX	   64  /* running at once */
#define VHCA_MIGRATION_HISTORY_MAX 100 /* ended ones kept for questions */

enum vhca_mig_state {
	VHCA_MIG_CLAIMING,
	VHCA_MIG_DETACHING,
	VHCA_MIG_HANDING_OVER,
	VHCA_MIG_READY,	 /* external: the orchestrator may migrate */
	VHCA_MIG_PARKED, /* parked: the guest runs without its VFs */
	VHCA_MIG_COPYING,
	VHCA_MIG_FINISHING,
	VHCA_MIG_ABORTING,
	VHCA_MIG_ARBITRATING,
	VHCA_MIG_RESTORING,
	VHCA_MIG_RESERVING,
	VHCA_MIG_RESERVED,
	VHCA_MIG_PROGRAMMING,
	VHCA_MIG_INCOMING,
	VHCA_MIG_ATTACHING,
	VHCA_MIG_ENDING,
	VHCA_MIG_DONE,	 /* either side: the VM is at the destination with its VFs */
	VHCA_MIG_FAILED, /* source: everything is back as it was */
	VHCA_MIG_ENDED,	 /* destination: given up, nothing is left */
	VHCA_MIG_STATE_COUNT
};
enum vhca_mig_mode {
	VHCA_MIG_MODE_MANAGED,	/* we migrate */
	VHCA_MIG_MODE_EXTERNAL, /* an orchestrator does, once we are ready */
	VHCA_MIG_MODE_PARK,	/* nobody does: the VFs leave their guest, and come back */
	VHCA_MIG_MODE_COUNT
};
/* "external"; never NULL. */
const char *vhca_mig_mode_to_string(enum vhca_mig_mode mode);
/* -EINVAL for another word. */
int vhca_mig_mode_parse(const char *word, enum vhca_mig_mode *ret);

/* What of the time without VFs is the agents' own. */
enum vhca_mig_time {
	VHCA_MIG_REMOVED_TO_MIGRATE, /* source: from the last DEVICE_REMOVED to libvirt's call */
	VHCA_MIG_REMOVED_TO_READY,   /* source, external: to the state ready */
	/* destination: from RESUMED to libvirt's call for the first VF */
	VHCA_MIG_RESUMED_TO_ATTACH,
	VHCA_MIG_RESUMED_TO_GRANTED, /* destination: until the SM has granted the last one */
	VHCA_MIG_TIME_COUNT
};
/* "removed_to_migrate"; never NULL. */
const char *vhca_mig_time_to_string(enum vhca_mig_time time);

/* "handing_over"; never NULL. */
const char *vhca_mig_state_to_string(enum vhca_mig_state state);
/* -EINVAL for another word. */
int vhca_mig_state_parse(const char *word, enum vhca_mig_state *ret);
/* done, failed or ended. */
bool vhca_mig_state_is_final(enum vhca_mig_state state);

enum vhca_mig_effect {
	VHCA_MIG_EFFECT_NONE,
	VHCA_MIG_EFFECT_CLAIM,	  /* peer: PUT claims */
	VHCA_MIG_EFFECT_HANDOVER, /* peer: POST handover */
	VHCA_MIG_EFFECT_STATUS,	  /* peer: GET claims */
	VHCA_MIG_EFFECT_ABORT,	  /* peer: POST abort */
	VHCA_MIG_EFFECT_MARK,	  /* libvirt: marker into the live metadata */
	VHCA_MIG_EFFECT_UNMARK,
	VHCA_MIG_EFFECT_COPY,	/* libvirt: migrate; ends when it ends */
	VHCA_MIG_EFFECT_CANCEL, /* libvirt: abort the job; runs beside COPY */
	VHCA_MIG_EFFECT_JOB,	/* libvirt: does the domain run here, is a job under way? */
	VHCA_MIG_EFFECT_CHECK,	/* libvirt: would it copy the domain? Changes nothing */
	VHCA_MIG_EFFECT_COUNT
};
/* The agent of the other host runs it; else libvirt here. */
bool vhca_mig_effect_asks_peer(enum vhca_mig_effect effect);

struct vhca_mig_result {
	int rc;
	struct vhca_error err;
	bool attached; /* STATUS: every VF is in the guest at the destination */
	bool arrived;  /* STATUS: the guest runs at the destination */
	bool ended;    /* STATUS: the destination has given this migration up */
	bool waits;    /* STATUS: nothing has been handed over to it yet */
	bool begun;    /* STATUS, HANDOVER: libvirt has begun there, however it went on */
	struct vhca_mig_vf vfs[VHCA_MIGRATION_VFS_MAX]; /* STATUS: of n_vfs */
	unsigned int n_vfs;
	bool active, copying; /* JOB */
	bool held; /* JOB: paused by libvirt for the migration, it may run at the destination */
	uint64_t called_us; /* COPY: when libvirt was told to (vhca_now_us()); 0 = it was not */
};

struct vhca_migrations;

struct vhca_mig_waiter;
/* Called once; m is borrowed. err NULL: the state that was waited for is reached (or passed). */
struct vhca_mig;
typedef void (*vhca_mig_waiter_fn)(void *arg, const struct vhca_mig *m,
				   const struct vhca_error *err);

struct vhca_mig {
	TAILQ_ENTRY(vhca_mig) link;
	struct vhca_migrations *owner;
	struct vhca_uuid id, domain;
	char domain_name[128];
	/* source: [peer NAME]; destination: the source's node name, shortened */
	char peer[VHCA_NAME_MAX];
	bool source;
	enum vhca_mig_mode mode;
	struct vhca_guest_memory
		memory; /* destination: of the guest that is to come; not durable */
	enum vhca_mig_state state;
	bool handed; /* an epoch has been promised to the destination, and ours is none above it */
	bool begun; /* destination: so it has once, in this life of the agent; source: as it says */
	bool pinned; /* destination: libvirt's migration has begun; the lease no longer counts */
	bool cancel; /* source: somebody wants it to stop */
	bool degraded;
	struct vhca_mig_vf
		vfs[VHCA_MIGRATION_VFS_MAX]; /* source: n_vfs at the destination, as it said last */
	unsigned int n_vfs;
	struct vhca_error failure;	 /* why it did not succeed; kind NONE so far */
	char reason[256];		 /* what it waits for, or why it ended */
	uint64_t started_ms, updated_ms; /* wall clock */
	uint64_t entered_ms;		 /* vhca_now_ms() */
	uint32_t step_ms[VHCA_MIG_STATE_COUNT];
	uint64_t time_us[VHCA_MIG_TIME_COUNT]; /* 0 = not known */

	bool committing;
	bool journaled; /* has a row */
	enum vhca_mig_state next;
	enum vhca_mig_effect effect;
	const struct vhca_mig_result *res; /* of the effect that ended, while that is handled */
	bool checked; /* source: in this life of the agent, libvirt would copy it */
	bool cancelling, marked, unmarked, loaded, answered;
	bool may_be_marked; /* libvirt was asked to, whatever it said */
	bool revived;	    /* by a restart of the agent: libvirt may know more */
	bool handing;	    /* source: a hand-over is under way beside the effect */
	bool delivered; /* source: the destination has it, as it said in this life of the agent */
	bool runs_here; /* arbitrating: libvirt has said so */
	uint64_t lease_ms;	    /* source: in ready and parked; 0 = no end */
	struct vhca_conf_copy copy; /* source, managed: how libvirt is to copy it */
	uint64_t lease_until;	    /* vhca_now_ms(); 0 = no end. Source, managed: of the copy */
	/* destination: the guest was seen here before the hand-over; 0 = not so */
	uint64_t arrived_ms;
	uint64_t renewed_ms; /* source: the destination's lease, in this life of the agent */
	struct vhca_backoff backoff;
	uint64_t not_before_ms;
	struct vhca_timer *timer;
	struct vhca_backoff hand_backoff;
	uint64_t hand_not_before_ms;
	struct vhca_timer *hand_timer;
	STAILQ_HEAD(, vhca_mig_waiter) waiters;
};

struct vhca_mig_effects {
	/* Later, never from inside: vhca_migrations_effect_done(), exactly once. */
	void (*start)(void *ctx, struct vhca_mig *m, enum vhca_mig_effect effect);
	/* The keys that claims on the move need on their ports may have changed. */
	void (*members)(void *ctx);
	void *ctx;
};

struct vhca_migrations_args {
	struct vhca_loop *loop;
	struct vhca_store *store;
	struct vhca_events *events;
	struct vhca_engine *engine;
	const struct vhca_conf *conf;
	struct vhca_mig_effects effects;
	/*
	 * A destination silent for so long, or a VF quarantined for so long on the way back, is
	 * given up; 0 = 15000.
	 */
	uint32_t abort_tries_ms;
	uint32_t retry_ms; /* the first back-off; 0 = 200 */
	uint32_t renew_ms; /* between two renewals of the lease there; 0 = 2000 */
	uint32_t
		alone_ms; /* how long a guest that has arrived waits for the hand-over; 0 = 15000 */
};

/* Loads what is under way (blocking). */
int vhca_migrations_new(const struct vhca_migrations_args *args, struct vhca_migrations **ret,
			struct vhca_error *err);
/* Waiters get "shutting_down". Accepts NULL, returns NULL. */
struct vhca_migrations *vhca_migrations_free(struct vhca_migrations *ms);
void vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
				 const struct vhca_mig_result *res);

/* ---- source ---- */
struct vhca_mig_request {
	struct vhca_uuid domain;
	const char *peer; /* [peer NAME]; not looked at when parking */
	enum vhca_mig_mode mode;
	uint64_t lease_ms; /* how long the guest may wait without its VFs; 0 = as configured */
	const struct vhca_conf_copy *copy; /* managed; NULL = as configured */
};
#define VHCA_MIG_NO_LEASE UINT64_MAX

/* {timeout (s), bandwidth, connections, auto_converge, tls}. Caller puts it. */
struct json_object *vhca_mig_copy_to_json(const struct vhca_conf_copy *copy);
/* What such an object says of it; all else of *copy stays. "bad_request" names the member. */
int vhca_mig_copy_parse(struct json_object *o, struct vhca_conf_copy *copy, struct vhca_error *err);

/* Starts one for an active domain with attached VFs. *ret is borrowed. */
int vhca_migrations_request(struct vhca_migrations *ms, const struct vhca_mig_request *req,
			    const struct vhca_mig **ret, struct vhca_error *err);
/* A managed one. */
int vhca_migrations_start(struct vhca_migrations *ms, const struct vhca_uuid *domain,
			  const char *peer, const struct vhca_mig **ret, struct vhca_error *err);
int vhca_migrations_cancel(struct vhca_migrations *ms, const struct vhca_uuid *id,
			   struct vhca_error *err);

/* The lease of one that is ready or parked, or will be, starts anew with this length. */
int vhca_migrations_extend(struct vhca_migrations *ms, const struct vhca_uuid *id,
			   uint64_t lease_ms, struct vhca_error *err);

/* ---- destination; fn is called exactly once, never from inside ---- */
struct vhca_mig_offer {
	struct vhca_uuid id, domain;
	char domain_name[128];
	char node[VHCA_NAME_MAX];
	enum vhca_mig_mode mode; /* managed: the copy begins before the hand-over */
	struct vhca_guest_memory memory;
	unsigned int n_vfs;
	struct vhca_reservation vfs[VHCA_MIGRATION_VFS_MAX];
};
/* Answers when reserved. The same id again gets the answer of the first. */
void vhca_migrations_offer(struct vhca_migrations *ms, const struct vhca_mig_offer *offer,
			   vhca_mig_waiter_fn fn, void *arg);
/*
 * What guests need of the same pages that are to come as well and that libvirt has not begun to
 * bring.
 */
uint64_t vhca_migrations_memory_coming(const struct vhca_migrations *ms,
				       const struct vhca_guest_memory *like);
/* The new epoch of each vGUID; answers when programmed. */
void vhca_migrations_handover(struct vhca_migrations *ms, const struct vhca_uuid *id,
			      const struct vhca_epoch *epochs, unsigned int n,
			      vhca_mig_waiter_fn fn, void *arg);
/* Answers when nothing is left; an unknown id is remembered as ended. */
void vhca_migrations_end(struct vhca_migrations *ms, const struct vhca_uuid *id,
			 vhca_mig_waiter_fn fn, void *arg);
/*
 * The hook's `migrate begin` of a domain with this migration's marker: 0 = pinned, or a negative
 * errno with err: refuse. A marker goes with any copy of a domain's XML: it is worth something for
 * the migration's own domain only.
 */
int vhca_migrations_begin(struct vhca_migrations *ms, const struct vhca_uuid *id,
			  const struct vhca_uuid *domain, struct vhca_error *err);

/* ---- views ---- */
const struct vhca_mig *vhca_migrations_find(struct vhca_migrations *ms,
					    const struct vhca_uuid *id); /* borrowed or NULL */
const struct vhca_mig *
vhca_migrations_first(struct vhca_migrations *ms); /* oldest; then TAILQ_NEXT(m, link) */
/*
 * The claims of a migration, in the model's order: first with NULL; NULL at the end. At the
 * destination they are still found when it is done (until the agent is restarted).
 */
struct vhca_claim *vhca_migration_claim(const struct vhca_mig *m, struct vhca_claim *after);
/*
 * At the source: the guest, as libvirt shows it; NULL if it does not run here. Borrowed, for the
 * moment.
 */
const struct vhca_dom_info *vhca_migration_guest(const struct vhca_mig *m);
/* At the destination: libvirt has begun to bring the guest, or may have. */
bool vhca_migration_begun(const struct vhca_mig *m);
/* At the destination: every VF is in the guest. */
bool vhca_migration_attached(const struct vhca_mig *m);

#endif
