/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_AGENT_LIBVIRT_DOMXML_H
#define VHCA_AGENT_LIBVIRT_DOMXML_H
/*
 * Domain XML, with libxml2 (entities, network and DTD loading off; at most VHCA_XML_MAX bytes):
 * what a domain asks for, and which PCI host devices it has.
 */
#include "agent/state/domain_info.h"

#define VHCA_XML_MAX	   (8u * 1024 * 1024) /* libvirtd hands out 4 MiB at most */
#define VHCA_DOM_DISKS_MAX 512		      /* disks that are looked at before a copy */

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

#define VHCA_HOSTDEV_XML_MAX 512
/* <hostdev managed='no'> for hot-plug, into buf. guest may be NULL (libvirt chooses the port).
 * -EINVAL for a bad name, -ENOBUFS when buf is too small. */
int vhca_domxml_hostdev(char *buf, size_t size, struct vhca_bdf host, const char *vf_name,
			const struct vhca_bdf *guest);

#endif
