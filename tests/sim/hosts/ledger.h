/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_SIM_HOSTS_LEDGER_H
#define VHCA_TESTS_SIM_HOSTS_LEDGER_H
/*
 * Who may have which vGUID, kept beside the agents of several hosts: from what passes over the wire
 * between them and to the SM, from where libvirt runs the guests, and from what operators vouch
 * for. Knows nothing of the product but the words of its two protocols; no agent and no table of
 * the plugin is ever asked.
 *
 * A host *may* have a vGUID from the moment in which it can know so:
 *   its guest was started there, and ran last there, or the SM has it at no other port;
 *   its guest came there by a migration;
 *   a hand-over was delivered to it, or the SM's yes, or the destination's word that it withdrew;
 *   its guest was started there, and the SM cannot be asked (DESIGN 7: that blocks no VM);
 * and until
 *   it says a hand-over (whoever hears that), or that it has withdrawn;
 *   the SM's no is delivered to it; its guest goes.
 */
#include <stdbool.h>
#include <stdint.h>

#define LEDGER_HOSTS  8
#define LEDGER_GUESTS 8
#define LEDGER_IDS    64
#define LEDGER_MOVES  1024
#define LEDGER_SMS    2
#define LEDGER_NOBODY UINT32_MAX

struct json_object;

struct ledger_host {
	bool may;
	/* ...not, only because its guest was started here and the SM has another port */
	bool started;
	bool refused;	   /* ...not: the SM's no was heard */
	uint64_t since_ms; /* when that has changed */
	uint64_t waits_ms; /* since when it waits for the SM's word, if `started` */
	uint64_t proof;	   /* the highest epoch that it was given, by a peer or the SM */
	uint64_t free_to;  /* the SM has told it that the vGUID was given up; 0: that it was not */
	uint64_t promised; /* the epoch that it has handed over... */
	char promise[37];  /* ...in this migration */
	char given[37];	   /* the last hand-over to it was of this one */
};

/* What an SM was told of a vGUID, and has accepted. */
struct ledger_told {
	bool known, bound;
	uint64_t epoch, port;
};

/* One vGUID. */
struct ledger_id {
	uint64_t guid;
	unsigned int guest; /* LEDGER_NOBODY: not known yet */
	uint16_t pkey;	    /* the one that its guest's metadata asks for */
	struct ledger_host at[LEDGER_HOSTS];
	/* Each as it was told; a standby has heard nothing since its own time. */
	struct ledger_told sm[LEDGER_SMS];
	/* The last yes of any SM: one that forgets it brings no alias back that was evicted. */
	struct ledger_told given;
};

struct ledger {
	unsigned int n_ids, n_hosts, n_moves;
	struct ledger_id ids[LEDGER_IDS];
	uint64_t ports[LEDGER_HOSTS];
	unsigned int master;				   /* which SM is */
	uint32_t runs[LEDGER_GUESTS], last[LEDGER_GUESTS]; /* at this host, or ran there last */
	bool moved[LEDGER_HOSTS][LEDGER_GUESTS]; /* a migration of it was offered, by or to it */
	bool vouched[LEDGER_GUESTS];
	struct {
		char id[37];
		unsigned int guest;
		bool withdrawn[LEDGER_HOSTS]; /* a hand-over that comes later is void */
	} moves[LEDGER_MOVES];
};

/* A request of a host to another one, or to the SM, and what was answered. */
struct ledger_message {
	uint64_t now;
	unsigned int from, to;
	unsigned int sm; /* if it is to one */
	const char *method, *path;
	struct json_object *body, *answer;
	int status;
};

enum ledger_verdict {
	LEDGER_RIGHT,
	LEDGER_WRONGLY_ACCEPTED, /* an epoch that is over, or another port's */
	LEDGER_WRONGLY_REFUSED,	 /* one that is not */
	LEDGER_UNVOUCHED,	 /* a generation begins, and nobody has vouched */
	LEDGER_WRONG_KEY,	 /* not the one that the guest's metadata asks for */
	LEDGER_NO_GENERATION,	 /* taken from a host that no migration connects with this one */
};

void ledger_init(struct ledger *l, unsigned int n_hosts);
/* The guest's vGUID; its guest runs at this host. */
void ledger_add(struct ledger *l, uint64_t guid, unsigned int guest, uint16_t pkey,
		unsigned int host);
const struct ledger_id *ledger_find(const struct ledger *l, uint64_t guid);
unsigned int ledger_host_of(const struct ledger *l, uint64_t port);

/* ---- libvirt ---- */
void ledger_guest_starts(struct ledger *l, unsigned int guest, unsigned int host, uint64_t now);
void ledger_guest_arrives(struct ledger *l, unsigned int guest, unsigned int host, uint64_t now);
void ledger_guest_goes(struct ledger *l, unsigned int guest, uint64_t now);
/* ---- agents: what a killed one was refused, the next one has not heard ---- */
void ledger_agent_starts(struct ledger *l, unsigned int host, uint64_t now);
/* ---- operators ---- */
void ledger_vouch(struct ledger *l, unsigned int guest);
/* ---- the wire between agents: said, delivered, answered, the answer delivered ---- */
void ledger_says(struct ledger *l, const struct ledger_message *m);
void ledger_delivered(struct ledger *l, const struct ledger_message *m);
void ledger_answers(struct ledger *l, const struct ledger_message *m);
void ledger_hears(struct ledger *l, const struct ledger_message *m);
/* ---- the SM's answer as it is given, and as it is delivered ---- */
enum ledger_verdict ledger_sm_answers(struct ledger *l, const struct ledger_message *m);
void ledger_sm_heard(struct ledger *l, const struct ledger_message *m);
/* ---- another SM is master, with what it was told in its own time, or with nothing ---- */
void ledger_sm_takes_over(struct ledger *l, unsigned int sm, bool knows_nothing);
/* The n-th vGUID of a hand-over, or 0. */
uint64_t ledger_handed(const struct ledger_message *m, unsigned int n);
/* The vGUID that a report withdraws, or 0. */
uint64_t ledger_withdrawn(const struct ledger_message *m);

/* ---- questions ---- */
/* Now, or a moment (ms) ago: what had been begun is not called back. */
bool ledger_may(const struct ledger *l, uint64_t guid, unsigned int host, uint64_t now,
		uint64_t late_ms);
/*
 * An SM has given the vGUID to another port, at a higher epoch than any that this host was given.
 */
bool ledger_is_evicted(const struct ledger *l, uint64_t guid, unsigned int host);

#endif
