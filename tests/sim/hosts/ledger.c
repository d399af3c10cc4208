/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "tests/sim/hosts/ledger.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#define SILENCE_MS 10000 /* two time-outs: then the SM is taken for away */

void ledger_init(struct ledger *l, unsigned int n_hosts)
{
	memset(l, 0, sizeof(*l));
	l->n_hosts = n_hosts;
	for (unsigned int g = 0; g < LEDGER_GUESTS; g++)
		l->runs[g] = LEDGER_NOBODY;
}

/* ---- entries ---- */

static struct ledger_id *find(struct ledger *l, uint64_t guid)
{
	for (unsigned int i = 0; i < l->n_ids; i++)
		if (l->ids[i].guid == guid)
			return &l->ids[i];
	return NULL;
}

const struct ledger_id *ledger_find(const struct ledger *l, uint64_t guid)
{
	for (unsigned int i = 0; i < l->n_ids; i++)
		if (l->ids[i].guid == guid)
			return &l->ids[i];
	return NULL;
}

static struct ledger_id *find_or_make(struct ledger *l, uint64_t guid)
{
	struct ledger_id *id = find(l, guid);

	if (id)
		return id;
	assert(l->n_ids < LEDGER_IDS);
	id = &l->ids[l->n_ids++];
	*id = (struct ledger_id){.guid = guid, .guest = LEDGER_NOBODY};
	return id;
}

void ledger_add(struct ledger *l, uint64_t guid, unsigned int guest, uint16_t pkey,
		unsigned int host)
{
	struct ledger_id *id = find_or_make(l, guid);

	id->guest = guest;
	id->pkey = pkey;
	id->at[host].may = true;
	l->runs[guest] = l->last[guest] = host;
}

unsigned int ledger_host_of(const struct ledger *l, uint64_t port)
{
	for (unsigned int h = 0; h < l->n_hosts; h++)
		if (l->ports[h] == port)
			return h;
	return LEDGER_NOBODY;
}

static bool may_by_silence(const struct ledger_host *at, uint64_t now)
{
	return at->started && now - at->waits_ms >= SILENCE_MS;
}

static void set(struct ledger_host *at, bool may, uint64_t now)
{
	if (at->may != may || may_by_silence(at, now))
		at->since_ms = now;
	at->may = may;
	at->started = at->refused = false;
}

static void set_all(struct ledger *l, unsigned int guest, unsigned int host, bool may, uint64_t now)
{
	for (unsigned int i = 0; i < l->n_ids; i++)
		if (l->ids[i].guest == guest)
			set(&l->ids[i].at[host], may, now);
}

/* It has to hear the SM, or that there is none. */
static void wait_for_sm(struct ledger_host *at, uint64_t now)
{
	set(at, false, now);
	at->started = true;
	at->waits_ms = now;
}

/* ---- libvirt and operators ---- */

void ledger_guest_starts(struct ledger *l, unsigned int guest, unsigned int host, uint64_t now)
{
	l->runs[guest] = host;
	for (unsigned int i = 0; i < l->n_ids; i++) {
		struct ledger_id *id = &l->ids[i];

		bool free = l->last[guest] == host || !id->sm[l->master].bound ||
			    id->sm[l->master].port == l->ports[host];

		if (id->guest != guest)
			continue;
		if (free)
			set(&id->at[host], true, now);
		else
			wait_for_sm(&id->at[host], now);
	}
	l->last[guest] = host;
}

void ledger_guest_goes(struct ledger *l, unsigned int guest, uint64_t now)
{
	if (l->runs[guest] != LEDGER_NOBODY)
		set_all(l, guest, l->runs[guest], false, now);
	l->runs[guest] = LEDGER_NOBODY;
}

void ledger_guest_arrives(struct ledger *l, unsigned int guest, unsigned int host, uint64_t now)
{
	ledger_guest_goes(l, guest, now);
	l->runs[guest] = l->last[guest] = host;
	set_all(l, guest, host, true, now);
}

void ledger_agent_starts(struct ledger *l, unsigned int host, uint64_t now)
{
	for (unsigned int i = 0; i < l->n_ids; i++) {
		struct ledger_host *at = &l->ids[i].at[host];

		if (at->refused)
			wait_for_sm(at, now);
	}
}

void ledger_vouch(struct ledger *l, unsigned int guest)
{
	l->vouched[guest] = true;
}

/* ---- documents ---- */

static const char *text_of(struct json_object *doc, const char *key)
{
	struct json_object *o = doc ? json_object_object_get(doc, key) : NULL;

	return o ? json_object_get_string(o) : "";
}

static uint64_t number_of(struct json_object *doc, const char *key)
{
	struct json_object *o = doc ? json_object_object_get(doc, key) : NULL;

	return o ? json_object_get_uint64(o) : 0;
}

static uint64_t guid_of(struct json_object *doc, const char *key)
{
	return strtoull(text_of(doc, key), NULL, 16);
}

/* ".../claims/ID/handover" */
static bool is_peers(const struct ledger_message *m, const char *tail, char ret_id[static 37])
{
	static const char head[] = "/v1/peer/claims/";
	size_t n;

	if (strncmp(m->path, head, sizeof(head) - 1) != 0)
		return false;
	n = strcspn(m->path + sizeof(head) - 1, "/");
	if (strcmp(m->path + sizeof(head) - 1 + n, tail) != 0)
		return false;
	(void)snprintf(ret_id, 37, "%.*s", (int)n, m->path + sizeof(head) - 1);
	return true;
}

static struct json_object *vf_of(const struct ledger_message *m, unsigned int n)
{
	struct json_object *vfs = m->body ? json_object_object_get(m->body, "vfs") : NULL;

	return vfs && n < json_object_array_length(vfs) ? json_object_array_get_idx(vfs, n) : NULL;
}

uint64_t ledger_handed(const struct ledger_message *m, unsigned int n)
{
	char id[37];

	return is_peers(m, "/handover", id) ? guid_of(vf_of(m, n), "guid") : 0;
}

/* ---- between agents ---- */

/* The migration's number, or n_moves. */
static unsigned int find_move(const struct ledger *l, const char *id)
{
	unsigned int i = 0;

	while (i < l->n_moves && strcmp(l->moves[i].id, id) != 0)
		i++;
	return i;
}

static unsigned int guest_of(const struct ledger *l, const char *id)
{
	unsigned int i = find_move(l, id);

	return i < l->n_moves ? l->moves[i].guest : LEDGER_NOBODY;
}

static bool has_withdrawn(const struct ledger *l, const char *id, unsigned int host)
{
	unsigned int i = find_move(l, id);

	return i < l->n_moves && l->moves[i].withdrawn[host];
}

/* Domains are told apart by the last digits of their UUID. */
static void note_offer(struct ledger *l, const struct ledger_message *m, const char *id)
{
	const char *domain = text_of(m->body, "domain");
	unsigned int guest;

	if (strlen(domain) != 36)
		return;
	guest = (unsigned int)strtoul(domain + 34, NULL, 16);
	assert(guest < LEDGER_GUESTS);
	l->moved[m->from][guest] = true;
	if (guest_of(l, id) != LEDGER_NOBODY)
		return;
	assert(l->n_moves < LEDGER_MOVES);
	(void)snprintf(l->moves[l->n_moves].id, sizeof(l->moves[0].id), "%s", id);
	l->moves[l->n_moves++].guest = guest;
}

void ledger_says(struct ledger *l, const struct ledger_message *m)
{
	struct json_object *vf;
	char mig[37];

	if (is_peers(m, "", mig) && !strcmp(m->method, "PUT"))
		note_offer(l, m, mig);
	if (!is_peers(m, "/handover", mig))
		return;
	for (unsigned int n = 0; (vf = vf_of(m, n)); n++) {
		struct ledger_host *at = &find_or_make(l, guid_of(vf, "guid"))->at[m->from];
		uint64_t epoch = number_of(vf, "epoch");

		/* Said once more, it takes nothing of what has come to it since. */
		if (!at->may && at->promised == epoch && !strcmp(at->promise, mig))
			continue;
		set(at, false, m->now);
		at->promised = epoch;
		(void)snprintf(at->promise, sizeof(at->promise), "%s", mig);
	}
}

void ledger_delivered(struct ledger *l, const struct ledger_message *m)
{
	struct json_object *vf;
	char mig[37];

	if (is_peers(m, "", mig) && guest_of(l, mig) != LEDGER_NOBODY)
		l->moved[m->to][guest_of(l, mig)] = true;
	if (!is_peers(m, "/handover", mig) || has_withdrawn(l, mig, m->to))
		return;
	for (unsigned int n = 0; (vf = vf_of(m, n)); n++) {
		struct ledger_host *at = &find_or_make(l, guid_of(vf, "guid"))->at[m->to];
		uint64_t epoch = number_of(vf, "epoch");

		if (epoch <= at->proof)
			continue; /* it was told so before, and may have given it up since */
		set(at, true, m->now);
		at->proof = epoch;
		(void)snprintf(at->given, sizeof(at->given), "%s", mig);
	}
}

/* A guest that runs here is not withdrawn from, nor is what a later migration has handed over. */
void ledger_answers(struct ledger *l, const struct ledger_message *m)
{
	unsigned int guest;
	char mig[37];

	if (m->status != 200 || !is_peers(m, "/abort", mig))
		return;
	guest = guest_of(l, mig);
	if (guest == LEDGER_NOBODY || l->runs[guest] == m->to)
		return;
	l->moves[find_move(l, mig)].withdrawn[m->to] = true;
	for (unsigned int i = 0; i < l->n_ids; i++)
		if (l->ids[i].guest == guest && !strcmp(l->ids[i].at[m->to].given, mig))
			set(&l->ids[i].at[m->to], false, m->now);
}

void ledger_hears(struct ledger *l, const struct ledger_message *m)
{
	unsigned int guest;
	char mig[37];

	if (m->status != 200 || !is_peers(m, "/abort", mig))
		return;
	guest = guest_of(l, mig);
	for (unsigned int i = 0; i < l->n_ids; i++) {
		struct ledger_host *at = &l->ids[i].at[m->from];

		if (l->ids[i].guest == guest && guest != LEDGER_NOBODY && !at->may &&
		    !strcmp(at->promise, mig)) {
			set(at, true, m->now);
			at->proof = at->promised + 1; /* above what is over now */
		}
	}
}

/* ---- the SM ---- */

struct report {
	uint64_t guid, epoch, port;
	bool bound;
};

/* False: it asks for nothing to change. */
static bool parse_report(const struct ledger_message *m, struct report *ret)
{
	static const char head[] = "/v1/bindings/";
	const char *query = strchr(m->path, '?');

	*ret = (struct report){.bound = true};
	if (!strcmp(m->path, "/v1/moves")) {
		ret->guid = guid_of(m->body, "vguid");
		ret->epoch = number_of(m->body, "epoch");
		ret->port = guid_of(json_object_object_get(m->body, "to"), "port_guid");
		return !strcmp(text_of(m->body, "phase"), "commit");
	}
	if (strncmp(m->path, head, sizeof(head) - 1) != 0)
		return false;
	ret->guid = strtoull(m->path + sizeof(head) - 1, NULL, 16);
	ret->bound = !strcmp(m->method, "PUT");
	if (ret->bound) {
		ret->epoch = number_of(m->body, "epoch");
		ret->port = guid_of(m->body, "port_guid");
	} else if (query && strstr(query, "port_guid=")) {
		ret->epoch = strtoull(query + strlen("?epoch="), NULL, 10);
		ret->port = strtoull(strstr(query, "port_guid=") + strlen("port_guid="), NULL, 16);
	}
	return true;
}

uint64_t ledger_withdrawn(const struct ledger_message *m)
{
	struct report r;

	return parse_report(m, &r) && !r.bound ? r.guid : 0;
}

/* Lower epochs are over, and so is one that was withdrawn; one epoch is one port's. */
static bool is_over(const struct ledger_told *told, const struct report *r)
{
	if (!told->known || (!r->bound && !told->bound))
		return false;
	return r->epoch < told->epoch ||
	       (r->epoch == told->epoch && ((r->bound && !told->bound) || r->port != told->port));
}

/* A port ends no other port's binding, whatever epoch it had in mind. */
static bool ends_anothers(const struct ledger_told *told, const struct report *r)
{
	return !r->bound && told->known && told->bound && r->port != told->port;
}

static bool is_refused(const struct ledger_message *m)
{
	const char *code = text_of(m->answer, "code");

	return m->status == 409 && (!strcmp(code, "superseded") || !strcmp(code, "epoch_tie"));
}

static enum ledger_verdict judge_generation(const struct ledger *l, const struct ledger_id *id,
					    const struct ledger_told *told, const struct report *r)
{
	unsigned int host = ledger_host_of(l, r->port);
	bool begins = r->epoch >> 32 > told->epoch >> 32;

	if (id->guest == LEDGER_NOBODY || !r->bound)
		return LEDGER_RIGHT;
	if (begins && !l->vouched[id->guest])
		return LEDGER_UNVOUCHED;
	if (!begins && told->bound && told->epoch && told->port != r->port &&
	    (host == LEDGER_NOBODY ||
	     (!l->moved[host][id->guest] && r->epoch > id->at[host].free_to)))
		return LEDGER_NO_GENERATION;
	return LEDGER_RIGHT;
}

static void note_report(struct ledger *l, struct ledger_id *id, struct ledger_told *told,
			const struct report *r)
{
	unsigned int host = ledger_host_of(l, r->port);

	if (!r->bound && !told->bound && told->known) {
		told->epoch = r->epoch > told->epoch ? r->epoch : told->epoch;
		return;
	}
	told->known = true;
	told->bound = r->bound;
	told->epoch = r->epoch;
	if (r->bound || !told->port)
		told->port = r->port;
	if (r->bound)
		id->given = *told;
	if (r->bound && host != LEDGER_NOBODY && id->at[host].proof < r->epoch)
		id->at[host].proof = r->epoch;
}

/* A binding's keys go to the port, or to the VF that is one. */
static bool has_wrong_key(const struct ledger_id *id, const struct ledger_message *m)
{
	struct json_object *keys = m->body ? json_object_object_get(m->body, "pkeys") : NULL;
	size_t n = keys ? json_object_array_length(keys) : 0;

	for (size_t i = 0; i < n && id->guest != LEDGER_NOBODY; i++)
		if (strtoul(json_object_get_string(json_object_array_get_idx(keys, i)), NULL, 0) !=
		    id->pkey)
			return true;
	return false;
}

enum ledger_verdict ledger_sm_answers(struct ledger *l, const struct ledger_message *m)
{
	struct ledger_told *told;
	enum ledger_verdict ret;
	struct ledger_id *id;
	struct report r;

	if (!parse_report(m, &r))
		return LEDGER_RIGHT;
	id = find_or_make(l, r.guid);
	told = &id->sm[m->sm];
	if (m->status != 200)
		return is_refused(m) && !is_over(told, &r) ? LEDGER_WRONGLY_REFUSED : LEDGER_RIGHT;
	if (is_over(told, &r) || ends_anothers(told, &r))
		return LEDGER_WRONGLY_ACCEPTED;
	ret = has_wrong_key(id, m) ? LEDGER_WRONG_KEY : judge_generation(l, id, told, &r);
	note_report(l, id, told, &r);
	return ret;
}

void ledger_sm_takes_over(struct ledger *l, unsigned int sm, bool knows_nothing)
{
	l->master = sm;
	for (unsigned int i = 0; i < l->n_ids && knows_nothing; i++)
		l->ids[i].sm[sm] = (struct ledger_told){.known = false};
}

/* The SM's no says that another port has it; one that has given it up is named, too. */
static bool names_another(const struct ledger_message *m, uint64_t port)
{
	struct json_object *bound = m->answer ? json_object_object_get(m->answer, "bound") : NULL;
	uint64_t has = guid_of(m->answer, "port_guid");

	return has && has != port && (!bound || json_object_get_boolean(bound));
}

/* What the SM says to be given up may be gone on from, above the epoch that is promised to a
 * migration's destination. */
static uint64_t free_up_to(const struct ledger_message *m)
{
	struct json_object *bound = m->answer ? json_object_object_get(m->answer, "bound") : NULL;

	return bound && !json_object_get_boolean(bound) ? number_of(m->answer, "known_epoch") + 2
							: 0;
}

/* What it has handed over is over, and its guest runs here (again). */
static bool is_given_up(const struct ledger *l, const struct ledger_id *id,
			const struct ledger_message *m)
{
	return id->guest != LEDGER_NOBODY && l->runs[id->guest] == m->from &&
	       number_of(m->answer, "known_epoch") >= id->at[m->from].promised;
}

void ledger_sm_heard(struct ledger *l, const struct ledger_message *m)
{
	struct ledger_host *at;
	struct ledger_id *id;
	struct report r;

	if (!parse_report(m, &r) || !r.bound)
		return;
	id = find_or_make(l, r.guid);
	at = &id->at[m->from];
	if (is_refused(m))
		at->free_to = free_up_to(m);
	if (m->status == 200 && r.epoch > at->promised)
		set(at, true, m->now);
	else if (m->status != 200 && !is_refused(m) && at->started)
		set(at, true, m->now); /* no SM can be asked */
	else if (is_refused(m) && r.epoch >= at->proof && names_another(m, r.port)) {
		set(at, false, m->now);
		at->refused = true;
	} else if (is_refused(m) && !at->may && (at->refused || is_given_up(l, id, m)))
		wait_for_sm(at, m->now);
}

/* ---- questions ---- */

bool ledger_may(const struct ledger *l, uint64_t guid, unsigned int host, uint64_t now,
		uint64_t late_ms)
{
	const struct ledger_id *id = ledger_find(l, guid);

	return !id || id->guest == LEDGER_NOBODY || id->at[host].may ||
	       may_by_silence(&id->at[host], now) || now - id->at[host].since_ms < late_ms;
}

static bool evicts(const struct ledger *l, const struct ledger_told *told,
		   const struct ledger_id *id, unsigned int host)
{
	return told->known && told->port != l->ports[host] && told->epoch > id->at[host].proof;
}

bool ledger_is_evicted(const struct ledger *l, uint64_t guid, unsigned int host)
{
	const struct ledger_id *id = ledger_find(l, guid);

	for (unsigned int i = 0; id && i < LEDGER_SMS; i++)
		if (evicts(l, &id->sm[i], id, host))
			return true;
	return id && evicts(l, &id->given, id, host);
}
