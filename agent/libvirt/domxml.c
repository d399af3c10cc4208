/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/domxml.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libxml/parser.h>
#include <libxml/tree.h>

#include "agent/libvirt/domxml_parts.h"
#include "common/base/cleanup.h"

static void ctxt_freep(xmlParserCtxtPtr *p)
{
	if (*p)
		xmlFreeParserCtxt(*p);
}

static void doc_freep(xmlDocPtr *p)
{
	if (*p)
		xmlFreeDoc(*p);
}

static int bad_xml(struct vhca_error *err, const char *name, const char *what)
{
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "bad_domain_xml", 0, "domain %s: %s",
			     *name ? name : "XML", what);
	return -EINVAL;
}

/* ---- document ---- */

/* libvirt never writes a DOCTYPE, and all attacks with entities need one: stop before the first is
 * declared. */
static void refuse_doctype(void *ctx, const xmlChar *name, const xmlChar *external,
			   const xmlChar *system)
{
	(void)name;
	(void)external;
	(void)system;
	xmlStopParser(ctx);
}

static int read_document(const char *xml, size_t len, xmlDocPtr *ret, struct vhca_error *err)
{
	VHCA_CLEANUP(ctxt_freep) xmlParserCtxtPtr ctxt = NULL;
	VHCA_CLEANUP(doc_freep) xmlDocPtr doc = NULL;

	if (len == 0 || len > VHCA_XML_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_domain_xml", EFBIG,
				      "domain XML: %zu bytes, allowed are 1 to %u", len,
				      VHCA_XML_MAX);
	ctxt = xmlNewParserCtxt();
	if (!ctxt)
		return vhca_error_no_memory(err, "domain XML");
	ctxt->sax->internalSubset = refuse_doctype;
	doc = xmlCtxtReadMemory(ctxt, xml, (int)len, NULL, NULL,
				XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (ctxt->errNo == XML_ERR_USER_STOP)
		return bad_xml(err, "", "has a DOCTYPE");
	if (!doc) {
		const xmlError *why = xmlCtxtGetLastError(ctxt);
		const char *text = why && why->message ? why->message : "not well-formed";

		(void)vhca_error_set(err, VHCA_ERR_INVALID, "bad_domain_xml", 0,
				     "domain XML: line %d: %.*s", why ? why->line : 0,
				     (int)strcspn(text, "\n"), text);
		return -EINVAL;
	}
	*ret = vhca_steal_ptr(&doc);
	return 0;
}

/* *ret_root belongs to *ret, which the caller frees also after an error. */
static int read_domain(const char *xml, size_t len, xmlDocPtr *ret, const xmlNode **ret_root,
		       struct vhca_error *err)
{
	int r = read_document(xml, len, ret, err);

	if (r < 0)
		return r;
	*ret_root = xmlDocGetRootElement(*ret);
	if (!*ret_root || !domxml_is_element(*ret_root, "domain"))
		return bad_xml(err, "", "root element is not <domain>");
	return 0;
}

/* ---- uuid, name ---- */

static int read_head(const xmlNode *root, struct vhca_dom_info *info, struct vhca_error *err)
{
	const xmlNode *name_node = domxml_child_element(root, "name");
	const xmlNode *uuid_node = domxml_child_element(root, "uuid");
	DOMXML_AUTO_STRING name = name_node ? xmlNodeGetContent(name_node) : NULL;
	DOMXML_AUTO_STRING uuid = uuid_node ? xmlNodeGetContent(uuid_node) : NULL;
	uint32_t id;

	if (!name || !*name)
		return bad_xml(err, "", "no <name>");
	(void)snprintf(info->name, sizeof(info->name), "%s", (const char *)name);
	if (!uuid || vhca_uuid_parse((const char *)uuid, &info->uuid) < 0)
		return bad_xml(err, info->name, "<uuid> missing or malformed");
	info->id = domxml_attribute_u32(root, "id", INT_MAX, &id) == 0 ? (int)id : -1;
	return 0;
}

/* ---- PCI host devices ---- */

static bool is_pci_hostdev(const xmlNode *node)
{
	const xmlNode *address;

	if (domxml_is_element(node, "hostdev"))
		return domxml_attribute_is(node, "mode", "subsystem") &&
		       domxml_attribute_is(node, "type", "pci");
	if (!domxml_is_element(node, "interface") || !domxml_attribute_is(node, "type", "hostdev"))
		return false;
	address = domxml_child_element(domxml_child_element(node, "source"), "address");
	return address && domxml_attribute_is(address, "type", "pci");
}

static int read_hostdev(const xmlNode *node, struct vhca_dom_info *info, struct vhca_error *err)
{
	const xmlNode *host = domxml_child_element(domxml_child_element(node, "source"), "address");
	const xmlNode *guest = domxml_guest_address(node);
	const xmlNode *alias_node = domxml_child_element(node, "alias");
	DOMXML_AUTO_STRING alias = alias_node ? domxml_attribute(alias_node, "name") : NULL;
	struct vhca_dom_hostdev *dev;
	uint32_t domain;

	/* A PCI domain of more than 16 bits, behind Intel's VMD for one, has no VF in sriov/: the
	 * device is none of ours. */
	if (host && domxml_attribute_u32(host, "domain", UINT32_MAX, &domain) == 0 &&
	    domain > UINT16_MAX) {
		info->has_far_hostdev = true;
		return 0;
	}
	if (info->n_hostdevs == VHCA_DOM_DEVS_MAX)
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_domain_xml", E2BIG,
				      "domain %s: more than %d PCI host devices", info->name,
				      VHCA_DOM_DEVS_MAX);
	dev = &info->hostdevs[info->n_hostdevs];
	if (!host || domxml_read_pci_address(host, &dev->host) < 0)
		return bad_xml(err, info->name,
			       "PCI host device without a readable <source> address");
	if (guest && domxml_read_pci_address(guest, &dev->guest) < 0)
		return bad_xml(err, info->name, "PCI host device with an unreadable guest address");
	dev->has_guest_addr = guest != NULL;
	if (alias)
		(void)vhca_strcpy(dev->alias, sizeof(dev->alias), (const char *)alias);
	dev->failover =
		domxml_attribute_is(domxml_child_element(node, "teaming"), "type", "transient");
	info->n_hostdevs++;
	return 0;
}

/* ---- requests ---- */

static int set_name(struct vhca_vf_request *req, const char *value)
{
	return vhca_name_is_valid(value) ? vhca_strcpy(req->name, sizeof(req->name), value)
					 : -EINVAL;
}

static int set_fabric(struct vhca_vf_request *req, const char *value)
{
	return vhca_name_is_valid(value) ? vhca_strcpy(req->fabric, sizeof(req->fabric), value)
					 : -EINVAL;
}

/* Only the form: what the words mean is known to the configuration. */
static int set_partition(struct vhca_vf_request *req, const char *value)
{
	bool word = false;

	for (const char *p = value; *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " ");
		char one[VHCA_NAME_MAX];

		if (len == 0)
			continue;
		if (len >= sizeof(one))
			return -EINVAL;
		(void)snprintf(one, sizeof(one), "%.*s", (int)len, p);
		if (!vhca_name_is_valid(one))
			return -EINVAL;
		word = true;
		p += len;
	}
	return word ? vhca_strcpy(req->partition, sizeof(req->partition), value) : -EINVAL;
}

static int set_guid(struct vhca_vf_request *req, const char *value)
{
	return vhca_guid_wish_parse(value, &req->guid);
}

static int set_pf(struct vhca_vf_request *req, const char *value)
{
	req->has_pf = true;
	return vhca_bdf_parse(value, &req->pf);
}

static int set_numa(struct vhca_vf_request *req, const char *value)
{
	uint32_t numa;
	int r = vhca_parse_u32(value, 10, VHCA_NUMA_NODE_MAX, &numa);

	if (r == 0)
		req->numa = (int)numa;
	return r;
}

static const struct vf_attribute {
	const char *name;
	bool required;
	int (*set)(struct vhca_vf_request *req, const char *value);
	const char *allowed;
} vf_attributes[] = {
	{"name", true, set_name, "1 to 31 letters, digits, '_' or '-'"},
	{"partition", true, set_partition,
	 "P_Keys such as 0x8001 and names of partitions, separated by blanks, 1023 characters at "
	 "most"},
	{"guid", false, set_guid,
	 "auto, sm, a unicast GUID such as 0x0002c90300a1b2c3, or mac:fa:16:3e:12:34:56"},
	{"fabric", false, set_fabric, "1 to 31 letters, digits, '_' or '-'"},
	{"pf", false, set_pf, "a PCI address such as 0000:03:00.0"},
	{"numa", false, set_numa, "a NUMA node number, 0 to 1023"},
};

/* One sentence for all that is wrong with a request: it is refused as a whole. */
#define REFUSED "domain %s is given no VF: "

/* Which <vhca:vf> of which domain is being read, for messages. */
struct vf_place {
	const char *domain;
	unsigned int number; /* from 1 */
};

static int bad_vf(struct vhca_error *err, struct vf_place at, const struct vf_attribute *attr,
		  const char *value)
{
	if (value)
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "bad_vf_request", 0,
				     REFUSED "<vhca:vf> number %u: %s=\"%s\" is not valid",
				     at.domain, at.number, attr->name, value);
	else
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "bad_vf_request", 0,
				     REFUSED "<vhca:vf> number %u: attribute %s is missing",
				     at.domain, at.number, attr->name);
	vhca_error_hint(err, "allowed in %s: %s", attr->name, attr->allowed);
	return -EINVAL;
}

static bool attribute_is_known(const char *name)
{
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(vf_attributes); i++)
		if (strcmp(vf_attributes[i].name, name) == 0)
			return true;
	return false;
}

/* A misspelt "guid" must not silently mean auto. Attributes of other namespaces are none of our
 * business. */
static int check_attribute_names(const xmlNode *node, struct vf_place at, struct vhca_error *err)
{
	for (const xmlAttr *a = node->properties; a; a = a->next) {
		if (a->ns || attribute_is_known((const char *)a->name))
			continue;
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "bad_vf_request", 0,
				     REFUSED "<vhca:vf> number %u: unknown attribute %s", at.domain,
				     at.number, (const char *)a->name);
		vhca_error_hint(err, "known: name, partition, guid, fabric, pf, numa");
		return -EINVAL;
	}
	return 0;
}

static int read_vf(const xmlNode *node, struct vf_place at, struct vhca_vf_request *req,
		   struct vhca_error *err)
{
	int r = check_attribute_names(node, at, err);

	*req = (struct vhca_vf_request){.fabric = "default", .numa = -1};
	for (size_t i = 0; r == 0 && i < VHCA_ARRAY_SIZE(vf_attributes); i++) {
		const struct vf_attribute *attr = &vf_attributes[i];
		DOMXML_AUTO_STRING value = domxml_attribute(node, attr->name);

		if (value ? attr->set(req, (const char *)value) < 0 : attr->required)
			r = bad_vf(err, at, attr, (const char *)value);
	}
	return r;
}

static int add_vf(const xmlNode *node, struct vf_place at, struct vhca_dom_info *info,
		  struct vhca_error *err)
{
	struct vhca_vf_request req;
	int r = read_vf(node, at, &req, err);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < info->n_requests; i++)
		if (strcmp(info->requests[i].name, req.name) == 0) {
			(void)vhca_error_set(err, VHCA_ERR_INVALID, "bad_vf_request", EEXIST,
					     REFUSED
					     "<vhca:vf> number %u: name=\"%s\" is used twice",
					     at.domain, at.number, req.name);
			vhca_error_hint(err, "give each <vhca:vf> a name of its own");
			return -EEXIST;
		}
	if (info->n_requests == VHCA_DOM_VFS_MAX) {
		(void)vhca_error_set(err, VHCA_ERR_INVALID, "bad_vf_request", E2BIG,
				     REFUSED "more than %d <vhca:vf> elements", at.domain,
				     VHCA_DOM_VFS_MAX);
		vhca_error_hint(err, "%d at most; a VF can have several partitions",
				VHCA_DOM_VFS_MAX);
		return -E2BIG;
	}
	info->requests[info->n_requests++] = req;
	return 0;
}

static bool in_namespace(const xmlNode *node, const char *uri)
{
	return node->type == XML_ELEMENT_NODE && node->ns && node->ns->href &&
	       strcmp((const char *)node->ns->href, uri) == 0;
}

static bool is_ours(const xmlNode *node)
{
	return in_namespace(node, VHCA_DOMAIN_NS);
}

static int unknown_element(struct vhca_error *err, const char *domain, const xmlNode *node,
			   const char *allowed)
{
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "bad_vf_request", 0,
			     REFUSED "unknown element <%s> in namespace %s, allowed is <%s>",
			     domain, (const char *)node->name, VHCA_DOMAIN_NS, allowed);
	vhca_error_hint(err, "<vhca:infiniband xmlns:vhca=\"" VHCA_DOMAIN_NS
			     "\"><vhca:vf name=\"ib0\" partition=\"0x8001\"/></vhca:infiniband>");
	return -EINVAL;
}

static int bad_attribute(struct vhca_error *err, const char *domain, const xmlAttr *a)
{
	(void)vhca_error_set(err, VHCA_ERR_INVALID, "bad_vf_request", 0,
			     REFUSED "<vhca:infiniband>: attribute %s is unknown or has a wrong "
				     "value",
			     domain, (const char *)a->name);
	vhca_error_hint(err, "known: detach_escalation=\"none\" or \"guest-agent\"");
	return -EINVAL;
}

static int read_escalation(const xmlNode *node, struct vhca_dom_info *info, struct vhca_error *err)
{
	static const char name[] = "detach_escalation";

	for (const xmlAttr *a = node->properties; a; a = a->next) {
		if (a->ns)
			continue;
		if (strcmp((const char *)a->name, name) != 0)
			return bad_attribute(err, info->name, a);
		if (domxml_attribute_is(node, name, "none"))
			info->escalation = VHCA_DOM_ESCALATION_NONE;
		else if (domxml_attribute_is(node, name, "guest-agent"))
			info->escalation = VHCA_DOM_ESCALATION_GUEST_AGENT;
		else
			return bad_attribute(err, info->name, a);
	}
	return 0;
}

static int read_infiniband(const xmlNode *node, struct vhca_dom_info *info, struct vhca_error *err)
{
	struct vf_place at = {info->name, 0};
	int r = read_escalation(node, info, err);

	for (const xmlNode *n = node->children; n && r == 0; n = n->next) {
		if (n->type != XML_ELEMENT_NODE)
			continue;
		if (!is_ours(n) || strcmp((const char *)n->name, "vf") != 0)
			return unknown_element(err, info->name, n, "vhca:vf");
		at.number++;
		r = add_vf(n, at, info, err);
	}
	return r;
}

static int read_requests(const xmlNode *root, struct vhca_dom_info *info, struct vhca_error *err)
{
	const xmlNode *metadata = domxml_child_element(root, "metadata");
	bool seen = false;
	int r = 0;

	for (const xmlNode *n = metadata ? metadata->children : NULL; n && r == 0; n = n->next) {
		if (!is_ours(n))
			continue;
		if (strcmp((const char *)n->name, "infiniband") != 0 || seen)
			r = unknown_element(err, info->name, n, "vhca:infiniband, once");
		else
			r = read_infiniband(n, info, err);
		seen = true;
	}
	if (r < 0) {
		info->n_requests = 0;
		info->escalation = VHCA_DOM_ESCALATION_UNSAID;
	}
	return r;
}

/* ---- the marker of a migration ---- */

static void read_away(const xmlNode *root, struct vhca_dom_info *info)
{
	const xmlNode *metadata = domxml_child_element(root, "metadata");

	DOMXML_FOREACH_CHILD (n, metadata) {
		DOMXML_AUTO_STRING id = NULL;

		if (!in_namespace(n, VHCA_AWAY_NS) || strcmp((const char *)n->name, "away") != 0)
			continue;
		id = domxml_attribute(n, "migration");
		info->has_away = true;
		info->away_autostart = domxml_attribute_is(n, "autostart", "yes");
		if (!id || vhca_uuid_parse((const char *)id, &info->away) < 0)
			info->away = (struct vhca_uuid){{0}};
		return; /* libvirt keeps one element of a namespace */
	}
}

/* ---- what others call ---- */

int vhca_domxml_parse(const char *xml, size_t len, struct vhca_dom_info **ret,
		      struct vhca_error *ret_request_error, struct vhca_error *err)
{
	VHCA_CLEANUP(doc_freep) xmlDocPtr doc = NULL;
	VHCA_AUTO_FREE struct vhca_dom_info *info = NULL;
	const xmlNode *root, *devices;
	const char *wrong;
	int r = read_domain(xml, len, &doc, &root, err);

	if (r < 0)
		return r;
	devices = domxml_child_element(root, "devices");
	info = vhca_dom_info_new(domxml_count_children(devices, is_pci_hostdev, VHCA_DOM_DEVS_MAX));
	if (!info)
		return vhca_error_no_memory(err, "domain XML");
	r = read_head(root, info, err);
	wrong = r == 0 ? domxml_read_memory(root, &info->memory) : NULL;
	if (wrong)
		r = bad_xml(err, info->name, wrong);
	domxml_read_cpus(root, &info->cpus);
	DOMXML_FOREACH_CHILD (n, devices)
		if (r == 0 && is_pci_hostdev(n))
			r = read_hostdev(n, info, err);
	if (r < 0)
		return r;
	domxml_read_buses(devices, info);

	read_away(root, info);
	r = read_requests(root, info, &info->request_error);
	if (ret_request_error)
		*ret_request_error = info->request_error;
	else if (r < 0) {
		if (err)
			*err = info->request_error;
		return r;
	}
	*ret = vhca_steal_ptr(&info);
	return 0;
}

int vhca_domxml_copy(const char *xml, size_t len, struct vhca_dom_copy **ret,
		     struct vhca_error *err)
{
	VHCA_CLEANUP(doc_freep) xmlDocPtr doc = NULL;
	struct vhca_dom_info head = {.n_hostdevs = 0};
	const xmlNode *root;
	int r = read_domain(xml, len, &doc, &root, err);

	if (r < 0)
		return r;
	r = read_head(root, &head, err);
	return r < 0 ? r : domxml_read_copy(root, head.name, ret, err);
}

int vhca_domxml_hostdev(char *buf, size_t size, struct vhca_bdf host, const char *vf_name,
			const struct vhca_bdf *guest)
{
	static const char address[] =
		"<address %sdomain='0x%04x' bus='0x%02x' slot='0x%02x' function='0x%x'/>";
	struct vhca_strbuf sb;

	if (!vhca_name_is_valid(vf_name))
		return -EINVAL;
	vhca_strbuf_init(&sb, buf, size);
	vhca_strbuf_add(&sb, "<hostdev mode='subsystem' type='pci' managed='no'>"
			     "<driver name='vfio'/><source>");
	vhca_strbuf_add(&sb, address, "", host.domain, host.bus, host.dev, host.fn);
	vhca_strbuf_add(&sb, "</source><alias name='%s%s'/>", VHCA_ALIAS_PREFIX, vf_name);
	if (guest)
		vhca_strbuf_add(&sb, address, "type='pci' ", guest->domain, guest->bus, guest->dev,
				guest->fn);
	vhca_strbuf_add(&sb, "</hostdev>");
	return sb.truncated ? -ENOBUFS : 0;
}
