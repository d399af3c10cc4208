/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_DOMXML_H
#define VHCA_AGENT_DOMXML_H
/*
 * Domain XML, with libxml2 (entities, network and DTD loading off; at most VHCA_XML_MAX bytes):
 * what a domain asks for, and which PCI host devices it has.
 */
#include "agent/guest_memory.h"
#include "common/base/cpus.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "pkey/identity.h"

#define VHCA_XML_MAX	   (8u * 1024 * 1024) /* libvirtd hands out 4 MiB at most */
#define VHCA_DOM_VFS_MAX   16		      /* <vhca:vf> elements of one domain */
#define VHCA_DOM_DEVS_MAX  2048		      /* PCI host devices of one domain: 8 to a bus */
#define VHCA_DOM_DISKS_MAX 512		      /* disks that are looked at before a copy */
#define VHCA_DOM_HOPS_MAX  8		      /* bridges on the way to a device, and the device */
#define VHCA_DOMAIN_NS	   "urn:vhcad:domain:1"
#define VHCA_AWAY_NS	   "urn:vhcad:away:1"
#define VHCA_ALIAS_PREFIX  "ua-vhca-"

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

/*
 * Parses the XML of virDomainGetXMLDesc. Caller frees *ret with free().
 *
 * A bad <vhca:vf>, or attribute of <vhca:infiniband>, is an error that names element, attribute,
 * value and what is allowed. It goes to *ret_request_error (and to (*ret)->request_error) and the
 * call succeeds without any request: uuid, name and host devices are filled all the same, so that a
 * tenant's typing error cannot hide which VFs the domain holds. With ret_request_error NULL it
 * fails the call instead.
 *
 * Host devices are <hostdev type='pci'> and <interface type='hostdev'>. One that cannot be read, or
 * more than VHCA_DOM_DEVS_MAX, fails the call: "this address is in no live XML" is a proof that
 * others rely on. One whose PCI domain has more than 16 bits is left out: no VF of ours is there.
 */
int vhca_domxml_parse(const char *xml, size_t len, struct vhca_dom_info **ret,
		      struct vhca_error *ret_request_error, struct vhca_error *err);

struct vhca_dom_disk {
	char target[32]; /* "vda": its name in libvirt's calls */
	char file[1024]; /* on this host, and written to; "" = it is none */
};
struct vhca_dom_copy {
	unsigned int n_disks;
	struct vhca_dom_disk disks[];
};

/*
 * Of such XML, what a copy to another host has to do with. Caller frees *ret with free(). A domain
 * that libvirt copies nowhere because of what stands in its XML is an error: "not_migratable". Host
 * devices are not looked at.
 */
int vhca_domxml_copy(const char *xml, size_t len, struct vhca_dom_copy **ret,
		     struct vhca_error *err);

/* Of a domain that runs and whose XML cannot be read. Caller frees it with free(). NULL: out of
 * memory. */
struct vhca_dom_info *vhca_dom_info_unreadable(const struct vhca_uuid *uuid, const char *name,
					       const struct vhca_error *why);

/* With a copy of the host devices; to be freed with free(). NULL: out of memory. */
struct vhca_dom_info *vhca_dom_info_dup(const struct vhca_dom_info *info);

#define VHCA_HOSTDEV_XML_MAX 512
/* <hostdev managed='no'> for hot-plug, into buf. guest may be NULL (libvirt chooses the port).
 * -EINVAL for a bad name, -ENOBUFS when buf is too small. */
int vhca_domxml_hostdev(char *buf, size_t size, struct vhca_bdf host, const char *vf_name,
			const struct vhca_bdf *guest);

#endif
