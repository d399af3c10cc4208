/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_MIGRATION_MIGRATION_H
#define VHCA_AGENT_MIGRATION_MIGRATION_H
/*
 * Migrations, both sides (docs/design/0002-migration.md). Like the engine: the state is journaled
 * before its effect starts, every effect is idempotent and done again after a restart, and what is
 * looked at is the level of things. The rules of both sides are tables (agent/migration/table.h),
 * printed in docs/migration-states.md.
 */
#include "agent/migration/vfs.h"
#include "agent/vf/engine.h"
#include "common/http/auth.h"

#define VHCA_MIGRATIONS_MAX 64 /* running at once */
/*
 * Ended ones kept for questions: so many of this host's own, of each [peer] that has offered them,
 * of all other nodes, and of those that were ended before they were offered.
 */
#define VHCA_MIGRATION_HISTORY_MAX 100
/* Of all that others have offered: seven at least of each of VHCA_CONF_PEERS_MAX. */
#define VHCA_MIGRATIONS_OFFERED_MAX 2048

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
	VHCA_MIG_EFFECT_COPY,	  /* libvirt: migrate; ends when it ends */
	VHCA_MIG_EFFECT_CANCEL,	  /* libvirt: abort the job; runs beside COPY */
	VHCA_MIG_EFFECT_JOB,	  /* libvirt: does the domain run here, is a job under way? */
	VHCA_MIG_EFFECT_CHECK,	  /* libvirt: would it copy the domain? Changes nothing */
	VHCA_MIG_EFFECT_NO_START, /* libvirt: what is left here does not start with the host */
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
	uint64_t called_us;  /* COPY: when libvirt was told to (vhca_now_us()); 0 = it was not */
	bool dirty_is_known; /* CHECK: libvirt has measured... */
	uint64_t dirty_mib;  /* ...how many MiB/s the guest writes */
};

/* Of libvirt's copy, before it is begun. */
struct vhca_mig_expected {
	bool is_known;	     /* else the rest says nothing */
	bool dirty_is_known; /* else it is the time of the memory alone */
	uint64_t dirty_mib;  /* MiB/s */
	bool is_slowed;	     /* auto_converge is to end it: the time of the memory alone, too */
	uint64_t ms;	     /* VHCA_COPY_NEVER (agent/state/guest_copy.h): it would not end */
};

struct vhca_migrations;

struct vhca_mig_waiter;
/* Called once; m is borrowed. err NULL: the state that was waited for is reached (or passed). */
struct vhca_mig;
typedef void (*vhca_mig_waiter_fn)(void *arg, const struct vhca_mig *m,
				   const struct vhca_error *err);

/*
 * What has been done in the state that a migration is in. The rules of the state that is named
 * write it; the machine sets NEW when a state is entered, and it begins as NEW with the agent.
 */
enum vhca_mig_phase {
	VHCA_MIG_PHASE_NEW,
	VHCA_MIG_PHASE_CHECKED,	      /* claiming: libvirt would copy the guest */
	VHCA_MIG_PHASE_LEAVING,	      /* detaching: the VFs were asked to leave */
	VHCA_MIG_PHASE_COPY_FAILED,   /* copying: where the guest is, EFFECT_JOB has to tell */
	VHCA_MIG_PHASE_START_ASKED,   /* finishing: libvirt was asked not to start the copy here */
	VHCA_MIG_PHASE_HERE,	      /* arbitrating: libvirt says that the guest runs here */
	VHCA_MIG_PHASE_NOT_HERE,      /* arbitrating: libvirt does not say so */
	VHCA_MIG_PHASE_KEYS_DECLARED, /* reserving: the SM knows which P_Keys the port needs */
	VHCA_MIG_PHASE_GUEST_SEEN,    /* destination: the guest is coming; attaching: is here */
};

/*
 * Source: whether the epoch of its claims is promised to the destination, and how far the hand-over
 * is that says so. Only agent/migration/handover.c writes it, and the journal's loader. What is
 * promised is in the journal with each state; what the destination has said is known to this life
 * of the agent only, so every promise is loaded as PROMISED. While it is promised, the identities
 * are not the source's to use; once it is recalled they are, at a higher epoch.
 *
 * SENDING, RENEWING and RECALLED are of a hand-over beside libvirt's copy, of which one is under
 * way at most. In handing_over and ready the hand-over is the migration's effect, which leaves this
 * as it is until it is answered.
 *
 * Destination: NONE, and DELIVERED or TAKEN since the epoch is its own; its rules write it.
 */
enum vhca_mig_handover {
	VHCA_MIG_HANDOVER_NONE,
	VHCA_MIG_HANDOVER_PROMISED,  /* the destination may know, but has not said so */
	VHCA_MIG_HANDOVER_SENDING,   /* as PROMISED; a hand-over is under way */
	VHCA_MIG_HANDOVER_DELIVERED, /* the destination has said that it has the epoch */
	VHCA_MIG_HANDOVER_RENEWING,  /* as DELIVERED; a hand-over renews the lease there */
	VHCA_MIG_HANDOVER_RECALLED,  /* as NONE; the answer to a hand-over is still to come */
	VHCA_MIG_HANDOVER_TAKEN,     /* from a silent source, so without tickets */
};

/*
 * The marker in the guest's live XML, as far as this life of the agent knows. The machine writes
 * ASKED, the rules that get libvirt's answers write the others. It never goes back.
 */
enum vhca_mig_marker {
	VHCA_MIG_MARKER_UNKNOWN, /* it may be there if the guest's XML has it */
	VHCA_MIG_MARKER_ASKED,	 /* it may be there: libvirt was asked to set it */
	VHCA_MIG_MARKER_SET,
	VHCA_MIG_MARKER_REMOVED,
};

/* The machine and the journal's loader write it. */
enum vhca_mig_record {
	VHCA_MIG_RECORD_NONE,	 /* no row yet: if writing it fails, the migration never began */
	VHCA_MIG_RECORD_WRITTEN, /* began in this life of the agent */
	VHCA_MIG_RECORD_LOADED,	 /* of an earlier life, in the state that was loaded */
	VHCA_MIG_RECORD_RESUMED, /* of an earlier life, in a state that was entered since */
};

/* mig_cancel() writes WANTED, and nothing takes it back. */
enum vhca_mig_cancel {
	VHCA_MIG_CANCEL_NONE,
	VHCA_MIG_CANCEL_WANTED,	 /* source: it is to stop; destination: the source gave it up */
	VHCA_MIG_CANCEL_SENDING, /* source: libvirt is being told to stop its job */
};

struct vhca_mig {
	TAILQ_ENTRY(vhca_mig) link;
	struct vhca_migrations *owner;

	/* What it is; the request or the offer says so, and the journal keeps it. */
	struct vhca_uuid id, domain;
	char domain_name[128];
	/* source: [peer NAME]; destination: the source's node name, shortened */
	char peer[VHCA_NAME_MAX];
	bool source;
	unsigned int origin; /* whose history it is in (agent/migration/journal.c) */
	enum vhca_mig_mode mode;
	struct vhca_conf_copy copy;	   /* source, managed: how libvirt is to copy the guest */
	struct vhca_mig_expected expected; /* source, managed: not in the journal */
	/* destination: of the guest that is to come; not in the journal */
	struct vhca_guest_memory memory;

	/* Where it is; the machine writes it. */
	enum vhca_mig_state state; /* as in the journal */
	enum vhca_mig_state next;  /* being written; VHCA_MIG_STATE_COUNT: none is, rules apply */
	enum vhca_mig_record record;
	enum vhca_mig_effect effect;	   /* under way; NONE: a rule may begin one */
	const struct vhca_mig_result *res; /* of the effect that ended, while that is handled */

	/* What the rules know and write. */
	enum vhca_mig_phase phase;
	enum vhca_mig_handover handover;
	enum vhca_mig_marker marker;
	enum vhca_mig_cancel cancel;
	/*
	 * libvirt has begun to bring the guest. Destination: once in this life of the agent.
	 * Source: the destination said so, or it has given the migration up.
	 */
	bool begun;
	/* destination: libvirt's migration is under way, no lease counts; in the journal */
	bool pinned;
	bool degraded; /* the guest lacks what it should have; only the end clears it */

	/* What people read. */
	struct vhca_error failure; /* why it did not succeed; kind NONE so far */
	char reason[256];	   /* what it waits for, or why it ended */
	/* source: n_vfs at the destination, as it said last */
	struct vhca_mig_vf vfs[VHCA_MIGRATION_VFS_MAX];
	unsigned int n_vfs;
	/*
	 * source: texts of common/ticket/ticket.h, by which this host names the destination; NULL =
	 * none. In the journal with the promise. Only agent/migration/handover.c writes it, and the
	 * journal's loader.
	 */
	struct json_object *tickets;
	uint64_t started_ms, updated_ms; /* wall clock */
	uint32_t step_ms[VHCA_MIG_STATE_COUNT];
	uint64_t time_us[VHCA_MIG_TIME_COUNT]; /* 0 = not known */

	/* Limits, by vhca_now_ms(). */
	uint64_t known_ms;    /* since when this life of the agent knows it */
	uint64_t entered_ms;  /* since when it is in its state */
	uint64_t lease_ms;    /* source: how long it may be ready or parked; 0 = no end */
	uint64_t lease_until; /* source: of ready and parked, 0 = no end; destination: of the VFs */
	uint64_t copy_until;  /* source, managed: of libvirt's copy; 0 = no end */
	uint64_t arrived_ms;  /* destination: the guest came before the hand-over; 0 = not so */
	uint64_t renewed_ms;  /* source: the destination's lease, in this life of the agent */

	/* When the next effect, and the next hand-over beside the copy, may begin. */
	struct vhca_backoff backoff, hand_backoff;
	uint64_t not_before_ms, hand_not_before_ms;
	struct vhca_timer *timer, *hand_timer;
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
	const struct vhca_http_auth *auth; /* whose key signs tickets; NULL = there are none */
	struct vhca_mig_effects effects;
	/*
	 * A destination silent for so long, or a VF quarantined for so long on the way back, is
	 * given up; 0 = 15000.
	 */
	uint32_t abort_tries_ms;
	uint32_t retry_ms; /* the first back-off; 0 = 200 */
	uint32_t renew_ms; /* between two renewals of the lease there; 0 = 2000 */
	/* Between two looks: is the guest attached there, does libvirt copy it; 0 = 200 and 500. */
	uint32_t status_ms, job_ms;
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
/* The configuration may have other peers now. */
void vhca_migrations_set_conf(struct vhca_migrations *ms);

/* ---- source ---- */
struct vhca_mig_request {
	struct vhca_uuid domain;
	const char *peer; /* [peer NAME]; not looked at when parking */
	enum vhca_mig_mode mode;
	uint64_t lease_ms; /* how long the guest may wait without its VFs; 0 = as configured */
	const struct vhca_conf_copy *copy; /* managed; NULL = as configured */
	const struct vhca_uuid *id;	   /* that it gets; NULL = any */
};
#define VHCA_MIG_NO_LEASE UINT64_MAX

/* {timeout (s), expected_max (s), bandwidth, connections, auto_converge, tls}. Caller puts it. */
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
/* A vGUID, and since which epoch it is this host's. */
struct vhca_mig_handed {
	uint64_t guid, epoch;
	struct json_object *proof; /* sm/proof.h, checked; borrowed, NULL = none */
};
/* Each vGUID's; answers when programmed. */
void vhca_migrations_handover(struct vhca_migrations *ms, const struct vhca_uuid *id,
			      const struct vhca_mig_handed *handed, unsigned int n,
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
/* At the source: vhca_engine_check_lid() of one of its claims. */
int vhca_migration_check_lid(const struct vhca_mig *m, const struct vhca_claim *claim,
			     struct vhca_error *err);
/* At the destination: libvirt has begun to bring the guest, or may have. */
bool vhca_migration_begun(const struct vhca_mig *m);
/* The epoch of its claims is the destination's, on either side. */
bool vhca_migration_promised(const struct vhca_mig *m);
/* The destination has said that it has it, in this life of the agent. */
bool vhca_migration_delivered(const struct vhca_mig *m);
/* At the destination: every VF is in the guest. */
bool vhca_migration_attached(const struct vhca_mig *m);

#endif
