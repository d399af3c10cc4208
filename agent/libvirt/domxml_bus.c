/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The guest's PCI buses, as libvirt describes them: which root ports are spare, and how one gets to
 * a device.
 */
#include <string.h>

#include "agent/libvirt/domxml_parts.h"

#define BUS_COUNT 256

/* A controller's index is the number of the bus behind it. */
struct bus {
	bool spare;	 /* behind a hot-pluggable root port, and nothing on it */
	bool has_bridge; /* bridge is where the controller itself stands */
	struct vhca_bdf bridge;
};

static void read_controller(const xmlNode *node, struct vhca_dom_info *info,
			    struct bus buses[BUS_COUNT])
{
	bool is_port = domxml_attribute_is(node, "model", "pcie-root-port");
	bool is_expander = domxml_attribute_is(node, "model", "pcie-expander-bus") ||
			   domxml_attribute_is(node, "model", "pci-expander-bus");
	const xmlNode *target = domxml_child_element(node, "target");
	const xmlNode *place = domxml_guest_address(node);
	struct bus *bus;
	uint32_t index;

	info->root_ports += is_port;
	if (domxml_attribute_u32(node, "index", BUS_COUNT - 1, &index) < 0)
		return;
	bus = &buses[index];
	if (is_port)
		bus->spare = !target || !domxml_attribute_is(target, "hotplug", "off");
	/* The bus of an expander is a root of its own, not behind the device that stands for it. */
	bus->has_bridge =
		place && !is_expander && domxml_read_pci_address(place, &bus->bridge) == 0;
}

/* From the device up to bus 0. */
static void find_path(const struct bus buses[BUS_COUNT], struct vhca_dom_hostdev *dev)
{
	struct vhca_dom_path path = {.n = 0};
	struct vhca_bdf at = dev->guest;

	if (!dev->has_guest_addr)
		return;
	while (path.n < VHCA_DOM_HOPS_MAX && at.domain == 0) {
		memmove(&path.hops[1], path.hops, path.n * sizeof(path.hops[0]));
		path.hops[0] = (struct vhca_dom_hop){.dev = at.dev, .fn = at.fn};
		path.n++;
		if (at.bus == 0) {
			dev->path = path;
			return;
		}
		if (!buses[at.bus].has_bridge)
			return;
		at = buses[at.bus].bridge;
	}
}

void domxml_read_buses(const xmlNode *devices, struct vhca_dom_info *info)
{
	struct bus buses[BUS_COUNT] = {{.spare = false}};

	DOMXML_FOREACH_CHILD (n, devices)
		if (domxml_is_element(n, "controller") && domxml_attribute_is(n, "type", "pci"))
			read_controller(n, info, buses);
	DOMXML_FOREACH_CHILD (n, devices) {
		const xmlNode *at = n->type == XML_ELEMENT_NODE ? domxml_guest_address(n) : NULL;
		uint32_t bus;

		if (at && domxml_attribute_u32(at, "bus", BUS_COUNT - 1, &bus) == 0)
			buses[bus].spare = false;
	}
	for (unsigned int i = 0; i < BUS_COUNT; i++)
		info->free_root_ports += buses[i].spare;
	for (unsigned int i = 0; i < info->n_hostdevs; i++)
		find_path(buses, &info->hostdevs[i]);
}
