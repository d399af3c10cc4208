/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is broken on purpose, one thing at a time: a checker that nothing trips proves nothing
 * (docs/design/0006-chaos.md). Some of it is done to the product by wraps, some around it, as a
 * broken agent would do it.
 */
#include <string.h>

#include "agent/migration/claims.h"
#include "agent/migration/list.h"
#include "agent/vf/work.h"
#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/file.h"
#include "common/http/json.h"
#include "tests/sim/host/vtime.h"
#include "tests/sim/hosts/chaos.h"

#define FROM_MS 1030000 /* by then every guest has its VFs */

const char *const chaos_rules[CHAOS_RULES] = {
	[CHAOS_NO_RULE] = "none",
	[CHAOS_RULE_KEYS] = "1 keys",
	[CHAOS_RULE_BARE_ATTACH] = "1 attach",
	[CHAOS_RULE_CLEAN] = "2 free",
	[CHAOS_RULE_PROOF] = "3 proof",
	[CHAOS_RULE_HERE] = "3 here",
	[CHAOS_RULE_ONE_OWNER] = "3 one owner",
	[CHAOS_RULE_HANDED] = "3 hand-over",
	[CHAOS_RULE_FENCE] = "3 fence",
	[CHAOS_RULE_VOUCHED] = "3 vouched",
	[CHAOS_RULE_GENERATION] = "3 generation",
	[CHAOS_RULE_PULLED] = "4 detach",
	[CHAOS_RULE_STRIPPED] = "4 strip",
	[CHAOS_RULE_MARKER] = "4 marker",
	[CHAOS_RULE_COPY] = "4 copy",
	[CHAOS_RULE_INCOMING] = "4 incoming",
	[CHAOS_RULE_VF_INTENT] = "5 VF",
	[CHAOS_RULE_MIG_INTENT] = "5 migration",
	[CHAOS_RULE_GIVEN_BACK] = "8 given back",
	[CHAOS_RULE_ADDRESS] = "8 address",
	[CHAOS_RULE_DEVICE] = "8 device",
	[CHAOS_RULE_WITHHELD] = "8 withheld",
	[CHAOS_RULE_VPORT] = "LID vport",
	[CHAOS_RULE_KEPT] = "LID kept",
	[CHAOS_RULE_ENDED] = "rest: migrations",
	[CHAOS_RULE_TOLD] = "rest: outbox",
	[CHAOS_RULE_SM] = "rest: SM",
	[CHAOS_RULE_GUEST] = "rest: guests",
	[CHAOS_RULE_POOL] = "rest: pool",
	[CHAOS_RULE_LIDS] = "rest: LIDs",
	[CHAOS_RULE_CLAIMS] = "rest: claims",
	[CHAOS_RULE_AUTHORITY] = "authority",
};

const struct chaos_mutant chaos_mutants[CHAOS_BREAKAGES] = {
	[CHAOS_OLD_GENERATION] = {"old-generation", "a take-over goes on at the next epoch",
				  CHAOS_RULE_GENERATION},
	[CHAOS_UNASKED] = {"unasked", "an agent takes over though nobody has vouched",
			   CHAOS_RULE_VOUCHED},
	[CHAOS_SAME_BOOT] = {"same-boot", "an agent does not see that its host was restarted",
			     CHAOS_RULE_HERE},
	[CHAOS_WRONG_KEY] = {"wrong-key", "a VF gets the key of another tenant", CHAOS_RULE_KEYS},
	[CHAOS_NO_PROGRAM] = {"no-program", "programming does nothing", CHAOS_RULE_BARE_ATTACH},
	[CHAOS_NO_SCRUB] = {"no-scrub", "the scrub of a claim that ends does nothing",
			    CHAOS_RULE_CLEAN},
	[CHAOS_SILENCE_IS_YES] = {"silence-is-yes", "an agent takes silence for a withdrawal",
				  CHAOS_RULE_PROOF},
	[CHAOS_FALSE_ABORT] = {"false-abort", "withdrawn, says a destination that has not",
			       CHAOS_RULE_ONE_OWNER},
	[CHAOS_KEEPS_IDENTITY] = {"keeps-identity", "the scrub of a VF that leaves does nothing",
				  CHAOS_RULE_HANDED},
	[CHAOS_NO_FENCE] = {"no-fence", "the SM accepts every epoch", CHAOS_RULE_FENCE},
	[CHAOS_NO_INTENT_TO_LEAVE] = {"no-intent-to-leave",
				      "the commit of `detaching` of a migration is lost",
				      CHAOS_RULE_PULLED},
	[CHAOS_STRIPS] = {"strips", "a VF is stripped where it is to be read", CHAOS_RULE_STRIPPED},
	[CHAOS_NO_MARKER] = {"no-marker", "the marker is not set", CHAOS_RULE_MARKER},
	[CHAOS_EARLY_COPY] = {"early-copy", "the copy begins with the marker", CHAOS_RULE_COPY},
	[CHAOS_PLUGS_EARLY] = {"plugs-early", "a guest that is coming in counts as running",
			       CHAOS_RULE_INCOMING},
	[CHAOS_LOST_VF_COMMIT] = {"lost-vf-commit", "commits of `scrubbing` are lost",
				  CHAOS_RULE_VF_INTENT},
	[CHAOS_LOST_COMMIT] = {"lost-commit", "commits of `copying` are lost",
			       CHAOS_RULE_MIG_INTENT},
	[CHAOS_FAILS_EARLY] = {"fails-early", "`failed` before the VFs are back",
			       CHAOS_RULE_GIVEN_BACK},
	[CHAOS_NO_ADDRESS] = {"no-address", "VFs that moved are plugged in anywhere",
			      CHAOS_RULE_ADDRESS},
	[CHAOS_NO_ATTACH] = {"no-attach", "attaching does nothing", CHAOS_RULE_DEVICE},
	[CHAOS_STAYS_BARE] = {"stays-bare", "VFs that moved are plugged in without their identity",
			      CHAOS_RULE_WITHHELD},
	[CHAOS_LOST_END] = {"lost-end", "commits of `done` are lost", CHAOS_RULE_ENDED},
	[CHAOS_NO_ANSWER] = {"no-answer", "the SM answers to no report of keys", CHAOS_RULE_TOLD},
	[CHAOS_FORGETFUL_SM] = {"forgetful-sm", "the SM says yes and forgets", CHAOS_RULE_SM},
	[CHAOS_KEEPS_MARKER] = {"keeps-marker", "the marker is not removed", CHAOS_RULE_GUEST},
	[CHAOS_LOST_FREE] = {"lost-free", "commits of `free` are lost", CHAOS_RULE_POOL},
	[CHAOS_KEEPS_CLAIMS] = {"keeps-claims", "claims are not deleted", CHAOS_RULE_CLAIMS},
	[CHAOS_DENIED_IS_NO] = {"denied-is-no",
				"an agent drops what it reports with a revoked token",
				CHAOS_RULE_GIVEN_BACK},
	[CHAOS_STANDBY_IS_YES] = {"standby-is-yes", "an agent takes a standby's 421 for a yes",
				  CHAOS_RULE_SM},
	[CHAOS_UNHEARD_MASTER] = {"unheard-master", "no agent hears that another SM is master",
				  CHAOS_RULE_SM},
	[CHAOS_WRONG_REPORT] = {"wrong-report", "an agent reports the key of another tenant",
				CHAOS_RULE_KEYS},
	[CHAOS_KEYLESS_SM] = {"keyless-sm", "the SM takes bindings without their keys",
			      CHAOS_RULE_GUEST},
	[CHAOS_WRONG_VPORT] = {"wrong-vport", "an agent names another VF's vport",
			       CHAOS_RULE_VPORT},
	[CHAOS_FREES_LID] = {"frees-lid", "withdrawals do not keep the LID", CHAOS_RULE_KEPT},
	[CHAOS_NO_LID] = {"no-lid", "an agent asks for no LID", CHAOS_RULE_LIDS},
	[CHAOS_NO_NODES] = {"no-nodes", "the SM hears every node for every port",
			    CHAOS_RULE_AUTHORITY},
	[CHAOS_NO_NAMES] = {"no-names", "an agent takes a stranger for the peer that has offered",
			    CHAOS_RULE_AUTHORITY},
};

bool chaos_is(const struct chaos *c, enum chaos_breakage breakage)
{
	return c->breakage == breakage && vtime_now() >= FROM_MS;
}

enum chaos_rule chaos_rule_of(const char *what)
{
	static const struct {
		const char *what;
		enum chaos_rule rule;
	} words[] = {
		{"an effect without its durable intent", CHAOS_RULE_VF_INTENT},
		{"attach to a guest that is still coming in", CHAOS_RULE_INCOMING},
		{"attach of a VF whose GUID is not programmed", CHAOS_RULE_BARE_ATTACH},
		{"a guest's VF maps a key that its tenant did not ask for", CHAOS_RULE_KEYS},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(words); i++)
		if (!strcmp(words[i].what, what))
			return words[i].rule;
	return CHAOS_NO_RULE;
}

/* ---- effects on VFs ---- */

enum only { ALL, MOVING, ENDING, IN_GUEST };

static bool is_meant(enum only only, const struct world_vf *vf, const struct world_twist *t)
{
	return only == ALL || (only == MOVING && t->moves) || (only == ENDING && !t->moves) ||
	       (only == IN_GUEST && vf->group_open);
}

static enum vhca_effect instead(const struct chaos *c, const struct world_vf *vf,
				const struct world_twist *t)
{
	static const struct {
		enum chaos_breakage breakage;
		enum vhca_effect effect, instead;
		enum only only;
	} table[] = {
		{CHAOS_NO_PROGRAM, VHCA_EFFECT_PROGRAM, VHCA_EFFECT_NONE, ALL},
		{CHAOS_NO_SCRUB, VHCA_EFFECT_SCRUB, VHCA_EFFECT_NONE, ENDING},
		{CHAOS_KEEPS_IDENTITY, VHCA_EFFECT_SCRUB, VHCA_EFFECT_NONE, MOVING},
		{CHAOS_STRIPS, VHCA_EFFECT_READ, VHCA_EFFECT_SCRUB_IN_GUEST, IN_GUEST},
		{CHAOS_NO_ATTACH, VHCA_EFFECT_ATTACH, VHCA_EFFECT_NONE, ALL},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++)
		if (c->breakage == table[i].breakage && t->effect == table[i].effect &&
		    is_meant(table[i].only, vf, t))
			return table[i].instead;
	return t->effect;
}

void chaos_twist(struct world *w, unsigned int v, struct world_twist *t)
{
	const struct chaos_host *h = w->pair;

	if (!chaos_is(h->chaos, h->chaos->breakage))
		return;
	if (h->chaos->breakage == CHAOS_WRONG_KEY && t->want->n_pkeys)
		t->want->pkeys[0] = t->want->pkeys[0] == 0x8001 ? 0x8002 : 0x8001;
	if (h->chaos->breakage == CHAOS_NO_ADDRESS && t->moves)
		*t->has_guest = false;
	if (h->chaos->breakage == CHAOS_STAYS_BARE && t->moves)
		*t->want = (struct vhca_identity){.guid = VHCA_GUID_ALL1};
	t->effect = instead(h->chaos, &w->vfs[v], t);
	if (h->chaos->breakage == CHAOS_KEEPS_CLAIMS)
		memstore_skip("DELETE FROM claims");
}

/* ---- the journal ---- */

bool chaos_loses(const struct chaos *c, const char *label)
{
	static const struct {
		enum chaos_breakage breakage;
		const char *label;
	} lost[] = {
		{CHAOS_NO_INTENT_TO_LEAVE, "source: detaching"},
		{CHAOS_LOST_VF_COMMIT, "VF: scrubbing"},
		{CHAOS_LOST_COMMIT, "source: copying"},
		{CHAOS_LOST_END, "source: done"},
		{CHAOS_LOST_FREE, "VF: free"},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(lost); i++)
		if (chaos_is(c, lost[i].breakage) && !strcmp(label, lost[i].label))
			return true;
	return false;
}

/* ---- reports, and the SM's answers ---- */

static void change_key(struct json_object *body)
{
	struct json_object *keys = json_object_object_get(body, "pkeys");
	const char *key = keys && json_object_array_length(keys)
				  ? json_object_get_string(json_object_array_get_idx(keys, 0))
				  : NULL;

	if (key)
		json_object_array_put_idx(
			keys, 0,
			json_object_new_string(!strcmp(key, "0x8001") ? "0x8002" : "0x8001"));
}

static void change_vport(struct json_object *body)
{
	struct json_object *to = json_object_object_get(body, "to");
	struct json_object *vport = to ? json_object_object_get(to, "vport") : NULL;

	if (vport)
		json_object_object_add(to, "vport",
				       json_object_new_int64(json_object_get_int64(vport) + 1));
}

void chaos_misreport(const struct chaos *c, struct json_object *body, char *path)
{
	char *keep = strstr(path, "&keep_lid=yes");

	if (keep && chaos_is(c, CHAOS_FREES_LID))
		*keep = '\0';
	if (body && chaos_is(c, CHAOS_WRONG_REPORT))
		change_key(body);
	if (body && chaos_is(c, CHAOS_WRONG_VPORT))
		change_vport(body);
	if (body && chaos_is(c, CHAOS_NO_LID))
		json_object_object_del(body, "lid_policy");
}

/* As it says of a request that is wrong for ever. */
static struct json_object *bad_request(void)
{
	struct vhca_error err = VHCA_ERROR_INIT;

	(void)vhca_error_set(&err, VHCA_ERR_INVALID, VHCA_CODE_BAD_REQUEST, 0, "misheard");
	return vhca_json_problem(&err);
}

/* What reports of all kinds have in their yes. */
static struct json_object *yes(void)
{
	struct json_object *doc = json_object_new_object();

	vhca_json_add_string(doc, "vguid", "");
	vhca_json_add_string(doc, "port_guid", "");
	vhca_json_add_string(doc, "state", "committed");
	return doc;
}

void chaos_mishear(const struct chaos *c, int *status, struct json_object **body)
{
	bool denied = *status == 401 || *status == 403;
	struct json_object *heard = NULL;

	if (denied && chaos_is(c, CHAOS_DENIED_IS_NO))
		heard = bad_request();
	else if (*status == 421 && chaos_is(c, CHAOS_STANDBY_IS_YES))
		heard = yes();
	if (!heard)
		return;
	json_object_put(*body);
	*body = heard;
	*status = denied ? 400 : 200;
}

/* ---- the product ---- */

void __real_engine_save_and_report(struct vhca_engine *e, struct vhca_vf *vf);
void __wrap_engine_save_and_report(struct vhca_engine *e, struct vhca_vf *vf);
void __wrap_engine_save_and_report(struct vhca_engine *e, struct vhca_vf *vf)
{
	struct chaos *c = chaos_of_loop(e->args.loop);
	const struct vhca_osm_binding *sm =
		vf->claim ? sim_sm_find(chaos_master(c), vf->claim->identity.guid) : NULL;

	if (chaos_is(c, CHAOS_OLD_GENERATION) && sm && vf->claim->epoch >> 32 > sm->epoch >> 32)
		vf->claim->epoch = sm->epoch + 1;
	__real_engine_save_and_report(e, vf);
}

bool __real_engine_takes_over(struct vhca_engine *e, const struct vhca_claim *claim);
bool __wrap_engine_takes_over(struct vhca_engine *e, const struct vhca_claim *claim);
bool __wrap_engine_takes_over(struct vhca_engine *e, const struct vhca_claim *claim)
{
	return chaos_is(chaos_of_loop(e->args.loop), CHAOS_UNASKED) ||
	       __real_engine_takes_over(e, claim);
}

bool __real_mig_all(const struct vhca_mig *m, bool (*is)(const struct vhca_claim *c));
bool __wrap_mig_all(const struct vhca_mig *m, bool (*is)(const struct vhca_claim *c));
bool __wrap_mig_all(const struct vhca_mig *m, bool (*is)(const struct vhca_claim *c))
{
	return (m->state == VHCA_MIG_RESTORING &&
		chaos_is(chaos_of_loop(m->owner->args.loop), CHAOS_FAILS_EARLY)) ||
	       __real_mig_all(m, is);
}

void __real_vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
					const struct vhca_mig_result *res);
void __wrap_vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
					const struct vhca_mig_result *res);
void __wrap_vhca_migrations_effect_done(struct vhca_mig *m, enum vhca_mig_effect effect,
					const struct vhca_mig_result *res)
{
	static const struct vhca_mig_result yes;

	if (effect == VHCA_MIG_EFFECT_ABORT && res->rc < 0 &&
	    chaos_is(chaos_of_loop(m->owner->args.loop), CHAOS_SILENCE_IS_YES))
		res = &yes;
	__real_vhca_migrations_effect_done(m, effect, res);
}
