/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VF_WORK_H
#define VHCA_AGENT_VF_WORK_H
/* The engine's state, its times, and the bottom of its layers: work.c. */
#include "agent/state/journal.h"
#include "agent/vf/engine.h"

struct vhca_engine {
	struct vhca_engine_args args;
	const struct engine_callbacks *callbacks; /* agent/vf/transition.h */
	const struct vhca_conf *conf;
	struct vhca_model model;
	struct vhca_outbox *outbox;
	bool virt_synced; /* the domains of the model are all live domains */
	bool inventory_seen;
	struct vhca_numa_node *nodes; /* of the host */
	unsigned int n_nodes;
	bool excludes_checked;	/* of this configuration */
	bool drained;		/* no new claims */
	struct vhca_error disk; /* why nothing can be written; kind NONE = it can */
	bool owes_reports;	/* what would have been reported meanwhile */
	STAILQ_HEAD(, vhca_vf) dirty;
	TAILQ_HEAD(, vhca_engine_listener) listeners;
	struct vhca_timer *run;		     /* armed with 0 when there is dirty work */
	struct vhca_timer *requests;	     /* next look at requests that could not be met */
	TAILQ_HEAD(, engine_commit) commits; /* transactions under way */
	TAILQ_HEAD(, engine_adopt) adopts;   /* requests under way (adopt.c) */
	TAILQ_HEAD(, engine_takeover) takeovers;
	TAILQ_HEAD(, engine_forget) forgets; /* under way (forget.c) */
	unsigned int n_takeovers;
};

/* Times, with their reasons. */
#define PROBE_AGAIN_MS 10000 /* a VF in use by somebody we cannot watch: look again */
#define RETRY_FIRST_MS 500   /* failed effects: back-off doubles up to the cap */
#define RETRY_CAP_MS   30000
#define GRANT_FIRST_MS 200 /* a grant usually comes within a second of the guest driver's start */
#define KICK_AFTER_MS \
	10000 /* ungranted for so long: ask again (mlx4 backs off up to 60 s by itself) */
#define HELD_BACK_MS   1000   /* the SM is asked again whether another host has a port's GUID */
#define OWNER_AGAIN_MS 30000  /* ...and whether it has been shown a ticket by now */
#define BEGIN_MS       600000 /* a VF is programmed for a domain that has not begun */
/* Who sets partitions that only the SM has waits so long for its word: vhca-eswitch has 2.5 s. */
#define WORD_MS		 2000
#define REQUEST_FIRST_MS 2000 /* a domain's request that failed: try again */
#define REQUEST_CAP_MS	 300000
#define OWNED_CAP_MS	 60000 /* ...because another host has the GUID, which may give it up */
#define RESET_LOOK_MS	 1500  /* mlx4 resets all maps some time after iov/ appears: look again */
#define FREE_LOOK_MS	 60000 /* nobody should touch a free VF: a slow look suffices */
#define GROUP_CLOSE_MS \
	10000 /* QEMU may hold the vfio group this long after libvirt says the device is gone */
/* a VF may be away so long, while its adapter is reset or loaded anew */
#define ABSENT_MS     10000
#define GROUP_LOOK_MS 200 /* ...and is asked for this often until then */
/* A guest's driver reads its P_Keys when it hears of a change: a key that leaves its index and
 * comes to another one sooner would be missed. */
#define UNMAPPED_MS 200

/* ---- work.c ---- */
void engine_mark(struct vhca_engine *e, struct vhca_vf *vf);
void engine_mark_all(struct vhca_engine *e);
/* Steps the VF again after ms at the latest. */
void engine_again(struct vhca_engine *e, struct vhca_vf *vf, uint64_t ms);
void engine_start(struct vhca_engine *e, struct vhca_vf *vf, enum vhca_effect effect);
/* Behind the transaction that is under way this is to be done, too. */
void engine_owe(struct vhca_vf *vf, enum vhca_vf_owed owed);
/* The claim is to end; what forces its VF off stays. */
void engine_ask_end(struct vhca_claim *c);
/* What the last probe found is not relied on any more. */
void engine_forget_probe(struct vhca_vf *vf);
/* Sets, or clears, the sentence that explains the VF's state to people. */
void engine_reason(struct vhca_vf *vf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void engine_no_reason(struct vhca_vf *vf);
/* Delays the next effect on the VF's hardware, or the next one at libvirt, by its back-off. */
void engine_back_off(struct vhca_engine *e, struct vhca_vf *vf);
void engine_virt_back_off(struct vhca_engine *e, struct vhca_vf *vf);
/* Gives the reason, and tells everybody. */
void engine_alarm(struct vhca_engine *e, struct vhca_vf *vf, const char *why);
/* "vm1/ib0", for messages. */
const char *engine_claim_label(const struct vhca_claim *claim, char buf[static 192]);
/* A VF that the model does not know yet; NULL when out of memory. */
struct vhca_vf *engine_add_vf(struct vhca_engine *e, struct vhca_bdf pf, struct vhca_bdf bdf,
			      uint16_t index);

/* A transaction under way. vf is NULL for a report alone. */
struct engine_commit {
	TAILQ_ENTRY(engine_commit) link;
	struct vhca_engine *e;
	struct vhca_vf *vf;
	/* the claim that is dropped when this is durable; without a move: one of an earlier
	 * boot, or of a VF that has gone */
	struct vhca_claim *ended;
	uint64_t ticket; /* of the outbox, 0 = none */
	bool move;
	struct vhca_identity *before; /* the claim's, if this fails; NULL = unchanged */
	/* of a move; an effect that ends during a save moves at once, so two can be open */
	enum vhca_vf_state to;
};
/* NULL when out of memory: the VF is stepped again later. */
struct engine_commit *engine_new_commit(struct vhca_engine *e, struct vhca_vf *vf, bool move);
void engine_free_commit(struct engine_commit *c);
/* A new identity of the VF's claim is on its way to the disk; with or_moves, or another state. */
bool engine_is_changing(const struct vhca_engine *e, const struct vhca_vf *vf, bool or_moves);
/* At the end: the store has said all that it will say. */
void engine_drop_commits(struct vhca_engine *e);
/* No row of the VF's claim is written yet: the VF is adopted, or was free until now. */
bool engine_is_unborn(const struct vhca_vf *vf);

/* ---- who waits ---- */
#define ENGINE_DURABLE VHCA_VF_STATE_COUNT /* waits for what the claim is now, in any state */
/* waits for the SM's word on the claim's partitions, where only the SM has them (membership.c) */
#define ENGINE_MEMBERS (VHCA_VF_STATE_COUNT + 1)
/*
 * Tells the waiters of a claim what happened: those who wait for `state`, or all when err is set.
 */
void engine_tell(struct vhca_engine *e, struct vhca_claim *claim, enum vhca_vf_state state,
		 const struct vhca_error *err);
/* Those who wait for `until` hear that it does not come; the claim goes on. */
void engine_refuse(struct vhca_claim *claim, enum vhca_vf_state until,
		   const struct vhca_error *err);
int engine_add_waiter(struct vhca_claim *claim, enum vhca_vf_state until, vhca_waiter_fn fn,
		      void *arg);
/* Answers from the loop what is known at once; an err of kind NONE is success. */
void engine_answer_later(struct vhca_engine *e, vhca_waiter_fn fn, void *arg,
			 const struct vhca_error *err);

#endif
