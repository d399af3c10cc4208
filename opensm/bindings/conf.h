/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_CONF_H
#define VHCA_OPENSM_BINDINGS_CONF_H
/*
 * vhcasm.conf: INI; an unknown key or a wrong value refuses the plugin. The shipped
 * opensm/vhcasm.conf documents every key and equals the defaults (tested). Some keys are read again
 * when the file changes (vhca_osm_conf_read_again()); for all else OpenSM has to be restarted.
 */
#include <sys/types.h>

#include "common/base/error.h"
#include "opensm/bindings/agents.h"
#include "opensm/bindings/partitions.h"

#define VHCA_OSM_DYNAMIC_MAX 32768 /* vGUIDs with a LID of their own */

struct vhca_osm_conf {
	char listen[256];	   /* [http] listen [unix:/run/opensm/vhcasm.sock] */
	mode_t socket_mode;	   /* [http] socket_mode [0660] */
	char tls_certificate[256]; /* [http] tls_certificate [""] */
	char tls_key[256];	   /* [http] tls_key [""] */
	char tls_ca[256];	   /* [http] tls_ca [""] */
	char tls_crl[256];	   /* [http] tls_crl [""] */
	char token_file[256];	   /* [http] token_file [""] */
	bool insecure;		   /* [http] insecure [no] */
	char roles[2048];	   /* [http] roles [""]: WHO:ROLE, blank-separated */
	char state_dir[200];	   /* [state] dir [/var/lib/vhcasm] */
	/*
	 * [partitions] base_file [""]: "" = OpenSM's own partition_config_file if it exists, else
	 * the built-in rule
	 */
	char base_file[256];
	uint32_t inherit_s;	       /* [partitions] inherit [600]: seconds, 0 = off */
	bool lids_move;		       /* [lids] enable [no]; the other two need it */
	bool drain;		       /* [lids] drain [no] */
	uint32_t dynamic;	       /* [lids] dynamic [0]: so many at most */
	uint32_t keep_s;	       /* [lids] keep [600]: seconds, 0 = for good */
	struct vhca_osm_policy policy; /* [partitions] allowed, default_members, ipoib */
	struct vhca_osm_agents agents; /* [agents] */
	bool tickets;		       /* [tickets] required [no]: needs [agents] */
	uint32_t settle_s;	       /* [tickets] settle [120]: seconds */
};

/* What an empty file means. */
void vhca_osm_conf_set_defaults(struct vhca_osm_conf *conf);
/* Defaults, then the file (which must exist). Errors: "file:line: key: reason", code
 * "bad_config". The caller calls vhca_osm_conf_done(). */
int vhca_osm_conf_load(const char *path, struct vhca_osm_conf *ret, struct vhca_error *err);
/* The i-th key that is read again, in the order of the file; NULL after the last one. */
const char *vhca_osm_conf_read_again(size_t i);
void vhca_osm_conf_done(struct vhca_osm_conf *conf);

#endif
