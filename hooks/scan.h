/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_HOOKS_SCAN_H
#define VHCA_HOOKS_SCAN_H
/*
 * A streaming scanner for libvirt's domain XML: one pass, no allocation, memory bounded by this
 * struct, so that the hook needs no XML library and the size of its input does not matter. What a
 * library would cost stands in docs/design/0014-authority.md.
 *
 * It finds four facts and knows just enough of XML not to be fooled: comments, CDATA, processing
 * instructions and a DOCTYPE are skipped; entities are never expanded (a value that contains one
 * does not count); namespace prefixes are resolved, because libvirt keeps those that the user
 * chose.
 *
 * What it does not do is validate. Where the text cannot be XML (an unquoted value, a wrong end
 * tag, nesting over 256, which libxml2 refuses as well) it stops, and what was found up to there
 * stands.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/hook_message.h"
#include "common/base/text.h"

#define VHCA_SCAN_NS	    "urn:vhcad:domain:1"
#define VHCA_SCAN_NS_AWAY   "urn:vhcad:away:1"
#define VHCA_SCAN_DEPTH_MAX 256 /* libxml2's own limit without XML_PARSE_HUGE */
#define VHCA_SCAN_PREFIXES_MAX \
	16 /* declarations of our namespaces, or hiding one, in force at a time */
#define VHCA_SCAN_TEXT_MAX 64 /* longest name or value that matters, with NUL */

/* A piece of text that is kept while it fits. */
struct vhca_scan_text {
	char buf[VHCA_SCAN_TEXT_MAX];
	size_t len;
	bool opaque; /* too long, or not plain text: equals nothing */
};

/* What a namespace prefix means, from the element at `depth` down. */
struct vhca_scan_prefix {
	uint64_t hash; /* of the prefix, "" for the default namespace; prefixes have no maximum
			  length */
	unsigned int depth;
	uint8_t ns; /* which of ours, see scan.c */
};

struct vhca_scan_element {
	uint64_t hash; /* of the qualified name: the end tag must match */
	uint8_t kind;  /* what it is to us, see scan.c */
};

struct vhca_scan {
	/* ---- results, valid at any time ---- */
	bool has_uuid;
	struct vhca_uuid uuid; /* /domain/uuid */
	bool has_request;      /* an element in VHCA_SCAN_NS stands under /domain/metadata */
	bool has_away;	       /* <away> in VHCA_SCAN_NS_AWAY: the marker of a migration */
	struct vhca_uuid away; /* the first one's migration="UUID"; all zero if that is none */
	unsigned int n_hostdevs;
	struct vhca_bdf hostdevs[VHCA_HOOK_HOSTDEVS_MAX]; /* host addresses of PCI host devices */
	bool overflow;					  /* there are more than that */

	/* ---- the scanner's own ---- */
	uint8_t state, back; /* of the tokenizer; where a skipped construct leads back to */
	uint8_t matched;     /* bytes of a closing delimiter seen */
	char quote;	     /* that ends the value being read */
	unsigned int nest;   /* open '<' in a DOCTYPE */
	unsigned int depth;  /* open elements */
	unsigned int n_prefixes;
	unsigned int metadata_depth;   /* of /domain/metadata while in it, else 0 */
	struct vhca_scan_text word;    /* local name of an element, or name of an attribute */
	struct vhca_scan_text value;   /* of an attribute */
	struct vhca_scan_text content; /* of /domain/uuid */
	bool has_colon;		       /* in the name being read */
	uint64_t hash;	 /* of the whole name (element), or of what follows the colon (attribute) */
	uint64_t prefix; /* hash of the open tag's prefix */
	bool may_be_marker;	    /* the open tag, by its place and name */
	struct vhca_uuid migration; /* attribute of the open tag, else all zero */
	const char *wanted_type;    /* type attribute that the open tag's kind needs; NULL = none */
	bool type_matches;	    /* the open tag has it */
	bool address_bad;
	uint32_t address[4]; /* domain, bus, slot, function of the open tag */
	struct vhca_scan_element elements[VHCA_SCAN_DEPTH_MAX];
	struct vhca_scan_prefix prefixes[VHCA_SCAN_PREFIXES_MAX];
};

/* Starts a document. */
void vhca_scan_init(struct vhca_scan *scan);

/* Takes the next piece of the document; pieces may be cut anywhere. Returns false when it needs no
 * more (root closed or broken). */
bool vhca_scan_feed(struct vhca_scan *scan, const char *data, size_t len);

/* True if the document was scanned to the end of its root element and nothing was left out. */
bool vhca_scan_is_complete(const struct vhca_scan *scan);

#endif
