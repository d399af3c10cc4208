/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/virt_error.h"

#include "common/base/cleanup.h"

#include <errno.h>
#include <string.h>

#include <libvirt/virterror.h>

#define UNREACHABLE VHCA_ERR_UNAVAILABLE, "libvirt_unreachable", ENOTCONN, true

/* First match wins: texts before the catch-all of their code. */
static const struct vhca_virt_class classes[] = {
	{VIR_ERR_NO_DOMAIN, {NULL}, VHCA_ERR_NOT_FOUND, "domain_gone", ENOENT, false, NULL},
	{VIR_ERR_OPERATION_INVALID,
	 {"domain is not running"},
	 VHCA_ERR_NOT_FOUND,
	 "domain_gone",
	 ENOENT,
	 false,
	 NULL},
	{VIR_ERR_OPERATION_INVALID,
	 {"is in use by"},
	 VHCA_ERR_CONFLICT,
	 "vf_in_use",
	 EBUSY,
	 false,
	 "another domain of this host has the VF"},
	{VIR_ERR_OPERATION_INVALID,
	 {"must be manually detached"},
	 VHCA_ERR_DEVICE,
	 "vf_not_bound",
	 ENODEV,
	 false,
	 "the VF is not on vfio-pci"},
	{VIR_ERR_DEVICE_MISSING, {NULL}, VHCA_ERR_NOT_FOUND, "no_such_alias", ENOENT, false, NULL},
	{VIR_ERR_OPERATION_TIMEOUT,
	 {NULL},
	 VHCA_ERR_CONFLICT,
	 "job_held",
	 EBUSY,
	 true,
	 "another operation on the domain, such as a migration, has to end first"},
	{VIR_ERR_CONFIG_UNSUPPORTED,
	 {"non unique alias"},
	 VHCA_ERR_CONFLICT,
	 "alias_in_use",
	 EEXIST,
	 false,
	 "the domain has another device with this alias"},
	{VIR_ERR_CONFIG_UNSUPPORTED,
	 {"host doesn't support passthrough"},
	 VHCA_ERR_DEVICE,
	 "no_passthrough",
	 EOPNOTSUPP,
	 false,
	 "is the IOMMU on, and vfio-pci loaded?"},

	{VIR_ERR_INTERNAL_ERROR,
	 {"No more available PCI slots"},
	 VHCA_ERR_EXHAUSTED,
	 "no_root_port",
	 ENOSPC,
	 false,
	 "add <controller type='pci' model='pcie-root-port'/> to the domain: one per VF, and start "
	 "it anew"},
	{VIR_ERR_INTERNAL_ERROR,
	 {"no device found with alias"},
	 VHCA_ERR_NOT_FOUND,
	 "no_such_alias",
	 ENOENT,
	 false,
	 NULL},
	{VIR_ERR_INTERNAL_ERROR,
	 {"guest is busy"},
	 VHCA_ERR_CONFLICT,
	 "guest_busy",
	 EBUSY,
	 true,
	 "the guest is still at the last plug or unplug"},
	{VIR_ERR_INTERNAL_ERROR,
	 {"already in the process of unplug"},
	 VHCA_ERR_CONFLICT,
	 "guest_busy",
	 EBUSY,
	 true,
	 "the guest was asked before and has not let go yet"},
	{VIR_ERR_INTERNAL_ERROR,
	 {"failed to open /dev/vfio/", "Device or resource busy"},
	 VHCA_ERR_CONFLICT,
	 "vf_in_use",
	 EBUSY,
	 false,
	 "another process holds the VF's vfio group"},
	{VIR_ERR_INTERNAL_ERROR,
	 {"failed to open /dev/vfio/"},
	 VHCA_ERR_DEVICE,
	 "vf_not_bound",
	 ENODEV,
	 false,
	 "the VF is not on vfio-pci"},
	{VIR_ERR_INTERNAL_ERROR, {"client socket is closed"}, UNREACHABLE, NULL},
	{VIR_ERR_INTERNAL_ERROR, {"connection closed"}, UNREACHABLE, NULL},

	{VIR_ERR_RPC, {NULL}, UNREACHABLE, NULL},
	{VIR_ERR_NO_CONNECT, {NULL}, UNREACHABLE, NULL},
	{VIR_ERR_INVALID_CONN, {NULL}, UNREACHABLE, NULL},
	{VIR_ERR_SYSTEM_ERROR, {"socket"}, UNREACHABLE, "is libvirtd running?"},
	{VIR_ERR_SYSTEM_ERROR, {"Cannot recv data"}, UNREACHABLE, NULL},
	{VIR_ERR_SYSTEM_ERROR, {"Cannot write data"}, UNREACHABLE, NULL},

	{VIR_ERR_AUTH_FAILED, {NULL}, VHCA_ERR_DENIED, "libvirt_denied", EACCES, false, NULL},
	{VIR_ERR_ACCESS_DENIED, {NULL}, VHCA_ERR_DENIED, "libvirt_denied", EACCES, false, NULL},
	{VIR_ERR_OPERATION_DENIED, {NULL}, VHCA_ERR_DENIED, "libvirt_denied", EACCES, false, NULL},
	{VIR_ERR_NO_MEMORY, {NULL}, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, true, NULL},
	{VIR_ERR_NO_SUPPORT, {NULL}, VHCA_ERR_DEVICE, "libvirt", EOPNOTSUPP, false, NULL},
	{VIR_ERR_OPERATION_UNSUPPORTED,
	 {NULL},
	 VHCA_ERR_DEVICE,
	 "libvirt",
	 EOPNOTSUPP,
	 false,
	 NULL},
	{-1, {NULL}, VHCA_ERR_DEVICE, "libvirt", EIO, false, NULL},
};

static bool class_matches(const struct vhca_virt_class *c, int code, const char *message)
{
	if (c->code >= 0 && c->code != code)
		return false;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(c->text); i++)
		if (c->text[i] && !strstr(message, c->text[i]))
			return false;
	return true;
}

const struct vhca_virt_class *vhca_virt_classify(int code, const char *message)
{
	const struct vhca_virt_class *c = classes;

	while (!class_matches(c, code, message ? message : ""))
		c++; /* the last one matches everything */
	return c;
}

int vhca_virt_error(struct vhca_error *err, const char *what)
{
	const virError *last = virGetLastError();
	const char *message = last && last->message ? last->message : "unknown error";
	const struct vhca_virt_class *c = vhca_virt_classify(last ? last->code : 0, message);

	/* errnum 0: libvirt's own words are better than strerror() of our choice. */
	(void)vhca_error_set(err, c->kind, c->word, 0, "%s: %s", what, message);
	if (c->hint)
		vhca_error_hint(err, "%s", c->hint);
	if (err)
		err->errnum = c->errnum;
	return -c->errnum;
}
