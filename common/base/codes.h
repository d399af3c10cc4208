/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_CODES_H
#define VHCA_BASE_CODES_H
/*
 * The codes of errors that code looks at, its own or those of another process: these are API. All
 * others are written where they arise, for people and their programs.
 */

/* The HTTP server's own. */
#define VHCA_CODE_BAD_REQUEST	     "bad_request"
#define VHCA_CODE_BODY_TOO_LARGE     "body_too_large"
#define VHCA_CODE_METHOD_NOT_ALLOWED "method_not_allowed"
#define VHCA_CODE_NO_SUCH_PATH	     "no_such_path"
#define VHCA_CODE_ROLE_NEEDED	     "role_needed"
#define VHCA_CODE_UNAUTHORIZED	     "unauthorized"

/* The agent's. */
#define VHCA_CODE_CURSOR_GONE	       "cursor_gone"
#define VHCA_CODE_GUEST_ADDRESS_IN_USE "guest_address_in_use"
#define VHCA_CODE_GUEST_BUSY	       "guest_busy"
#define VHCA_CODE_HARD_LIMIT	       "hard_limit"
#define VHCA_CODE_JOB_HELD	       "job_held"
#define VHCA_CODE_KEY_IN_USE	       "key_in_use"
#define VHCA_CODE_KEY_REUSED	       "key_reused"
#define VHCA_CODE_LIBVIRT	       "libvirt"
#define VHCA_CODE_NO_ROOT_PORT	       "no_root_port"
#define VHCA_CODE_PRECONDITION_FAILED  "precondition_failed"
#define VHCA_CODE_TOO_LATE	       "too_late"

/* The plugin's in OpenSM, which the agent reads; superseded is the agent's to its peers, too. */
#define VHCA_CODE_BAD_TICKET	    "bad_ticket"
#define VHCA_CODE_BOTH_MEMBERSHIPS  "both_memberships"
#define VHCA_CODE_CHANGED_MEANWHILE "changed_meanwhile"
#define VHCA_CODE_EPOCH_TIE	    "epoch_tie"
#define VHCA_CODE_GUID_IS_A_PORT    "guid_is_a_port"
#define VHCA_CODE_KEYS_ON_THE_WAY   "keys_on_the_way"
#define VHCA_CODE_NOT_MASTER	    "not_master"
#define VHCA_CODE_NOT_THE_OWNER	    "not_the_owner"
#define VHCA_CODE_NOT_YOUR_PORT	    "not_your_port"
#define VHCA_CODE_OWNER_DISPUTED    "owner_disputed"
#define VHCA_CODE_OWNER_UNKNOWN	    "owner_unknown"
#define VHCA_CODE_REBUILDING	    "rebuilding"
#define VHCA_CODE_SUPERSEDED	    "superseded"
#define VHCA_CODE_TABLE_FULL	    "table_full"
#define VHCA_CODE_TICKET_NOT_VALID  "ticket_not_valid"
#define VHCA_CODE_UNKNOWN_PARTITION "unknown_partition"
#define VHCA_CODE_UNKNOWN_PORT	    "unknown_port"

#endif
