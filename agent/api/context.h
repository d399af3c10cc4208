/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_API_CONTEXT_H
#define VHCA_AGENT_API_CONTEXT_H
/* What a handler of the HTTP API gets as its ctx, and how it finds what a path names. */
#include "agent/api/configuration.h"
#include "agent/api/events.h"
#include "agent/api/pending.h"
#include "agent/explain/explain.h"
#include "agent/host/host.h"
#include "agent/libvirt/virt.h"
#include "agent/migration/drain.h"
#include "agent/migration/migration.h"
#include "agent/state/repeats.h"
#include "agent/vf/engine.h"

struct vhca_api_args {
	struct vhca_loop *loop;
	struct vhca_engine *engine;
	struct vhca_host *host;
	struct vhca_virt *virt; /* NULL in tests without libvirt */
	struct vhca_outbox *outbox;
	struct vhca_migrations *migrations;
	struct vhca_drain *drain;
	struct vhca_events *events;
	struct vhca_reload *reload;
	/* Has the engine know what libvirt says of that domain now, then calls fn (known: it has
	 * said it): perhaps from inside. NULL in tests without libvirt. */
	void (*look)(void *ctx, const struct vhca_uuid *domain, void (*fn)(void *arg, bool known),
		     void *arg);
	void *look_ctx;
	const struct vhca_sm_ops *sm;
	const struct vhca_conf *conf;
	struct vhca_store *store;
	struct vhca_repeats *repeats;
	const char *boot_id;
	const struct vhca_http_auth *auth; /* who may ask at [api] listen; NULL = plain HTTP */
};

/* Of one door. */
struct api_context {
	struct vhca_api_args args;
	uint64_t started_ms;
	struct vhca_http_loop_server *adapter;
	struct api_polls *polls;
	const struct vhca_http_answers *answers; /* of all doors */
};

/* Each ctx is a struct api_context. */
const struct vhca_api_args *api_args(const void *ctx); /* borrowed */
struct vhca_model *api_model(const void *ctx);	       /* the engine's */

/* What a walk looks at; hca, whose jobs it is to name, may be NULL. */
struct vhca_explain api_look_from(const struct vhca_api_args *a, const struct vhca_hca *hca);

/* For a reply that is given later than in its handler. NULL: req has been answered. */
struct api_pending *api_pend(void *ctx, struct vhca_http_request *req);
/*
 * One of each request with an Idempotency-Key: false where it has been answered, as before or
 * refused. The others are answered when that is durable.
 */
bool api_admit(void *ctx, struct vhca_http_request *req);
/* The id for what such a request makes; NULL: it has no key. */
const struct vhca_uuid *api_object_id(const struct vhca_http_request *req);
/* Refuses a request which an earlier life has begun, and what it made (exists) has ended since. */
int api_check_repeat(const struct vhca_http_request *req, bool exists, struct vhca_error *err);
/* 200 with {key: list}, of each entry what "fields" asks for; list is consumed. */
void api_reply_list(struct vhca_http_request *req, const char *key, struct json_object *list);

/* A part of a list, as a query wants it by "limit" (without it, the usual one) and "after". */
#define API_PAGE_MAX 1000
struct api_page {
	uint32_t limit;
	const char *after; /* NULL: that entry has been passed */
	uint32_t n;
	bool is_cut; /* something that is wanted is behind it */
	char last[VHCA_UUID_STRLEN];
};
int api_read_page(const struct vhca_http_request *req, uint32_t usual, struct api_page *ret,
		  struct vhca_error *err);
/*
 * Of each entry in turn, by the key that an "after" names it by, whether it is wanted (by a filter)
 * or not: is it on this page?
 */
bool api_page_takes(struct api_page *page, const char *key, bool wanted);
/*
 * 200 with {key: list, "next": ...}, of each entry what "fields" asks for, or 410 if the one that
 * the page is behind has gone. list is consumed.
 */
void api_reply_page(struct vhca_http_request *req, const char *key, struct json_object *list,
		    const struct api_page *page);

/* By its address; borrowed. NULL with err set if there is none. */
struct vhca_hca *api_find_hca(const void *ctx, const char *text, struct vhca_error *err);
const struct vhca_vf *api_find_vf(const void *ctx, const char *text, struct vhca_error *err);
/* The claim of the cloud's port that the path names (claims.c); NULL with err set if there is
 * none. */
struct vhca_claim *api_find_port(const void *ctx, const struct vhca_http_request *req,
				 struct vhca_error *err);
/* A waiter: answers the struct api_pending with that claim, found by its guid, and the device. */
void api_on_port(void *pending, const struct vhca_claim *claim, const struct vhca_error *err);
/* A domain by UUID, or by the name of an active one: fills domain and domain_name. */
int api_find_domain(const void *ctx, const char *text, struct vhca_claim_request *ret,
		    struct vhca_error *err);
/* A partition by its name, or by either of its P_Keys. */
int api_find_pkey(const void *ctx, const char *text, uint16_t *ret, struct vhca_error *err);
int api_no_partition(const char *text, struct vhca_error *err);

/* Which VFs and claims a query wants: its "domain", "pf", "fabric", "numa" and "partition". */
struct api_filter {
	bool is_of_domain; /* false: of any, or of none */
	struct vhca_uuid domain;
	const struct vhca_hca *hca; /* NULL: of any */
	const char *fabric;	    /* NULL: on any */
	int numa;		    /* -1: of any */
	uint16_t pkey;		    /* 0: in any partition, or in none */
};
int api_read_filter(const void *ctx, const struct vhca_http_request *req, struct api_filter *ret,
		    struct vhca_error *err);
/* The VF of a claim, or one with a claim or NULL; its fabric as the list shows it. */
bool api_filter_takes(const struct api_filter *f, const char *fabric, const struct vhca_vf *vf,
		      const struct vhca_claim *claim);

#endif
