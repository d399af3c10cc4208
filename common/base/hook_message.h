/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_HOOK_MESSAGE_H
#define VHCA_BASE_HOOK_MESSAGE_H
/*
 * The messages between vhca-qemu-hook and the agent on hook.sock (SOCK_STREAM). One request and one
 * reply per connection, each a frame: a 32-bit big-endian length, then that many bytes of text
 * lines "key value\n".
 *
 * Request: "version 1" first, then op, subop, extra, name, uuid (absent when the XML had none),
 * request 0|1, away UUID (only with the marker of a migration), incomplete 1 (only if so) and a
 * "hostdev 0000:01:00.2" line per PCI host device.
 * Reply: "pass\n" or "refuse REASON\n".
 *
 * Parsers accept nothing twice (except hostdev) and skip keys they do not know: what changes the
 * meaning of a known key gets a new version. Values are single-line: encoders replace control
 * characters by '?'.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/text.h"

#define VHCA_HOOK_VERSION      1
#define VHCA_HOOK_HEAD_LEN     4	    /* the length in front */
#define VHCA_HOOK_PAYLOAD_MAX  (16u * 1024) /* what it may say */
#define VHCA_HOOK_FRAME_MAX    (VHCA_HOOK_HEAD_LEN + VHCA_HOOK_PAYLOAD_MAX)
#define VHCA_HOOK_HOSTDEVS_MAX 64
#define VHCA_HOOK_WORD_MAX     32   /* op, subop, extra, with NUL */
#define VHCA_HOOK_NAME_MAX     256  /* domain name, with NUL */
#define VHCA_HOOK_REASON_MAX   1024 /* with NUL */

struct vhca_hook_request {
	char op[VHCA_HOOK_WORD_MAX];	/* "prepare", "start", ... as libvirt spells it */
	char subop[VHCA_HOOK_WORD_MAX]; /* "begin", "end" */
	char extra[VHCA_HOOK_WORD_MAX]; /* "-", or the shutoff reason (libvirt >= 10.5, release) */
	char name[VHCA_HOOK_NAME_MAX];
	bool has_uuid;
	struct vhca_uuid uuid;
	bool has_request; /* the metadata has an element in our namespace */
	bool has_away;	  /* the metadata has the marker of a migration: its VFs were taken out */
	struct vhca_uuid away; /* which one; all zero when the marker names none */
	bool incomplete; /* the XML was not scanned to its end, or has more host devices than fit
			     here */
	unsigned int n_hostdevs;
	struct vhca_bdf hostdevs[VHCA_HOOK_HOSTDEVS_MAX];
};

struct vhca_hook_reply {
	bool pass;
	char reason[VHCA_HOOK_REASON_MAX]; /* why not: one sentence for people, with the way out; ""
					      if pass */
};

/* Length of the payload that follows a head; -EMSGSIZE for 0 or more than VHCA_HOOK_PAYLOAD_MAX. */
int vhca_hook_payload_len(const uint8_t head[VHCA_HOOK_HEAD_LEN], size_t *ret_len);

/* Write a whole frame (head and payload) into frame; -EMSGSIZE when it does not fit
 * (VHCA_HOOK_FRAME_MAX always suffices). */
int vhca_hook_request_encode(const struct vhca_hook_request *req, uint8_t *frame, size_t size,
			     size_t *ret_len);
int vhca_hook_reply_encode(const struct vhca_hook_reply *reply, uint8_t *frame, size_t size,
			   size_t *ret_len);

/* Parse a payload (without head, not NUL-terminated). -EPROTONOSUPPORT for another version,
 * -EBADMSG for anything malformed. */
int vhca_hook_request_parse(const uint8_t *payload, size_t len, struct vhca_hook_request *ret);
int vhca_hook_reply_parse(const uint8_t *payload, size_t len, struct vhca_hook_reply *ret);

#endif
