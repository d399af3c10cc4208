/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/error.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <libvirt/virterror.h>

#include "common/base/cleanup.h"
#include "common/base/codes.h"
#include "common/base/text.h"

#define DOMAIN_GONE VHCA_ERR_NOT_FOUND, "domain_gone", ENOENT, false, NULL
#define UNREACHABLE VHCA_ERR_UNAVAILABLE, "libvirt_unreachable", ENOTCONN, true

/* First match wins: texts before the catch-all of their code. */
static const struct virt_class classes[] = {
	{VIR_ERR_NO_DOMAIN, {NULL}, DOMAIN_GONE},
	{VIR_ERR_OPERATION_INVALID, {"domain is not running"}, DOMAIN_GONE},
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
	{VIR_ERR_OPERATION_INVALID,
	 {"cannot abort"},
	 VHCA_ERR_CONFLICT,
	 "not_abortable",
	 EBUSY,
	 false,
	 NULL},
	{VIR_ERR_DEVICE_MISSING, {NULL}, VHCA_ERR_NOT_FOUND, "no_such_alias", ENOENT, false, NULL},
	{VIR_ERR_OPERATION_TIMEOUT,
	 {NULL},
	 VHCA_ERR_CONFLICT,
	 VHCA_CODE_JOB_HELD,
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

	/* conf/domain_addr.c: virDomainPCIAddressReserveAddrInternal() */
	{VIR_ERR_XML_ERROR,
	 {"double use of PCI"},
	 VHCA_ERR_CONFLICT,
	 VHCA_CODE_GUEST_ADDRESS_IN_USE,
	 EBUSY,
	 false,
	 "the guest has another device at this address"},
	{VIR_ERR_INTERNAL_ERROR,
	 {"No more available PCI slots"},
	 VHCA_ERR_EXHAUSTED,
	 VHCA_CODE_NO_ROOT_PORT,
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
	 VHCA_CODE_GUEST_BUSY,
	 EBUSY,
	 true,
	 "the guest is still at the last plug or unplug"},
	{VIR_ERR_INTERNAL_ERROR,
	 {"already in the process of unplug"},
	 VHCA_ERR_CONFLICT,
	 VHCA_CODE_GUEST_BUSY,
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
	{VIR_ERR_INTERNAL_ERROR,
	 {"vfio_dma_map(", "Cannot allocate memory"},
	 VHCA_ERR_CONFLICT,
	 "memory_not_pinned",
	 ENOMEM,
	 false,
	 "VFIO pins all of the guest's memory: is a <hard_limit> in its <memtune>, or too little "
	 "memory "
	 "free on the host?"},
	{VIR_ERR_INTERNAL_ERROR, {"client socket is closed"}, UNREACHABLE, NULL},
	{VIR_ERR_INTERNAL_ERROR, {"connection closed"}, UNREACHABLE, NULL},
	{VIR_ERR_INTERNAL_ERROR, {"received hangup event on socket"}, UNREACHABLE, NULL},
	{VIR_ERR_INTERNAL_ERROR, {"received error event on socket"}, UNREACHABLE, NULL},

	{VIR_ERR_RPC, {NULL}, UNREACHABLE, NULL},
	{VIR_ERR_NO_CONNECT, {NULL}, UNREACHABLE, NULL},
	{VIR_ERR_INVALID_CONN, {NULL}, UNREACHABLE, NULL},
	{VIR_ERR_SYSTEM_ERROR, {"socket"}, UNREACHABLE, "is libvirtd running?"},
	{VIR_ERR_SYSTEM_ERROR, {"Cannot recv data"}, UNREACHABLE, NULL},
	{VIR_ERR_SYSTEM_ERROR, {"Cannot write data"}, UNREACHABLE, NULL},
	{VIR_ERR_SYSTEM_ERROR, {"End of file while reading data"}, UNREACHABLE, NULL},

	{VIR_ERR_AUTH_FAILED, {NULL}, VHCA_ERR_DENIED, "libvirt_denied", EACCES, false, NULL},
	{VIR_ERR_ACCESS_DENIED, {NULL}, VHCA_ERR_DENIED, "libvirt_denied", EACCES, false, NULL},
	{VIR_ERR_OPERATION_DENIED, {NULL}, VHCA_ERR_DENIED, "libvirt_denied", EACCES, false, NULL},
	{VIR_ERR_NO_MEMORY, {NULL}, VHCA_ERR_INTERNAL, "no_memory", ENOMEM, true, NULL},
	{VIR_ERR_NO_SUPPORT, {NULL}, VHCA_ERR_DEVICE, VHCA_CODE_LIBVIRT, EOPNOTSUPP, false, NULL},
	{VIR_ERR_OPERATION_UNSUPPORTED,
	 {NULL},
	 VHCA_ERR_DEVICE,
	 VHCA_CODE_LIBVIRT,
	 EOPNOTSUPP,
	 false,
	 NULL},
	{-1, {NULL}, VHCA_ERR_DEVICE, VHCA_CODE_LIBVIRT, EIO, false, NULL},
};

#define FAILED	  VHCA_ERR_CONFLICT, "migration_failed", EIO, false
#define NO_PEER	  VHCA_ERR_UNAVAILABLE, "peer_unreachable", EHOSTUNREACH, true
#define PEER_HINT "is libvirtd running there, and can this host's libvirtd reach it?"
#define DENIED	  VHCA_ERR_DENIED, "libvirt_denied", EACCES, false

static const struct virt_class migration_classes[] = {
	{VIR_ERR_OPERATION_ABORTED,
	 {NULL},
	 VHCA_ERR_CONFLICT,
	 "migration_cancelled",
	 ECANCELED,
	 true,
	 NULL},
	{VIR_ERR_HOOK_SCRIPT_FAILED,
	 {NULL},
	 VHCA_ERR_DENIED,
	 "hook_refused",
	 EACCES,
	 false,
	 "the libvirt hook of the destination host said so"},
	{VIR_ERR_OPERATION_TIMEOUT,
	 {"state change lock"},
	 VHCA_ERR_CONFLICT,
	 VHCA_CODE_JOB_HELD,
	 EBUSY,
	 true,
	 "another operation on the domain has to end first"},
	{VIR_ERR_OPERATION_INVALID, {"domain is not running"}, DOMAIN_GONE},
	{VIR_ERR_OPERATION_INVALID,
	 {"cannot migrate domain"},
	 VHCA_ERR_CONFLICT,
	 "not_migratable",
	 EIO,
	 false,
	 "a device of the domain forbids it"},
	{VIR_ERR_OPERATION_INVALID,
	 {"already running for domain"},
	 VHCA_ERR_CONFLICT,
	 VHCA_CODE_JOB_HELD,
	 EBUSY,
	 true,
	 "another migration of the domain has to end first"},
	{VIR_ERR_INTERNAL_ERROR,
	 {"to the same host"},
	 VHCA_ERR_INVALID,
	 "same_host",
	 EIO,
	 false,
	 "the peer's libvirt URI leads back to this host, or both have one host_uuid in "
	 "libvirtd.conf"},

	{VIR_ERR_OPERATION_FAILED, {"Failed to connect to remote libvirt"}, NO_PEER, PEER_HINT},
	{VIR_ERR_OPERATION_FAILED, {"Lost connection to destination host"}, NO_PEER, PEER_HINT},
	{-1, {"unable to connect to server"}, NO_PEER, PEER_HINT},
	{-1, {"Failed to connect socket"}, NO_PEER, PEER_HINT},
	{-1, {"client socket is closed"}, NO_PEER, PEER_HINT},
	{-1, {"connection closed"}, NO_PEER, PEER_HINT},
	{VIR_ERR_SYSTEM_ERROR, {"Cannot recv data"}, NO_PEER, PEER_HINT},
	{VIR_ERR_SYSTEM_ERROR, {"Cannot write data"}, NO_PEER, PEER_HINT},
	{VIR_ERR_SYSTEM_ERROR, {"End of file while reading data"}, NO_PEER, PEER_HINT},
	{VIR_ERR_RPC, {NULL}, NO_PEER, PEER_HINT},
	{VIR_ERR_NO_CONNECT, {NULL}, NO_PEER, PEER_HINT},

	{VIR_ERR_AUTH_FAILED, {NULL}, DENIED, NULL},
	{VIR_ERR_ACCESS_DENIED, {NULL}, DENIED, NULL},
	{VIR_ERR_OPERATION_DENIED, {NULL}, DENIED, NULL},
	{-1, {NULL}, FAILED, NULL},
};

/* The first one's text ends in the guest's own words, which may be those of any other. */
static const struct virt_class agent_classes[] = {
	{-1,
	 {"QEMU agent command"},
	 VHCA_ERR_CONFLICT,
	 "guest_agent_refused",
	 EACCES,
	 false,
	 "does the agent in the guest allow guest-exec?"},
	{-1,
	 {"guest agent is not configured"},
	 VHCA_ERR_CONFLICT,
	 "no_guest_agent",
	 EOPNOTSUPP,
	 false,
	 "add the channel org.qemu.guest_agent.0 to the domain"},
	{-1,
	 {"uest agent"},
	 VHCA_ERR_UNAVAILABLE,
	 "guest_agent_silent",
	 ETIMEDOUT,
	 true,
	 "does qemu-ga run in the guest?"},
};

static const struct virt_class unanswered = {
	-1, {NULL}, UNREACHABLE, "what came of it shows when libvirtd is back"};

static const struct virt_class connection_lost = {
	-1,
	{NULL},
	UNREACHABLE,
	"this host's libvirtd went away; how the migration ends shows when it is back"};

static bool class_matches(const struct virt_class *c, int code, const char *message)
{
	if (c->code >= 0 && c->code != code)
		return false;
	for (size_t i = 0; i < VHCA_ARRAY_SIZE(c->text); i++)
		if (c->text[i] && !strstr(message, c->text[i]))
			return false;
	return true;
}

/* The last one of a table matches everything. */
static const struct virt_class *find_class(const struct virt_class *c, int code,
					   const char *message)
{
	while (!class_matches(c, code, message ? message : ""))
		c++;
	return c;
}

const struct virt_class *virt_classify(int code, const char *message)
{
	return find_class(classes, code, message);
}

const struct virt_class *virt_classify_migration(int code, const char *message)
{
	return find_class(migration_classes, code, message);
}

static int set_error(struct vhca_error *err, const struct virt_class *c, const char *what,
		     const char *message)
{
	/* errnum 0: libvirt's own words are better than strerror() of our choice. */
	(void)vhca_error_set(err, c->kind, c->word, 0, "%s: %s", what, message);
	if (c->hint)
		vhca_error_hint(err, "%s", c->hint);
	if (err)
		err->errnum = c->errnum;
	return -c->errnum;
}

bool virt_has_no_job(void)
{
	return strstr(virGetLastErrorMessage(), "no job is active") != NULL;
}

int virt_error(struct vhca_error *err, const char *what)
{
	const virError *last = virGetLastError();
	const char *message = last && last->message ? last->message : "unknown error";

	return set_error(err, virt_classify(last ? last->code : 0, message), what, message);
}

int virt_call_error(struct vhca_error *err, const char *what, virConnectPtr conn)
{
	const virError *last = virGetLastError();
	VHCA_AUTO_FREE char *message =
		strdup(last && last->message ? last->message : "unknown error");
	const struct virt_class *c = virt_classify(last ? last->code : 0, message);

	if (!message)
		return vhca_error_no_memory(err, what);
	/* Asked last: it forgets the last error. */
	if (strcmp(c->word, VHCA_CODE_LIBVIRT) == 0 && virConnectIsAlive(conn) == 0)
		c = &unanswered;
	return set_error(err, c, what, message);
}

/* One line: hooks and QEMU write as many as they like. */
static void flatten(char *text)
{
	size_t len = strlen(text);

	while (len > 0 && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	for (size_t i = 0; i < len; i++)
		memset(text + i, ' ', vhca_control_len(text + i));
}

int virt_migrate_error(struct vhca_error *err, const char *what, virConnectPtr conn)
{
	VHCA_AUTO_FREE char *message = strdup(virGetLastErrorMessage());
	int code = virGetLastErrorCode();
	const struct virt_class *c = virt_classify_migration(code, message);
	char *status, *words;

	if (!message)
		return vhca_error_no_memory(err, what);
	flatten(message);
	/* libvirt puts the hook's whole command line, with its environment, before its words. */
	status = code == VIR_ERR_HOOK_SCRIPT_FAILED ? strstr(message, "exit status ") : NULL;
	words = status ? strstr(status, ": ") : NULL;
	words = words && words[2] ? words + 2 : message;
	/* Asked last: it forgets the last error. */
	if (virConnectIsAlive(conn) == 0)
		c = &connection_lost;
	return set_error(err, c, what, words);
}

#define AGENT_WORDS_MAX 140

int virt_agent_error(struct vhca_error *err, const char *what)
{
	const virError *last = virGetLastError();
	const char *message = last && last->message ? last->message : "unknown error";
	const struct virt_class *c = NULL;
	char words[AGENT_WORDS_MAX + 1];

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(agent_classes) && !c; i++)
		if (class_matches(&agent_classes[i], -1, message))
			c = &agent_classes[i];
	(void)snprintf(words, sizeof(words), "%s", message);
	for (char *p = words; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return set_error(err, c ? c : virt_classify(last ? last->code : 0, message), what, words);
}
