/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_VF_ENGINE_H
#define VHCA_AGENT_VF_ENGINE_H
/*
 * The engine: decides, on the state thread, what happens to every VF. Level-based: inputs update
 * the model and mark VFs dirty; one step function per state (sriov/vf_state.h) looks at the level
 * of things and journals at most one transition or starts at most one effect. Nothing is decided
 * from an event's content alone, so lost and stale events do no harm.
 *
 *   state        step
 *   unmanaged    PF managed, address in no live XML, group closed (probe)            → preparing
 *                adopted as it stands, in its domain's live XML                      → attached
 *   preparing    prepare                                       ok → free             failed → quarantined
 *   free         driver lost or drift → preparing; in a live XML without claim → unmanaged
 *   claimed      keys on the port, or the SM cannot be asked: program    ok → programmed   failed or refused → scrubbing
 *                reserved for a cloud's port: waits for its domain, then for the SM to know no other owner
 *   programmed   claim attaches and domain runs: attach; seen in the domain's live XML → attached; claim over → scrubbing
 *   attached     await granted, follow the P_Key table; release asked → detaching; gone from live XML → scrubbing
 *   detaching    detach, repeat, ask the guest's agent, until gone from live XML → scrubbing; out of time → attached
 *   scrubbing    scrub                                         ok → free, claim ends  failed → quarantined
 *                in the claim's own domain after all: → detaching
 *   quarantined  in a live XML: strip, look again, until it has left; then after a back-off → preparing
 *
 * Any with a claim, not shown by the kernel: agent/vf/absent.c. While the state disk refuses
 * what is written: agent/vf/engine.c. Claimed to scrubbing: in the live XML of another domain
 * than the claim's → quarantined, the claim is over.
 *
 * The files of agent/vf/ are in layers; each uses only what stands in its own or a lower one. What
 * a transition needs from above, it calls through struct engine_callbacks (agent/vf/transition.h).
 *
 *   bottom       work (what is to be done, and under way, and who waits for that)
 *   facts        report (to the SM), membership (in partitions), guest (what its XML means)
 *   transition   transition (what is journaled, and the port that VFs are on)
 *   claim        claim (which VF, which identity), lease (of it), detach (from a guest), isolation (of guests)
 *   inputs       inputs (from hardware and libvirt), grant (by the SM), absent (from its place)
 *   requests     request (of domains and people), plan (of what they would get), adopt, forget, hook
 *   decisions    step, outcome (of effects), migrate, takeover, sm (its answers)
 *   dispatch     engine (which is composed of all)
 */
#include "agent/state/effects.h"
#include "agent/state/events.h"
#include "agent/state/model.h"
#include "common/base/hook_message.h"
#include "common/store/store.h"
#include "conf/conf.h"
#include "sm/outbox.h"

struct vhca_engine;

struct vhca_engine_args {
	struct vhca_loop *loop;
	struct vhca_store *store;
	struct vhca_events *events;
	const struct vhca_conf *conf; /* borrowed; replaced by vhca_engine_set_conf() */
	struct vhca_effects effects;
	bool fenced; /* the SM refuses lower epochs: it is asked before an identity is programmed */
	bool no_vports;	    /* the SM is known to leave the ports of mlx5 VFs down */
	uint32_t adopt_ms;  /* an adoption may read its VFs so long; 0 = 10 s */
	uint32_t absent_ms; /* a VF may be away so long and come back; 0 = 10 s */
	/* The first back-off, of effects and of a domain's request; 0 = 500 and 2000. */
	uint32_t retry_ms, request_ms;
	uint32_t word_ms; /* who has set partitions on mlx5 waits so long for the SM; 0 = 2 s */
	char boot_id[VHCA_UUID_STRLEN];
};

/* Loads the journal (blocking). */
int vhca_engine_new(const struct vhca_engine_args *args, struct vhca_engine **ret,
		    struct vhca_error *err);
/* Waiters still there get VHCA_ERR_UNAVAILABLE "shutting_down". */
struct vhca_engine *vhca_engine_free(struct vhca_engine *e);
struct vhca_model *vhca_engine_model(struct vhca_engine *e);
/* The outbox is made after the engine, with vhca_engine_sm_answer() as its callback. */
void vhca_engine_set_outbox(struct vhca_engine *e, struct vhca_outbox *outbox);
void vhca_engine_set_conf(struct vhca_engine *e, const struct vhca_conf *conf);

/* ---- inputs ---- */
void vhca_engine_inventory(struct vhca_engine *e, const struct vhca_inventory *inv);
/* Why a managed PF does not have the VFs it should have; NULL = it has. */
void vhca_engine_hca_problem(struct vhca_engine *e, struct vhca_bdf pf,
			     const struct vhca_error *err);
/* The kernel says it of an adapter or a VF; of any other device it is nothing to us. */
void vhca_engine_pci_error(struct vhca_engine *e, struct vhca_bdf bdf, enum vhca_pci_error error);
void vhca_engine_port(struct vhca_engine *e, struct vhca_bdf pf, enum vhca_port_event event,
		      const struct vhca_port_state *state);
/* A full listing of active domains (takes the infos), or libvirt was lost. */
void vhca_engine_virt_sync(struct vhca_engine *e, struct vhca_dom_info *const *infos,
			   unsigned int n);
void vhca_engine_virt_lost(struct vhca_engine *e);
/* One domain's live XML; info NULL = not active. Copies. Of one that is unreadable, what was
 * read last stays. */
void vhca_engine_domain(struct vhca_engine *e, const struct vhca_uuid *uuid,
			const struct vhca_dom_info *info);
/* It is not defined here either. */
void vhca_engine_no_domain(struct vhca_engine *e, const struct vhca_uuid *uuid);
/*
 * What an event of libvirt says by itself, ahead of the live XML that is read after it. at_us: when
 * it was heard (vhca_now_us()).
 */
void vhca_engine_device_removed(struct vhca_engine *e, const struct vhca_uuid *uuid,
				const char *alias, uint64_t at_us);
/* It was resumed, or paused: where it comes in by migration, it may be here now, or surely is. */
void vhca_engine_guest_state(struct vhca_engine *e, const struct vhca_uuid *uuid, bool is_here,
			     uint64_t at_us);
void vhca_engine_effect_done(struct vhca_engine *e, struct vhca_vf *vf, enum vhca_effect effect,
			     const struct vhca_effect_result *result);
/* A new SM rebuilds its table: everything that is bound here is reported again. */
void vhca_engine_snapshot(void *engine);
void vhca_engine_sm_answer(void *engine, const struct vhca_sm_binding *binding,
			   enum vhca_sm_answer answer, const char *reason, struct json_object *doc);
/* named_other of the outbox. */
void vhca_engine_sm_named_other(void *engine, const struct vhca_sm_binding *binding);
/* lid_stays of the outbox. */
void vhca_engine_sm_keeps_lid(void *engine, const struct vhca_sm_binding *binding,
			      const char *reason);
/* would_answer of the outbox. */
void vhca_engine_sm_would_answer(void *engine, const struct vhca_sm_binding *binding,
				 enum vhca_sm_answer answer, const char *reason,
				 struct json_object *doc);

/* ---- requests; fn is called exactly once, never from inside the call ---- */
struct vhca_claim_request {
	struct vhca_uuid domain;
	char domain_name[128];
	struct vhca_vf_request vf; /* name, partition, guid, fabric, pf, numa */
	bool has_bdf;
	struct vhca_bdf bdf; /* exactly this VF */
	bool no_partition;   /* none yet: bdf is a reserved VF of vf.fabric, its map stays none */
	bool as_it_is;	     /* an unmanaged one, in use (vhca_engine_adopt) */
	bool unfailed;	     /* one that has failed nobody: in place of one that has (claim.c) */
	bool lenient;	     /* vf.pf and vf.numa are another host's: met where that is possible */
	enum vhca_origin origin;    /* ATTACH or CLAIM */
	const struct vhca_uuid *id; /* that the claim gets; NULL = any */
	uint32_t lease_s; /* of a claim that waits for its domain; 0 = it waits for ever */
};
/* CLAIM ends at programmed, ATTACH at attached. */
void vhca_engine_claim(struct vhca_engine *e, const struct vhca_claim_request *req,
		       vhca_waiter_fn fn, void *arg);
/* Such a claim that is there already: ends as the request that made it would. */
void vhca_engine_await(struct vhca_engine *e, struct vhca_claim *claim, vhca_waiter_fn fn,
		       void *arg);
/* The lease of a claim of way CLAIM is so long from now on, and begins anew. Answered when that is
 * durable. Refused "no_lease", "released". */
void vhca_engine_renew(struct vhca_engine *e, struct vhca_claim *claim, uint32_t lease_s,
		       vhca_waiter_fn fn, void *arg);
/*
 * The claim of a cloud's port, which vf.guid and vf.name (vhca_port_name()) say: made, or found as
 * it is wanted, when nothing is written; fn's claim is NULL then. It ends at programmed if the
 * domain runs here, else at claimed: reserved. Refused "vf_busy" while it is ending.
 */
void vhca_engine_claim_port(struct vhca_engine *e, const struct vhca_claim_request *req,
			    vhca_waiter_fn fn, void *arg);
/*
 * The whole list of a claim's partitions, in guest order, as of metadata; "" = none. Answered when
 * the VF shows it, on mlx5 by the SM's word ("sm_refused", "sm_silent": it is the claim's all the
 * same); the same list again writes nothing, and fn's claim is NULL then. Refused
 * "attached", "vf_busy", and as a claim with these partitions would be; nothing has changed then.
 */
void vhca_engine_set_partitions(struct vhca_engine *e, struct vhca_claim *claim,
				const char *partitions, vhca_waiter_fn fn, void *arg);
/*
 * Detaches if attached, scrubs, ends the claim. forbid_attached: refuse while attached (DELETE
 * /v1/claims).
 */
void vhca_engine_release(struct vhca_engine *e, struct vhca_claim *claim, bool forbid_attached,
			 vhca_waiter_fn fn, void *arg);
/* libvirt has shown all domains, and none of them has the VF (any more). */
bool vhca_engine_has_left(struct vhca_engine *e, const struct vhca_vf *vf);
/*
 * Ends a port's claim. A VF that its guest has, as far as is known, stays there, and the claim ends
 * when it has left: fn's claim is that then, once it is durable. Claimed again before, it stays.
 */
void vhca_engine_release_port(struct vhca_engine *e, struct vhca_claim *claim, vhca_waiter_fn fn,
			      void *arg);
/*
 * The VFs that a running domain holds without a claim are claimed as they stand, and nothing is
 * written: all of them, or none. Refused "differs", and how, if one does not show what the domain's
 * metadata asks for. fn's claim is NULL.
 */
void vhca_engine_adopt(struct vhca_engine *e, const struct vhca_uuid *domain, vhca_waiter_fn fn,
		       void *arg);

/*
 * Which VF each request of wanted (its uuid, name and requests count) has, or would get if it were
 * claimed now, behind those before it: ret, in their order, borrowed. A claim that stands fits as
 * it is; one that is to end stays on its VF. Of a domain that runs here, root ports and memory are
 * looked at, as for ATTACH. Refused as the first claim that does not fit would be, with its name in
 * front of the message, and "no_libvirt". Either way nothing has changed, or begun.
 */
int vhca_engine_plan(struct vhca_engine *e, const struct vhca_dom_info *wanted,
		     const struct vhca_vf *ret[static VHCA_DOM_VFS_MAX], struct vhca_error *err);

/*
 * An adapter that was pulled out, and its VFs, are forgotten once that is on disk: journal and
 * model, hca with them. Refused "hca_present", "hca_claimed", "vf_in_use", "vf_busy". fn's claim is
 * NULL.
 */
void vhca_engine_forget(struct vhca_engine *e, struct vhca_hca *hca, vhca_waiter_fn fn, void *arg);

/*
 * For VHCA_TAKEOVER_MS from now, what the domain asks for is taken from a host that still holds it
 * at the SM; evidence (why that host is known to be dead) goes into the event. Not durable: a claim
 * that has taken over is. Refused "not_fenced" without an SM that evicts.
 */
#define VHCA_TAKEOVER_MS  600000
#define VHCA_EVIDENCE_MAX 160
int vhca_engine_takeover(struct vhca_engine *e, const struct vhca_uuid *domain,
			 const char *evidence, struct vhca_error *err);
/* That was said of the domain, not before since_ms, and counts yet. */
bool vhca_engine_vouched_since(const struct vhca_engine *e, const struct vhca_uuid *domain,
			       uint64_t since_ms);

/* ---- for migrations (agent/migration/migration.h); claims are those of the model ---- */

/* A claim that is born away: a free VF is kept for this identity, which is not programmed. */
struct vhca_reservation {
	struct vhca_claim_request req; /* vf.partition and vf.guid are not looked at */
	struct vhca_identity identity;
	uint64_t epoch; /* of the owner now */
	struct vhca_uuid migration;
	bool has_guest;
	struct vhca_bdf guest;
	uint64_t from_port_guid; /* where it is now; 0 = unknown */
	uint16_t from_gid_index, from_lid;
	bool lid_follows; /* its host lets from_lid, which is its own, go with it */
	char lid_stays[VHCA_LID_REASON_MAX]; /* why not, if it says so; else "" */
};
int vhca_engine_reserve(struct vhca_engine *e, const struct vhca_reservation *res,
			struct vhca_claim **ret, struct vhca_error *err);
/*
 * May the LID of the claim's host go with it (lid_policy follow)? Refused "lid_stays": it stays,
 * which keeps nothing else back.
 */
int vhca_engine_check_lid(const struct vhca_engine *e, const struct vhca_claim *claim,
			  struct vhca_error *err);
/* The VF leaves its guest and is scrubbed; the claim stays, away. */
void vhca_engine_leave(struct vhca_engine *e, struct vhca_claim *claim,
		       const struct vhca_uuid *migration);
/*
 * How this host has the claim's vGUID (sm/proof.h, checked; NULL = nobody asks): durable with what
 * is reported of it next. proof is borrowed.
 */
void vhca_engine_prove(struct vhca_claim *claim, struct json_object *proof);
/* The same of what was reported without, unless the SM has said yes or that is known already. */
void vhca_engine_prove_late(struct vhca_engine *e, struct vhca_claim *claim,
			    struct json_object *proof);
/* What is known of that, while no SM has said yes to it here; borrowed, NULL = none. */
struct json_object *vhca_engine_proof(const struct vhca_engine *e, const struct vhca_claim *claim);
/* The identity is ours (again), at this epoch: program, then attach where the domain runs. */
void vhca_engine_return(struct vhca_engine *e, struct vhca_claim *claim, uint64_t epoch);
/*
 * The same at its source, after a migration that failed: if the SM knows a later epoch of a place
 * that gave it up, the next one is ours.
 */
void vhca_engine_restore(struct vhca_engine *e, struct vhca_claim *claim, uint64_t epoch);
/* Makes the epoch durable without using it: what is below is over. */
void vhca_engine_set_epoch(struct vhca_engine *e, struct vhca_claim *claim, uint64_t epoch);
/*
 * The identity has its next owner, and the SM may not have heard of him: when the claim ends,
 * nothing is said of it. Durable with the end of the claim.
 */
void vhca_engine_pass_on(struct vhca_claim *claim);
/*
 * The claim's next epoch, for somebody else. Durable with the migration's next state, into whose
 * transaction the caller puts it.
 */
void vhca_engine_spend_epoch(struct vhca_engine *e, struct vhca_claim *claim);
/* That transaction was refused: the claim stands where it has withdrawn. */
void vhca_engine_unspend_epoch(struct vhca_engine *e, struct vhca_claim *claim);
/*
 * The claim goes on as one that has taken over, if there are generations left. Durable with the
 * migration's next state, into whose transaction the caller puts it.
 */
void vhca_engine_begin_generation(struct vhca_engine *e, struct vhca_claim *claim);
/*
 * The claims of a migration that are withheld, as they are now, but for those of which something is
 * on its way to the disk: that may be a claim's end.
 */
void vhca_engine_put_withheld(struct vhca_engine *e, struct vhca_txn *txn,
			      const struct vhca_uuid *migration);
/*
 * The other side of the migration has withdrawn: epochs that its claims here have left when they
 * ended with their boot are over for both.
 */
void vhca_engine_leave_stranded(struct vhca_engine *e, const struct vhca_uuid *migration);
/*
 * Asks the SM for an identity that is still away, or whose guest nobody has seen come, at the
 * claim's epoch; claim->told is what it said last, until it says more.
 */
void vhca_engine_contest(struct vhca_engine *e, struct vhca_claim *claim);
/*
 * The VF of a claim that is away goes into its guest without the identity, which is programmed in
 * place when it returns (not where a guest's driver would not see that). Not durable.
 */
void vhca_engine_go_bare(struct vhca_engine *e, struct vhca_claim *claim);
/* The SM refuses lower epochs: what it has accepted is nobody else's. */
bool vhca_engine_fenced(const struct vhca_engine *e);
/* The migration is over and the claim an ordinary one. */
void vhca_engine_settle(struct vhca_engine *e, struct vhca_claim *claim);
/* Ends the claim: detach if attached, scrub, free. */
void vhca_engine_drop(struct vhca_engine *e, struct vhca_claim *claim);
/*
 * Declares to the SM the keys that ports need for guests that are to come, where that set has
 * changed.
 */
void vhca_engine_declare_members(struct vhca_engine *e);
/* Asks the SM about the move, before it comes (no effect, not durable): would_answer hears. */
void vhca_engine_announce(struct vhca_engine *e, const struct vhca_claim *claim);
/* The report that the claim's identity is bound here. */
struct vhca_sm_binding vhca_claim_binding(const struct vhca_claim *claim);
/*
 * The domain's memory allows no VF to be plugged in (anew): says so in err, -ENOMEM, and has the
 * domain looked at again; else 0.
 */
int vhca_engine_check_memory(struct vhca_engine *e, const struct vhca_domain *dom,
			     struct vhca_error *err);
/* The claim is the migration's, or is not any more; written with its VF's next move or save. */
void vhca_claim_join(struct vhca_claim *claim, const struct vhca_uuid *migration);
void vhca_claim_unjoin(struct vhca_claim *claim);
/* Loaded with a migration whose source may have asked the SM for the identity: if it is withheld,
 * it was asked for. One of an earlier boot has no guest from whom it could be withheld. */
void vhca_claim_recover(struct vhca_claim *claim);
/*
 * Taken as promised, from a silent source with this certificate ("cert:..."), now or in an earlier
 * life of the agent.
 */
void vhca_engine_await_tickets(struct vhca_claim *claim, const char *signer);
/*
 * Loaded: whether its source takes the identity back when that is proven withdrawn here. What is
 * kept for a guest is not sent from the outbox any more.
 */
void vhca_engine_mark_loaned(struct vhca_engine *e, struct vhca_claim *claim, bool is_on_loan);
/* True if nothing of the claim is under way and its VF is in this state. */
bool vhca_claim_rests_in(const struct vhca_claim *claim, enum vhca_vf_state state);
/* True if every key of the claim is in its port's table. */
bool vhca_claim_keys_on_port(const struct vhca_claim *claim);
/*
 * fn(arg) after each round of steps: something may have changed. The listener is its owner's, who
 * takes it back before he goes, and not from inside fn. Several are called in the order in which
 * they came.
 */
struct vhca_engine_listener {
	TAILQ_ENTRY(vhca_engine_listener) link;
	void (*fn)(void *arg);
	void *arg;
};
void vhca_engine_listen(struct vhca_engine *e, struct vhca_engine_listener *listener);
void vhca_engine_unlisten(struct vhca_engine *e, struct vhca_engine_listener *listener);
/*
 * Something else has changed that listeners may care for: a round soon, even if there is nothing to
 * step.
 */
void vhca_engine_stir(struct vhca_engine *e);

/*
 * A drained host claims no VF any more, for nobody, and starts no domain with one; what has been
 * claimed stays (agent/migration/drain.h).
 */
void vhca_engine_set_drained(struct vhca_engine *e, bool drained);

/* The state disk refuses what is written: says so in err, -errno; else 0. What would have to be
 * written first is refused meanwhile. */
int vhca_engine_check_disk(const struct vhca_engine *e, struct vhca_error *err);

/*
 * Answer for the qemu hook, from memory. Returns 0 = pass, or a negative errno with err = refuse;
 * -EINPROGRESS: a reserved VF is being programmed for the domain, which is worth asking again soon.
 */
int vhca_engine_hook(struct vhca_engine *e, const struct vhca_hook_request *req,
		     struct vhca_error *err);

/* No running domain is known that is named so: says it in err, and whether that is certain. */
int vhca_engine_no_such_domain(const struct vhca_engine *e, const char *name,
			       struct vhca_error *err);
/* The domain's XML cannot be read: says so in err; else 0. */
int vhca_engine_check_readable(const struct vhca_domain *dom, struct vhca_error *err);
/* Its guest is paused, and would not let go of a VF: says so in err; else 0. */
int vhca_engine_check_runs(const struct vhca_domain *dom, struct vhca_error *err);
/* There is an unreadable domain: it is worth while to look again. */
bool vhca_engine_has_unreadable(const struct vhca_engine *e);

/* ---- for the API ---- */
bool vhca_engine_virt_synced(const struct vhca_engine *e);
/* Its adapter is managed, and the configuration does not leave it out. */
bool vhca_engine_manages(const struct vhca_engine *e, const struct vhca_vf *vf);
/* A request of its fabric may get it now that names no VF, no adapter and no NUMA node. */
bool vhca_engine_offers(const struct vhca_engine *e, const struct vhca_vf *vf);
/* The configuration keeps it for claims that name their VF. */
bool vhca_engine_reserves(const struct vhca_engine *e, const struct vhca_vf *vf);
/* A domain gets it only if the engine says so: it is managed, or about to be. */
bool vhca_engine_guards(struct vhca_engine *e, const struct vhca_vf *vf);
/*
 * Whether the host has begun: 0 when all managed VFs are bound or found impossible; else what is
 * still to come, or state_disk, in err (may be NULL), and a negative errno.
 */
int vhca_engine_check_ready(const struct vhca_engine *e, struct vhca_error *err);
/*
 * The same of adapters whose driver is still starting, as far as can be told: that may stay so for
 * ever (no mlx5_ib).
 */
int vhca_engine_check_ports(const struct vhca_engine *e, struct vhca_error *err);

#endif
