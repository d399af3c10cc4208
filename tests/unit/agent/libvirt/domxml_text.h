/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_AGENT_LIBVIRT_DOMXML_TEXT_H
#define VHCA_TESTS_UNIT_AGENT_LIBVIRT_DOMXML_TEXT_H
/* Pieces of a domain's XML, and what agent/libvirt/domxml.h makes of a whole one. */
#include "agent/libvirt/domxml.h"

#define DOM_UUID "6b3e0f5c-1111-4222-8333-0123456789ab"
#define DOM_HEAD                                                              \
	"<domain type='kvm' id='7'><name>vm1</name><uuid>" DOM_UUID "</uuid>" \
	"<memory unit='KiB'>1048576</memory>"
#define DOM_META(inner)                                                     \
	"<metadata><vhca:infiniband xmlns:vhca='urn:vhcad:domain:1'>" inner \
	"</vhca:infiniband></metadata>"
#define DOM_ONE_VF(attrs) DOM_HEAD DOM_META("<vhca:vf " attrs "/>") "</domain>"

/* Of the last dom_parse(): of the domain, and of its metadata. */
extern struct vhca_error dom_err;
extern struct vhca_error dom_request_err;
/* Expects this result; NULL if it is an error. */
struct vhca_dom_info *dom_parse_len(const char *xml, size_t len, int want);
struct vhca_dom_info *dom_parse(const char *xml, int want);
/* In its message or its hint. */
void dom_assert_says(const struct vhca_error *e, const char *part);
/* The live XML of a q35 guest, shortened, as libvirt 9.0 writes it. */
extern const char dom_live_xml[];
/* n copies of `piece` (with one %u) between head and tail. */
char *dom_repeat(const char *head, unsigned int n, const char *before, const char *after,
		 const char *tail);

#endif
