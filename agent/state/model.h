/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_MODEL_H
#define VHCA_AGENT_STATE_MODEL_H
/*
 * The agent's state in memory: HCAs and their VFs, claims, live domains. Owned by the state thread;
 * the store holds what must survive (agent/state/journal.h). Objects are found by their natural
 * keys and live as long as the model, except claims (deleted when their VF is free again), domains
 * (deleted when libvirt no longer lists them), and adapters that are forgotten by request.
 */
#include <limits.h>
#include <sys/queue.h>

#include "agent/state/counters.h"
#include "agent/state/domain_info.h"
#include "common/base/caller.h"
#include "common/loop/loop.h"
#include "pkey/identity.h"
#include "pkey/ports.h"
#include "sm/sm.h"
#include "sriov/inventory.h"
#include "sriov/pci_error.h"
#include "sriov/vf_state.h"

#define VHCA_CLAIM_LEASE_MAX 86400 /* seconds */
#define VHCA_REASON_MAX	     520   /* a message and its hint */

/* How a claim came to be; see docs/design/0001-foundation.md. */
enum vhca_origin {
	VHCA_ORIGIN_METADATA, /* a live domain's metadata asks */
	VHCA_ORIGIN_ATTACH,   /* POST /v1/domains/{uuid}/vfs/{name} */
	/* POST /v1/claims: the orchestrator puts the <hostdev> into the XML itself */
	VHCA_ORIGIN_CLAIM,
};
const char *vhca_origin_to_string(enum vhca_origin origin);
int vhca_origin_parse(const char *word, enum vhca_origin *ret);

/*
 * Who has a claim's VF and may show its identity, while a migration moves it. agent/vf writes it:
 *
 *   from              to         when
 *   (a new claim)     WITHHELD   a migration reserves a VF here: vhca_engine_reserve()
 *   HERE, RESTORED    LEAVING    a migration takes the VF from its guest: vhca_engine_leave()
 *   all but BARE      WITHHELD   a migration has its claim, and the VF is proven clean
 *   LEAVING           HERE       the guest did not let go, or the migration has ended
 *   WITHHELD          BARE       nobody says whose the identity is: vhca_engine_go_bare()
 *   WITHHELD, BARE    HERE       it is this host's: vhca_engine_return()
 *   WITHHELD, BARE    RESTORED   it is this host's again: vhca_engine_restore()
 *   RESTORED          HERE       the migration has ended: vhca_engine_settle()
 *   any               HERE       it is of an earlier boot: vhca_claim_recover()
 *
 * No migration moves a cloud's port:
 *
 *   (a new claim)     RESERVED   its domain does not run here: vhca_engine_claim_port()
 *   RESERVED          HERE       it runs here now, or the hook says that it begins
 *   HERE              LEAVING    the SM has given its identity to another host: its guest is asked
 *   LEAVING           HERE       the guest did not let go, or an operator vouches that it is ours
 *   HERE, LEAVING     RESERVED   the VF has left its guest, or that has ended, and it is proven clean
 *
 * A claim ends from each of them.
 */
enum vhca_custody {
	VHCA_CUSTODY_HERE, /* the VF shows the identity, or is to show it, and is its guest's */
	/*
	 * The same, given back by a migration that failed and is not over: its epoch is this host's
	 * to raise. Not durable: after a restart it is HERE.
	 */
	VHCA_CUSTODY_RESTORED,
	/* as HERE; the VF leaves its guest and is scrubbed, the claim stays */
	VHCA_CUSTODY_LEAVING,
	/* nothing shows the identity: it may be somebody else's now; the VF waits, scrubbed */
	VHCA_CUSTODY_WITHHELD,
	/*
	 * The same, but the VF goes into the guest without the identity. Not durable: after a
	 * restart it is WITHHELD, wherever the VF is, until the migration says so again.
	 */
	VHCA_CUSTODY_BARE,
	/* as WITHHELD, without a migration: a cloud's port whose domain does not run here */
	VHCA_CUSTODY_RESERVED,
};
const char *vhca_custody_to_string(enum vhca_custody custody);
int vhca_custody_parse(const char *word, enum vhca_custody *ret);

/* Whether a claim is to end: detach, scrub, end. If its guest keeps the VF, ASKED is NONE again. */
enum vhca_claim_end {
	VHCA_END_NONE,
	VHCA_END_ASKED,
	/*
	 * because its QPs may hold a foreign key: a guest that does not let go is asked for ever. A
	 * cloud's port is reserved again behind that, unless it is released
	 */
	VHCA_END_FORCED,
	/* a cloud's port that was released under its guest, which is not asked for it */
	VHCA_END_WHEN_LEFT,
};

/* Whether another VF takes the place of a claim's when that fails. After a restart: MAY. */
enum vhca_replacement {
	VHCA_REPLACEMENT_MAY,
	/* it was asked for by its address, or has taken the place of one that failed */
	VHCA_REPLACEMENT_NEVER,
	VHCA_REPLACEMENT_DUE, /* its VF has failed: why is the claim's failure */
};

/* Which boot of the host a claim was made in. */
enum vhca_claim_boot {
	VHCA_BOOT_THIS,
	VHCA_BOOT_EARLIER,  /* its guest is gone, and it ends */
	VHCA_BOOT_OUTLIVED, /* an earlier one; its guest is still to come, and it stays */
};

/* What is known of the SM's opinion about a claim's binding. */
enum vhca_claim_answer {
	VHCA_ANSWER_NONE,
	VHCA_ANSWER_ACCEPTED,
	VHCA_ANSWER_UNREACHABLE,
	VHCA_ANSWER_REFUSED,
	VHCA_ANSWER_SUPERSEDED, /* the SM knows a later owner elsewhere */
};

/* What has been seen of the domain since a cloud's port was reserved for it. */
enum vhca_port_run {
	VHCA_RUN_UNSEEN,
	VHCA_RUN_BEGINS, /* the hook has heard that it is prepared, and not yet that it starts */
	VHCA_RUN_SEEN,	 /* it runs here, or did */
	VHCA_RUN_LEFT,	 /* it goes on without the VF, which waits to be claimed again */
};

struct vhca_claim;
struct vhca_vf;

/*
 * Somebody who waits for the end of a claim's transaction. Called once: err == NULL on success;
 * claim is NULL when it has ended (release), else borrowed during the call.
 */
typedef void (*vhca_waiter_fn)(void *arg, const struct vhca_claim *claim,
			       const struct vhca_error *err);
struct vhca_waiter {
	STAILQ_ENTRY(vhca_waiter) link;
	enum vhca_vf_state until; /* PROGRAMMED, ATTACHED or FREE */
	vhca_waiter_fn fn;
	void *arg;
};

#define VHCA_LID_REASON_MAX 256 /* as an error says it */

/* Where only the SM has a claim's partitions: what it has said last of this list. */
enum vhca_word {
	VHCA_WORD_YES, /* or the claim began with it */
	VHCA_WORD_AWAITED,
	VHCA_WORD_NO,
};

struct vhca_claim {
	TAILQ_ENTRY(vhca_claim) link;
	struct vhca_uuid id;
	struct vhca_uuid stands_for; /* of the claim that this life knew first; not durable */
	uint64_t number;	     /* in the order of their making, or loading; not durable */
	struct vhca_uuid domain;
	char domain_name[128];
	char name[VHCA_NAME_MAX];
	char fabric[VHCA_NAME_MAX];
	bool has_pf; /* the adapter that was asked for */
	struct vhca_bdf pf;
	int numa; /* ...and the NUMA node; -1 = any */
	enum vhca_origin origin;
	struct vhca_identity identity;
	uint64_t epoch;	     /* of identity.guid */
	uint64_t port_guid;  /* where the SM was told last that it is bound; 0 = never told */
	uint64_t created_ms; /* wall clock */
	struct vhca_vf *vf;
	uint8_t port;	/* of the HCA, that carries its identity */
	bool has_guest; /* guest-side PCI address, once seen in live XML */
	struct vhca_bdf guest;
	enum vhca_claim_end end;
	/* A cloud's port ends when its VF has left, whatever else is asked and given up. */
	bool released;
	/*
	 * A migration keeps its claims in all states. Whoever asks for the release of one ends it
	 * all the same.
	 */
	bool migrating;
	struct vhca_uuid migration;
	enum vhca_custody custody;
	/* The guest was asked for the VF and has kept it: if it lets go later, it gets it back. */
	bool asked;
	/*
	 * The identity was withdrawn at this epoch. The SM may hear of that after whatever else is
	 * said at the same epoch, so the next report needs a higher one.
	 */
	bool withdrawn;
	/*
	 * The epoch at which the identity was withdrawn so that it stayed this host's at the SM,
	 * with its dynamic LID if it has one; 0 = it was not. Whoever ends the claim while the
	 * identity is withheld has to give that up.
	 */
	uint64_t kept_epoch;
	/*
	 * The SM is asked at this epoch whose the identity is: while that is withheld, or because
	 * nobody knows how the guest came. After a restart: it may have been asked.
	 */
	bool arbitration_asked;
	bool reused; /* its epoch is one that an earlier claim of the vGUID had here; not durable */
	bool stripped; /* its identity was withdrawn under a guest that is to let go; not durable */
	/*
	 * Destination: where it came from, for the report of the move (forgotten by a restart: then
	 * a plain binding says the same); 0 = from nowhere.
	 */
	uint64_t from_port_guid;
	uint16_t from_gid_index, from_lid;
	/*
	 * Destination: this LID, the one of the port that it came from, is to come here when its
	 * guest has it; 0 = none, or the SM has answered.
	 */
	uint64_t follow_port;
	uint16_t follow_lid;
	/* Why that LID stays at its last host's port; "" = it does not. Not durable. */
	char lid_reason[VHCA_LID_REASON_MAX];
	/* The LID that stays there; 0 = none, or that host has not said which. Not durable. */
	uint16_t stayed_lid;
	/*
	 * Destination: the source has lent the identity, and takes it back when it is proven
	 * withdrawn here. After a restart the migration sets this again. Whoever asks for the
	 * release of the claim vouches for the withdrawal.
	 */
	bool on_loan;
	/*
	 * Destination: its epoch was taken as promised, from a silent source with this
	 * certificate, which has the tickets (after a restart, the migration says so again, which
	 * the claim keeps for that). An SM that asks for just these is asked again. "" = it was
	 * not.
	 */
	char awaited_signer[VHCA_CALLER_NAME_MAX];
	uint64_t memory_kib; /* of its domain, as seen last; 0 = never seen. Not durable */
	/* the grant is lost, and the SM was asked whether the vGUID is still this host's */
	bool ownership_unconfirmed;
	/*
	 * The VF was being unplugged only because the SM had refused the claim, and somebody has
	 * vouched for the claim since. Not durable.
	 */
	bool stays;
	enum vhca_port_run run; /* of a cloud's port; not durable */
	/* The SM named another owner when it was asked before: its silence is no consent. */
	bool disputed;
	/* an earlier life of the agent may have waited for the SM's word on it: the same. Not
	 * durable */
	bool asked_before;
	enum vhca_claim_boot boot;
	enum vhca_replacement replacement;
	/* How long the claim stands without its domain (agent/vf/lease.c); 0 = for ever. */
	uint32_t lease_s;
	/* When that is over (vhca_now_ms(), wall clock); 0 = it does not count now. Not durable. */
	uint64_t lease_until_ms, lease_ends_ms;
	/*
	 * vhca_now_us(), 0 = not seen: its guest let go of it (last), libvirt was told to attach it
	 * (first), the SM granted it (last)
	 */
	uint64_t removed_us, attach_us, granted_us;
	/* why the guest still has the VF after the last detach; kind NONE = it has not */
	struct vhca_error kept;
	/* how the claim differs from what its domain asks for by now; kind NONE = it does not. Not
	 * durable */
	struct vhca_error differs;

	/*
	 * By which tickets this host has the vGUID (sm/proof.h), until the SM has said yes; NULL =
	 * none. After a restart the outbox has it.
	 */
	struct json_object *proof;
	enum vhca_claim_answer sm_answer;
	uint64_t sm_answer_ms; /* when that was learnt (vhca_now_ms) */
	/* VHCA_CODE_NOT_THE_OWNER or VHCA_CODE_TICKET_NOT_VALID; NULL = neither was the answer */
	const char *sm_code;
	char sm_answer_reason[160];
	/* of the SM on its partitions; a no is durable, and what is not answered the outbox has */
	enum vhca_word word;
	/* somebody waits for its word until then; 0 = nobody. Not durable */
	uint64_t word_until_ms;
	struct vhca_error failure; /* why the claim ends, for its waiters and its domain */
	STAILQ_HEAD(, vhca_waiter) waiters;
};

/* It is to end, for whatever reason, and its guest to let go. */
bool vhca_claim_is_ending(const struct vhca_claim *claim);
/* The name of a cloud's port with this GUID, which is made of a MAC address. */
void vhca_port_name(uint64_t guid, char ret[static VHCA_NAME_MAX]);
/* It is a cloud's port. */
bool vhca_claim_is_port(const struct vhca_claim *claim);
/* What a cloud's port waits for, whose VF is claimed. */
enum vhca_claim_await {
	VHCA_AWAITS_NOTHING,
	VHCA_AWAITS_DOMAIN, /* reserved: that it begins here */
	VHCA_AWAITS_SM,	    /* held back: that the SM knows no other owner */
};
enum vhca_claim_await vhca_claim_awaits(const struct vhca_claim *claim);
const char *vhca_claim_await_to_string(enum vhca_claim_await awaits); /* NULL: nothing */
/* Nothing shows its identity: WITHHELD, BARE or RESERVED. */
bool vhca_claim_is_withheld(const struct vhca_claim *claim);
/* The SM has said no, for whatever reason. */
bool vhca_claim_is_refused(const struct vhca_claim *claim);
#define VHCA_REFUSAL_HINT_MAX 192 /* none is cut: an err.hint has room for it, too */
/* What an operator does about that refusal. */
void vhca_claim_refusal_hint(const struct vhca_claim *claim,
			     char ret[static VHCA_REFUSAL_HINT_MAX]);
/* What its VF must show: the identity, or nobody's (VHCA_GUID_ALL1, no keys) while that is
 * withheld, or was taken. */
struct vhca_identity vhca_claim_shows(const struct vhca_claim *claim);

/* What runs for a VF outside of the state thread. */
enum vhca_effect {
	VHCA_EFFECT_NONE,
	VHCA_EFFECT_PROBE,	    /* is the vfio group open? reads only */
	VHCA_EFFECT_PREPARE,	    /* bind to vfio-pci, scrub, prove */
	VHCA_EFFECT_PROGRAM,	    /* write the claim's identity, prove */
	VHCA_EFFECT_UNMAP,	    /* unmap what leads to another key than the claim's */
	VHCA_EFFECT_READ,	    /* read the identity back */
	VHCA_EFFECT_REREQUEST_GUID, /* ask the SM again for the GUID */
	VHCA_EFFECT_AWAIT_SM_GUID,  /* let the SM choose the claim's GUID */
	VHCA_EFFECT_SCRUB,	    /* group closed? map none, GUID withdrawn, prove */
	/* the same under a guest that must not have it, whatever it does with the group */
	VHCA_EFFECT_SCRUB_IN_GUEST,
	VHCA_EFFECT_ATTACH,	     /* hot-plug through libvirt */
	VHCA_EFFECT_DETACH,	     /* ask libvirt to unplug */
	VHCA_EFFECT_ASK_GUEST_AGENT, /* ask the guest's own agent for the VF, or how far that is */
};
#define VHCA_EFFECT_COUNT (VHCA_EFFECT_ASK_GUEST_AGENT + 1)
const char *vhca_effect_to_string(enum vhca_effect effect);
/* Who runs it: agent/host/host.h or agent/domains.h. */
enum vhca_effect_room { VHCA_EFFECT_AT_HOST, VHCA_EFFECT_AT_LIBVIRT };
enum vhca_effect_room vhca_effect_room(enum vhca_effect effect);

/* At most one effect at a time; the next one not before a back-off after a failure is over. */
struct vhca_slot {
	enum vhca_effect effect;
	uint64_t begun_us; /* the effect (vhca_now_us) */
	struct vhca_backoff backoff;
	uint64_t not_before_ms; /* vhca_now_ms() */
};

/*
 * How far the guest's agent is with what it is asked for, in this detach (agent/vf/detach.c);
 * forgotten by a restart.
 */
struct vhca_escalation {
	uint64_t next_ms; /* ask, or ask again (vhca_now_ms); 0 = not in this detach any more */
	uint64_t pid;	  /* of the program in the guest; 0 = not begun */
	bool begun;	  /* it was told to people */
	struct vhca_error outcome; /* what came of it; kind NONE = nothing yet */
};

/* So many failures of a VF in a row and it is quarantined, for that long. */
#define VHCA_VF_FAILURES_MAX 3
#define VHCA_VF_REST_MIN     10

/* What of a VF's claim has changed during a transaction, and goes to the disk behind it. */
enum vhca_vf_owed {
	VHCA_OWED_NOTHING,
	VHCA_OWED_SAVE,
	VHCA_OWED_REPORT, /* its binding as well */
};

/* Whether somebody has its vfio group open, by the last probe. */
enum vhca_vf_use {
	VHCA_USE_UNKNOWN,
	VHCA_USE_NOBODY,
	VHCA_USE_SOMEBODY,
	VHCA_USE_PROBE_AGAIN, /* somebody had, and that is to be looked at again */
};

#define VHCA_MISSING_UNKNOWN UINT_MAX

struct engine_adopt;
struct vhca_hca;

struct vhca_vf {
	TAILQ_ENTRY(vhca_vf) link;	  /* of its HCA, by index */
	STAILQ_ENTRY(vhca_vf) dirty_link; /* of the engine's work list */
	bool dirty;
	struct vhca_hca *hca;
	struct vhca_bdf bdf;
	uint16_t index;
	/* Where the kernel shows it now, until that is settled (agent/vf/absent.c); NULL: at hca,
	 * index. */
	struct vhca_hca *to_hca;
	uint16_t to_index;
	bool present;
	uint64_t absent_ms; /* since when it is not (vhca_now_ms) */
	int iommu_group;
	uint16_t group_size; /* devices in that group */
	char driver[32];

	/* What the kernel has said last, until the VF is proven clean. Not durable. */
	enum vhca_pci_error pci_error;
	uint64_t pci_error_ms; /* when (wall clock) */

	enum vhca_vf_state state; /* the durable one */
	uint64_t since_ms;	  /* wall clock */
	char reason[VHCA_REASON_MAX];
	struct vhca_claim *claim;

	bool hw_known;
	struct vhca_identity_state hw; /* as read last */
	/* How many keys of the claim the port's table lacks, or VHCA_MISSING_UNKNOWN. */
	unsigned int missing;
	bool granted;
	bool reprogram; /* the P_Key table changed or a drift was seen */
	enum vhca_vf_use use;
	struct engine_adopt *adopt; /* reads its hardware (agent/vf/adopt.c) */

	unsigned int committing; /* transactions under way; no step meanwhile */
	enum vhca_vf_owed owed;
	uint64_t owed_ms; /* it has failed, and is not tried before this (vhca_now_ms) */
	/* While something runs on its hardware the VF is not stepped; while something runs at
	 * libvirt, only what its P_Key map shows is tended. */
	struct vhca_slot host, virt;
	bool outdated; /* the port's P_Key table has changed since the host's effect was begun */
	bool unread;   /* detaching: it is read before its guest is asked again */
	/* How often it could not be prepared, programmed or attached, by its own or its card's
	 * fault, since a guest got it last. Durable with the next move. */
	unsigned int failures;
	char fault[VHCA_REASON_MAX];   /* of the last of these failures */
	struct vhca_uuid failed_guest; /* the domain that it could not be attached to last */
	uint64_t rests_until_ms;       /* it has failed too often (vhca_now_ms) */
	uint64_t look_ms;     /* attached: next read-back; detaching: next unplug request */
	uint64_t deadline_ms; /* of a detach, of a scrub, of a port's domain that is to begin */
	uint64_t detach_us;   /* when it began (vhca_now_us); 0 = not in this life */
	struct vhca_escalation escalation;
	uint64_t kicked_ms; /* when the SM was last asked again for its GUID (vhca_now_ms) */
	struct vhca_timer *timer;
	void *engine; /* for the timer */
};

struct vhca_hca {
	TAILQ_ENTRY(vhca_hca) link;
	struct vhca_pf_facts facts; /* facts.vfs is not kept up to date: the VFs are below */
	bool present;
	bool plugged; /* or the PCI bus has it at least, without mlx4_core or mlx5_core */
	uint16_t plugged_device; /* the PCI device ID of what the bus has there; 0 = not known */
	bool wanted;		 /* the configuration says manage = yes */
	bool managed;		 /* wanted, and as far as is known it has an InfiniBand port */
	uint16_t want_vfs;	 /* VHCA_CONF_VFS_KEEP = whatever exists */
	bool replacing;		 /* its VFs are being taken away: none is given out */
	char fabric[VHCA_NAME_MAX];
	uint8_t port;	   /* the port that carries the VFs' identities */
	uint8_t want_port; /* the one that is configured; 0 = not known yet */
	struct vhca_port_state ports[VHCA_PORTS_MAX];
	uint16_t declared[VHCA_PKEY_TABLE_MAX]; /* keys declared to the SM for claims on the move */
	uint16_t n_declared;
	char problem[VHCA_REASON_MAX]; /* why VFs are missing, and the way out; "" = none */
	char problem_fix[256];	       /* the way out alone */
	TAILQ_HEAD(, vhca_vf) vfs;
};

/* A request of a domain's metadata that could not be met, and when to try again. */
struct vhca_request_state {
	char name[VHCA_NAME_MAX];
	struct vhca_error problem;
	struct vhca_error failed; /* why the last VF that it got went, until a guest has one */
	uint64_t retry_ms;
	struct vhca_backoff backoff;
};

struct vhca_domain {
	TAILQ_ENTRY(vhca_domain) link;
	struct vhca_dom_info *info;   /* owned; live XML as parsed last */
	struct vhca_error unreadable; /* why the live XML cannot be read; kind NONE = it can */
	struct vhca_error request_error;
	bool incoming; /* migration is coming in; the guest does not run here yet */
	/* when the last event came that may mean that it does (vhca_now_us()); 0 = none */
	uint64_t arrived_us;
	bool seen; /* mark of a full listing */
	struct vhca_request_state requests[VHCA_DOM_VFS_MAX];
};

/* A VF that was detached by request although the metadata of the domain still asks for it. */
struct vhca_suppressed {
	TAILQ_ENTRY(vhca_suppressed) link;
	struct vhca_uuid domain;
	char name[VHCA_NAME_MAX];
};

struct vhca_epoch {
	uint64_t guid, epoch;
	uint64_t used; /* the higher, the later it was set; not durable */
	bool owned;    /* the SM has accepted it from here; not durable */
	bool disputed; /* the SM has named another owner, and was not heard since; not durable */
	bool stranded; /* its claim ended with its boot... */
	struct vhca_uuid migration; /* ...in this one, to which the epoch may be promised */
};
/*
 * Of so many vGUIDs the epoch is remembered, and of those that have claims. What was forgotten the
 * SM knows: it says so when it refuses the first report, and the claim goes on above that
 * (agent/vf/sm.c).
 */
#define VHCA_EPOCHS_MAX 8192

struct vhca_model {
	struct vhca_counters counters;
	struct {
		uint64_t done, failed;
	} effects[VHCA_EFFECT_COUNT]; /* how many have ended, and how */
	TAILQ_HEAD(, vhca_hca) hcas;  /* by address */
	TAILQ_HEAD(, vhca_claim) claims;
	TAILQ_HEAD(, vhca_domain) domains;
	TAILQ_HEAD(, vhca_suppressed) suppressed;
	struct vhca_epoch *epochs; /* of the vGUIDs that were owned here */
	size_t n_epochs, epochs_size;
	uint64_t epoch_uses;
	uint64_t last_claim; /* number of the claim that was made last */
};

/* Empty, and empty again. */
void vhca_model_init(struct vhca_model *m);
void vhca_model_done(struct vhca_model *m); /* frees everything; waiters are not called */

/* Find: borrowed, or NULL. Add: owned by the model, NULL when out of memory. */
struct vhca_hca *vhca_model_hca(struct vhca_model *m, struct vhca_bdf bdf);
struct vhca_hca *vhca_model_add_hca(struct vhca_model *m,
				    struct vhca_bdf bdf); /* NULL: out of memory */
/* It is managed, and known to have an InfiniBand port: before that nothing of it is taken. */
bool vhca_hca_gives_vfs(const struct vhca_hca *hca);
/*
 * An adapter of each fabric, the first one, in the order of the addresses: that of the fabric
 * behind prev's (NULL: of the first), or NULL. only_wanted: of adapters that the configuration
 * manages.
 */
struct vhca_hca *vhca_model_next_fabric(const struct vhca_model *m, const struct vhca_hca *prev,
					bool only_wanted);
/* The back end that programs the HCA's VFs, and says what it can do. */
const struct vhca_identity_ops *vhca_hca_identity(const struct vhca_hca *hca);
void vhca_model_drop_hca(struct vhca_model *m, struct vhca_hca *hca); /* and its VFs */
struct vhca_vf *vhca_model_vf(struct vhca_model *m, struct vhca_bdf bdf);
/* Those of all adapters, by adapter, then by index; the one at hand may not be dropped. */
struct vhca_vf *vhca_model_next_vf(const struct vhca_model *m, const struct vhca_vf *prev);
#define VHCA_FOREACH_VF(vf, model)                                   \
	for ((vf) = vhca_model_next_vf((model), NULL); (vf) != NULL; \
	     (vf) = vhca_model_next_vf((model), (vf)))
struct vhca_vf *vhca_model_add_vf(struct vhca_hca *hca, struct vhca_bdf bdf, uint16_t index);
void vhca_model_move_vf(struct vhca_vf *vf, struct vhca_hca *hca, uint16_t index);
struct vhca_claim *vhca_model_claim(struct vhca_model *m, const struct vhca_uuid *id);
/* That one, or the one that has taken its place in this life. */
struct vhca_claim *vhca_model_claim_or_next(struct vhca_model *m, const struct vhca_uuid *id);
struct vhca_claim *vhca_model_claim_of(struct vhca_model *m, const struct vhca_uuid *domain,
				       const char *name);
/* Those of a domain, oldest first; the one at hand may not be dropped. */
struct vhca_claim *vhca_model_next_claim(const struct vhca_model *m, const struct vhca_uuid *domain,
					 const struct vhca_claim *prev);
#define VHCA_FOREACH_CLAIM_OF(c, model, domain)                                 \
	for ((c) = vhca_model_next_claim((model), (domain), NULL); (c) != NULL; \
	     (c) = vhca_model_next_claim((model), (domain), (c)))
struct vhca_claim *vhca_model_claim_by_guid(struct vhca_model *m, uint64_t guid);
struct vhca_claim *vhca_model_add_claim(struct vhca_model *m);
void vhca_model_drop_claim(struct vhca_model *m,
			   struct vhca_claim *claim); /* waiters must be empty */
struct vhca_domain *vhca_model_domain(struct vhca_model *m, const struct vhca_uuid *uuid);
struct vhca_domain *vhca_model_domain_by_name(struct vhca_model *m, const char *name);
/* Why the domain has no VF of that name, which it asks for; NULL if nothing has failed. */
const struct vhca_error *vhca_domain_problem(const struct vhca_domain *dom, const char *name);
/* Why the try before this one failed, while it is tried again; NULL = it is the first. */
const struct vhca_error *vhca_domain_failed(const struct vhca_domain *dom, const char *name);
/* A guest has the VF that was asked for by this name. */
void vhca_domain_served(struct vhca_domain *dom, const char *name);
struct vhca_domain *vhca_model_add_domain(struct vhca_model *m);
void vhca_model_drop_domain(struct vhca_model *m, struct vhca_domain *dom);
bool vhca_model_suppressed(const struct vhca_model *m, const struct vhca_uuid *domain,
			   const char *name);
int vhca_model_suppress(struct vhca_model *m, const struct vhca_uuid *domain, const char *name);
/* Forgets all of a domain (name == NULL) or one; true if there was one. */
bool vhca_model_unsuppress(struct vhca_model *m, const struct vhca_uuid *domain, const char *name);

/* Last epoch used for the vGUID here; 0 = never, or long ago. */
uint64_t vhca_model_epoch(const struct vhca_model *m, uint64_t guid);
/* It is the first one after a take-over. */
bool vhca_epoch_begins_generation(uint64_t epoch);
/*
 * Above all that the dead host has raised by itself while the SM did not hear it: back again, it
 * would withdraw its last one, and bury a binding at a lower epoch. Only take-overs count here:
 * 2^31 of them, and 2^32 epochs between two. False: there are no more.
 */
bool vhca_epoch_next_generation(uint64_t epoch, uint64_t *ret);
int vhca_model_set_epoch(struct vhca_model *m, uint64_t guid, uint64_t epoch);
/* Its claim ends with its boot, in the middle of the migration. */
void vhca_model_strand_epoch(struct vhca_model *m, uint64_t guid,
			     const struct vhca_uuid *migration);
/* One of those, or NULL. */
const struct vhca_epoch *vhca_model_stranded(const struct vhca_model *m,
					     const struct vhca_uuid *migration);
/*
 * Where there are more than VHCA_EPOCHS_MAX: forgets those that were set longest ago, many at once,
 * and says which.
 */
void vhca_model_forget_epochs(struct vhca_model *m, void (*forgotten)(void *ctx, uint64_t guid),
			      void *ctx);
void vhca_model_own_epoch(struct vhca_model *m, uint64_t guid, uint64_t epoch);
void vhca_model_dispute(struct vhca_model *m, uint64_t guid, bool disputed);
bool vhca_model_is_disputed(const struct vhca_model *m, uint64_t guid);
/*
 * The epoch of a new claim. Only an owner raises it: one that the SM has not accepted from here is
 * used again, else a host that is refused would take the vGUID from its owner by asking twice.
 */
uint64_t vhca_model_next_epoch(const struct vhca_model *m, uint64_t guid);

/* It has failed too often, and is given to nobody for a while. */
bool vhca_vf_rests(const struct vhca_vf *vf);
/* What the last probe has found stands. */
bool vhca_vf_is_probed(const struct vhca_vf *vf);
/* Somebody had its vfio group open when it was probed last. */
bool vhca_vf_seems_in_use(const struct vhca_vf *vf);
/* Where the effect is noted while it runs for the VF. */
struct vhca_slot *vhca_vf_slot(struct vhca_vf *vf, enum vhca_effect effect);
/* What runs for it, the hardware's before libvirt's; NONE = nothing. */
enum vhca_effect vhca_vf_effect(const struct vhca_vf *vf);
/* Claimed, and no guest is known to have it: whoever has its vfio group open then is a stranger. */
bool vhca_model_is_unused(struct vhca_model *m, const struct vhca_vf *vf);

/*
 * The live domain that has the VF's host address among its hostdevs, and that hostdev; NULL if
 * none.
 */
struct vhca_domain *vhca_model_user(const struct vhca_model *m, struct vhca_bdf vf,
				    const struct vhca_dom_hostdev **ret_dev);
/* A live domain that has the VF although its claim is another domain's, or NULL. */
const struct vhca_domain *vhca_model_stranger(const struct vhca_model *m, const struct vhca_vf *vf);

#endif
