/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_STATE_DOMAIN_INFO_H
#define VHCA_AGENT_STATE_DOMAIN_INFO_H
/*
 * What is known of a live domain: what its metadata asks for, which PCI host devices it has, its
 * memory and CPUs. libvirt's XML is read into it by agent/libvirt/domxml.h.
 */
#include "agent/state/guest_memory.h"
#include "common/base/cpus.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "pkey/identity.h"

#define VHCA_DOM_VFS_MAX  16   /* <vhca:vf> elements of one domain */
#define VHCA_DOM_DEVS_MAX 2048 /* PCI host devices of one domain: 8 to a bus */
#define VHCA_DOM_HOPS_MAX 8    /* bridges on the way to a device, and the device */
#define VHCA_DOMAIN_NS	  "urn:vhcad:domain:1"
#define VHCA_AWAY_NS	  "urn:vhcad:away:1"
#define VHCA_ALIAS_PREFIX "ua-vhca-"

/* One <vhca:vf>. */
struct vhca_vf_request {
	char name[VHCA_NAME_MAX];
	char fabric[VHCA_NAME_MAX]; /* "default" if absent */
	char partition
		[1024]; /* as written: numbers and names, blank-separated; resolved against the
				configuration later */
	uint64_t guid;	/* 0 = auto */
	bool has_pf;
	struct vhca_bdf pf; /* only on this PF */
	int numa;	    /* -1 = any */
};

/* The way from the guest's bus 0 to a device: slot and function on each bus. Bus numbers of libvirt
 * are its own; this is what the guest sees, too. */
struct vhca_dom_path {
	uint8_t n; /* 0 = unknown */
	struct vhca_dom_hop {
		uint8_t dev, fn;
	} hops[VHCA_DOM_HOPS_MAX];
};

/* One PCI host device of the live XML. */
struct vhca_dom_hostdev {
	struct vhca_bdf host;
	char alias[80]; /* "" if none, or longer than any of ours */
	bool has_guest_addr;
	struct vhca_bdf guest;
	struct vhca_dom_path path;
	bool failover; /* <teaming type='transient'>: QEMU itself takes it out for a migration */
};

/* detach_escalation of <vhca:infiniband>; without it the configuration's holds. */
enum vhca_dom_escalation {
	VHCA_DOM_ESCALATION_UNSAID,
	VHCA_DOM_ESCALATION_NONE,
	VHCA_DOM_ESCALATION_GUEST_AGENT,
};

struct vhca_dom_info {
	struct vhca_uuid uuid;
	char name[128]; /* a label: longer names are cut */
	int id;		/* libvirt's number of this run of the domain; -1 = not active */
	/* kind NONE: read; else why its XML could not be, and only uuid, name, id and held count */
	struct vhca_error unreadable;
	struct vhca_guest_memory memory;
	struct vhca_cpus cpus; /* of the host, that its vCPUs are pinned to; none = not all are */
	/* kind NONE: every <vhca:vf> is good; else what is wrong, and there are no requests */
	struct vhca_error request_error;
	enum vhca_dom_escalation escalation;
	unsigned int n_requests, n_hostdevs;
	struct vhca_vf_request requests[VHCA_DOM_VFS_MAX];
	struct vhca_dom_hostdev *hostdevs; /* in one allocation with this struct */
	bool has_far_hostdev; /* one beyond PCI domain 0xffff: none of ours, not in the list */
	/* <vhca:away migration="ID"> of VHCA_AWAY_NS stands in the metadata: its VFs were taken
	 * out for that migration. An ID that is no UUID reads as zero, which is no migration's:
	 * a marker is never overlooked. */
	bool has_away;
	struct vhca_uuid away;
	bool away_autostart; /* ...and libvirt started it with the host that it comes from */
	/* Not of the XML: libvirt holds it for a migration; its guest does not run here yet, or
	 * nobody knows whether it does. */
	bool held;
	bool paused;		      /* likewise: it runs again when somebody resumes it */
	unsigned int root_ports;      /* pcie-root-port controllers */
	unsigned int free_root_ports; /* hot-pluggable ones without a device behind them */
};

/* All zero, with room for so many host devices; caller frees it. NULL: out of memory. */
struct vhca_dom_info *vhca_dom_info_new(unsigned int n_hostdevs);

/* Of a domain that runs and whose XML cannot be read. Caller frees it with free(). NULL: out of
 * memory. */
struct vhca_dom_info *vhca_dom_info_unreadable(const struct vhca_uuid *uuid, const char *name,
					       const struct vhca_error *why);

/* With a copy of the host devices; to be freed with free(). NULL: out of memory. */
struct vhca_dom_info *vhca_dom_info_dup(const struct vhca_dom_info *info);
/* What the domain asks for by this name; NULL = nothing. Borrowed. */
const struct vhca_vf_request *vhca_dom_request(const struct vhca_dom_info *info, const char *name);

#endif
