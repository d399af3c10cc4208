/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CONF_CONF_H
#define VHCA_CONF_CONF_H
/*
 * Typed configuration: /etc/vhcad/vhcad.conf, then vhcad.conf.d/ *.conf in strcmp order; a later
 * value wins, sections merge. [hca ...], [partition ...] and [peer ...] may stand once a file. An
 * unknown section or key is an error that names the nearest known one; a wrong value is an error:
 * the daemon does not start, and a reload keeps the old configuration. The shipped file
 * conf/vhcad.conf documents every key and equals the defaults (tested). Times carry a unit: 500ms,
 * 5s, 2min, 1h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/caller.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/text.h"

#define VHCA_CONF_PARTITIONS_MAX 128
#define VHCA_CONF_HCAS_MAX	 32
#define VHCA_CONF_URLS_MAX	 8
#define VHCA_CONF_PEERS_MAX	 256
#define VHCA_CONF_EXCLUDE_MAX	 64	    /* of one section; a line holds not many more */
#define VHCA_CONF_RESERVE_MAX	 64	    /* likewise */
#define VHCA_CONF_VFS_KEEP	 UINT16_MAX /* manage the VFs that exist, whatever their number */

struct vhca_conf_partition { /* [partition NAME] */
	char name[VHCA_NAME_MAX];
	uint16_t pkey; /* pkey = 0x8001, membership bit included */
};

struct vhca_conf_hca { /* [hca 0000:03:00.0], or [hca default] for every ConnectX PF not named */
	bool is_default;
	struct vhca_bdf bdf;
	bool manage;		    /* manage = yes|no [no]: no leaves the PF and its VFs alone */
	uint16_t vfs;		    /* vfs = N | keep [keep] */
	char fabric[VHCA_NAME_MAX]; /* fabric = NAME [default] */
	uint8_t port; /* port = 1|2 [1]: the physical port that gets the VFs' identities */
	unsigned int n_exclude; /* exclude [""]: blank-separated addresses of VFs to leave alone */
	struct vhca_bdf exclude[VHCA_CONF_EXCLUDE_MAX];
	unsigned int n_reserve; /* reserve [""]: likewise, for claims by address only */
	struct vhca_bdf reserve[VHCA_CONF_RESERVE_MAX];
};

struct vhca_conf_peer { /* [peer NAME]: another hypervisor; this host's own section is harmless */
	char name[VHCA_NAME_MAX];
	char agent[256]; /* agent = http[s]://HOST:PORT, the other's [api] peer_listen; required */
	char libvirt[256];   /* libvirt = URI that this host's libvirtd reaches it by; required */
	char migration[256]; /* migration = URI of the memory's way [""]: libvirt chooses */
	/* certificate = cert:NAME [cert: and the HOST of agent]: whom its certificate names */
	char certificate[VHCA_CALLER_NAME_MAX];
	bool insecure; /* insecure = yes|no [no]: agent may be plain HTTP to another host */
};

/* How libvirt copies a guest that migrates. [migration] says it for all, a request for one. */
struct vhca_conf_copy {
	uint32_t timeout_ms; /* copy_timeout [0s]: then the copy is aborted; 0 = no limit */
	/* copy_expected_max [0s]: no copy is begun that is expected to take longer; 0 = no limit */
	uint32_t expected_max_ms;
	unsigned int bandwidth_mib; /* bandwidth [0]: MiB/s at most; 0 = libvirt's own limit */
	unsigned int connections;   /* connections [0]: parallel ones; 0 = libvirt's single one */
	bool auto_converge;	    /* auto_converge [no]: slow down a guest that writes too fast */
	bool tls;		    /* tls [no]: the memory goes by TLS, with QEMU's certificates */
};
#define VHCA_COPY_TIMEOUT_MIN_MS  10000u
#define VHCA_COPY_TIMEOUT_MAX_MS  (24u * 3600 * 1000)
#define VHCA_COPY_BANDWIDTH_MAX	  1000000
#define VHCA_COPY_CONNECTIONS_MAX 255 /* QEMU's multifd-channels */

enum vhca_conf_sm_pkeys { VHCA_SM_PKEYS_DYNAMIC, VHCA_SM_PKEYS_STATIC };
enum vhca_conf_lid_policy { VHCA_LID_HOST, VHCA_LID_VPORT, VHCA_LID_DYNAMIC, VHCA_LID_FOLLOW };
enum vhca_conf_sm_require { VHCA_SM_REQUIRE_NOTHING, VHCA_SM_REQUIRE_ATTACH };
/* What follows on unplug requests that a guest ignores. */
enum vhca_conf_escalation { VHCA_ESCALATION_NONE, VHCA_ESCALATION_GUEST_AGENT };
enum vhca_conf_index_policy { VHCA_INDEX_FORCE_OFF, VHCA_INDEX_ALARM };

struct vhca_conf {
	/* [agent] */
	char node_name[65];	       /* node_name ["" = host name] */
	char state_dir[108];	       /* state_dir [/var/lib/vhcad] */
	char run_dir[80];	       /* run_dir [/run/vhcad]: vhcad.sock, hook.sock, vfs */
	enum vhca_log_level log_level; /* log_level [info]; reloadable */

	/* [api] */
	char api_group[33]; /* group [""]: group of the unix socket, besides root */
	/* roles [""]: blank-separated USER:ROLE, @GROUP:ROLE, *:ROLE; else operate; reloadable */
	struct vhca_caller_rules api_roles;
	/*
	 * peer_listen [""]: numeric ADDRESS:PORT or [v6]:PORT where other agents ask; "" = nowhere
	 */
	char peer_listen[128];
	/* listen [""]: likewise, where drivers and monitoring ask, as at vhcad.sock */
	char api_listen[128];
	/* listen_roles [""]: blank-separated NAME:ROLE, *:ROLE of these; else none; reloadable */
	struct vhca_caller_rules api_listen_roles;
	char api_token_file[256]; /* token_file [""]: by whose tokens they are let in, too */
	bool api_insecure;	  /* insecure [no]: either may be plain HTTP beyond this host */

	/* [tls]: PEM files towards the SM and other agents; "" = none */
	/*
	 * certificate [""]: this host's own; with it peer_listen serves HTTPS only, and then ca is
	 * required
	 */
	char tls_certificate[256];
	char tls_key[256]; /* key [""] */
	/*
	 * ca [""]: whose certificates the SM and agents must show, "" = the system's; and who may
	 * ask at peer_listen
	 */
	char tls_ca[256];
	char tls_crl[256]; /* crl [""]: whom of these not, who has lost a key */

	/* [libvirt] */
	char libvirt_uri[256]; /* uri [qemu:///system] */
	/* detach_timeout [60s]: whole time for a guest to let go, with retries */
	uint32_t detach_timeout_ms;
	uint32_t detach_retry_ms; /* detach_retry [5s] */
	/* detach_escalation [none] : none | guest-agent; after half of detach_timeout */
	enum vhca_conf_escalation detach_escalation;

	/* [guid] */
	uint64_t guid_prefix;	       /* prefix [0x02c9ab0000000000] */
	unsigned int guid_prefix_bits; /* prefix_bits [24], 8..48 */

	/* [sm] */
	char sm_backend[16]; /* backend [none] : vhcasm | none */
	unsigned int n_sm_urls;
	char sm_urls[VHCA_CONF_URLS_MAX][256]; /* url, blank-separated; required for vhcasm */
	bool sm_insecure;		  /* insecure [no]: url may be plain HTTP to another host */
	char sm_token_file[256];	  /* token_file [""]: the first of its tokens is sent */
	enum vhca_conf_sm_pkeys sm_pkeys; /* pkeys [dynamic] : dynamic | static */
	enum vhca_conf_sm_require sm_require; /* require [nothing] : nothing | attach */
	enum vhca_conf_lid_policy lid_policy; /* lid_policy [host] */
	uint32_t sm_timeout_ms;		      /* timeout [5s] */
	/* pkey_timeout [20s]: from the SM's acceptance to the key in the port's table */
	uint32_t pkey_timeout_ms;
	uint32_t poll_ms; /* poll [5s]: slow poll of ports and grants */

	/* [migration] */
	/* lease [120s]: how long a VF stays reserved for a guest whose migration has not begun */
	uint32_t lease_ms;
	/*
	 * external_lease [300s]: how long a guest waits without its VFs for somebody who is to
	 * migrate or save it
	 */
	uint32_t external_lease_ms;
	struct vhca_conf_copy copy;

	/* [policy] */
	/* allow_default_partition [no]: a domain may ask for 0x7fff/0xffff; never given unasked */
	bool allow_default_partition;
	/* port_lease [1h]: a cloud's port waits so long for its domain; 0 = for ever */
	uint32_t port_lease_ms;
	/* pkey_index_changed [force-off] : force-off | alarm */
	enum vhca_conf_index_policy index_policy;

	unsigned int n_partitions;
	struct vhca_conf_partition partitions[VHCA_CONF_PARTITIONS_MAX];
	unsigned int n_hcas;
	struct vhca_conf_hca hcas[VHCA_CONF_HCAS_MAX];
	unsigned int n_peers;
	struct vhca_conf_peer peers[VHCA_CONF_PEERS_MAX];
};

/* The SM is said to give ports of virtual HCAs (mlx5) a LID of their own. */
static inline bool vhca_conf_shows_vports(const struct vhca_conf *conf)
{
	return conf->lid_policy == VHCA_LID_VPORT || conf->lid_policy == VHCA_LID_DYNAMIC;
}

/* The values in brackets above; node_name stays empty, loading fills it in. */
void vhca_conf_set_defaults(struct vhca_conf *conf);
/*
 * Loads path (must exist) and path + ".d/ *.conf". *ret is malloc'ed; caller frees with free().
 * Blocking: start-up and reload worker.
 */
int vhca_conf_load(const char *path, struct vhca_conf **ret, struct vhca_error *err);
/*
 * The same for one text in memory; name stands for the file in messages. No drop-in directory is
 * looked at.
 */
int vhca_conf_parse(const char *name, const char *text, size_t len, struct vhca_conf **ret,
		    struct vhca_error *err);

/*
 * The n-th key that a file may contain, with its section ("agent", "hca"); false after the last.
 * For tests of the documentation.
 */
bool vhca_conf_nth_key(unsigned int n, const char **ret_section, const char **ret_key);

/*
 * Parts of the agent are made with some keys, which a reload must not change: the first that
 * differs ("[sm] url"), or NULL.
 */
const char *vhca_conf_fixed_difference(const struct vhca_conf *a, const struct vhca_conf *b);

/* The section that rules a PF: its own, else [hca default], else NULL. */
const struct vhca_conf_hca *vhca_conf_hca(const struct vhca_conf *conf, struct vhca_bdf pf);

/* Does the section that rules the PF leave this VF out? */
bool vhca_conf_excludes(const struct vhca_conf *conf, struct vhca_bdf pf, struct vhca_bdf vf);
/* Does the section that rules the PF keep this VF for claims that name it? */
bool vhca_conf_reserves(const struct vhca_conf *conf, struct vhca_bdf pf, struct vhca_bdf vf);
/* port_lease for a claim, where 0 would be for ever. */
uint32_t vhca_conf_port_lease_s(const struct vhca_conf *conf);

/* The section [peer NAME], or NULL. */
const struct vhca_conf_peer *vhca_conf_peer(const struct vhca_conf *conf, const char *name);
/*
 * It is that of the node of this name. A host name may have a domain behind it, for which NAME has
 * no letters: it is the other's up to the first dot.
 */
bool vhca_conf_peer_is(const struct vhca_conf_peer *peer, const char *node);

/*
 * Resolves "0x8001 storage 0xffff" (numbers and names, blank-separated) into P_Keys in that order.
 * Unknown names, one partition twice (whatever the membership), more than max and, unless allowed,
 * the default partition are errors that name the word.
 */
int vhca_conf_resolve_pkeys(const struct vhca_conf *conf, const char *text, uint16_t *ret,
			    size_t max, size_t *ret_n, struct vhca_error *err);

#endif
