// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libvirt's client library, as far as an agent calls it for guests that a cloud begins: linked
 * before the real one, whose event loop remains. The URI folder:///DIR names a folder
 * in which each file is an active domain. Its name is the UUID; its first line "STATE REASON"
 * (virDomainState, its reason), the rest the live XML. Who plays the hypervisor puts files there by
 * rename() and takes them away; a change is told as an event 20 ms later, or SIM_EVENTS_MS, as
 * libvirt tells it. While there is a file DIR/hang, nobody is told a domain's XML.
 */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include "common/base/cleanup.h"
#include "common/base/file.h"
#include "common/base/text.h"

#define SCHEME	    "folder://"
#define POLL_MS	    20
#define DOMAINS_MAX 16
#define FILE_MAX    65536

struct _virConnect {
	char folder[256];
};

struct _virDomain {
	char path[1024];
	char uuid[VHCA_UUID_STRLEN];
};

/* What a file said when it was looked at last. */
struct seen {
	char uuid[VHCA_UUID_STRLEN];
	ino_t inode; /* another one after each rename() */
	int state, reason;
	bool here;
};

/* One process has one agent, which asks for lifecycle events once at a time. */
static struct {
	pthread_mutex_t lock;
	virConnectPtr conn;
	virConnectDomainEventCallback fn;
	void *opaque;
	virFreeCallback free_opaque;
	int timer;
	struct seen seen[DOMAINS_MAX];
	unsigned int n;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- errors: there is one ---- */

static char gone[] = "Domain not found: no domain with matching uuid";
static virError no_domain = {.code = VIR_ERR_NO_DOMAIN,
			     .domain = VIR_FROM_QEMU,
			     .level = VIR_ERR_ERROR,
			     .message = gone};

virErrorPtr virGetLastError(void)
{
	return &no_domain;
}

int virGetLastErrorCode(void)
{
	return no_domain.code;
}

const char *virGetLastErrorMessage(void)
{
	return no_domain.message;
}

/* ---- files ---- */

static virDomainPtr make_domain(virConnectPtr conn, const char *uuid)
{
	virDomainPtr dom = calloc(1, sizeof(*dom));

	if (!dom || vhca_strcpy(dom->uuid, sizeof(dom->uuid), uuid) < 0)
		abort();
	(void)snprintf(dom->path, sizeof(dom->path), "%s/%s", conn->folder, uuid);
	return dom;
}

/* The XML, to be freed; NULL with libvirt's error: there is no such domain (any more). */
static char *read_domain(const char *path, int *ret_state, int *ret_reason)
{
	VHCA_AUTO_FREE char *text = NULL;
	char *line_end = NULL;
	size_t len;

	if (vhca_read_file(path, FILE_MAX, &text, &len) < 0)
		return NULL;
	*ret_state = (int)strtol(text, &line_end, 10);
	*ret_reason = (int)strtol(line_end, &line_end, 10);
	if (*line_end != '\n')
		abort();
	return strdup(line_end + 1);
}

/* Names of at most DOMAINS_MAX files. */
static unsigned int list_files(const char *folder, char uuids[DOMAINS_MAX][VHCA_UUID_STRLEN])
{
	DIR *dir = opendir(folder);
	struct vhca_uuid uuid;
	struct dirent *entry;
	unsigned int n = 0;

	if (!dir)
		abort();
	while (n < DOMAINS_MAX && (entry = readdir(dir)))
		if (vhca_uuid_parse(entry->d_name, &uuid) == 0)
			(void)vhca_strcpy(uuids[n++], VHCA_UUID_STRLEN, entry->d_name);
	(void)closedir(dir);
	return n;
}

/* ---- events ---- */

static void tell(const char *uuid, int event, int detail)
{
	virDomainPtr dom = make_domain(watch.conn, uuid);

	(void)watch.fn(watch.conn, dom, event, detail, watch.opaque);
	(void)virDomainFree(dom);
}

static bool is_incoming(const struct seen *s)
{
	return s->state == VIR_DOMAIN_PAUSED && s->reason == VIR_DOMAIN_PAUSED_MIGRATION;
}

static void tell_change(const struct seen *old, const struct seen *now)
{
	if (old->state == now->state)
		tell(now->uuid, VIR_DOMAIN_EVENT_DEFINED, VIR_DOMAIN_EVENT_DEFINED_UPDATED);
	else if (now->state != VIR_DOMAIN_RUNNING)
		tell(now->uuid, VIR_DOMAIN_EVENT_SUSPENDED, VIR_DOMAIN_EVENT_SUSPENDED_PAUSED);
	else
		tell(now->uuid, VIR_DOMAIN_EVENT_RESUMED,
		     is_incoming(old) ? VIR_DOMAIN_EVENT_RESUMED_MIGRATED
				      : VIR_DOMAIN_EVENT_RESUMED_UNPAUSED);
}

static struct seen *find_seen(const char *uuid)
{
	for (unsigned int i = 0; i < watch.n; i++)
		if (strcmp(watch.seen[i].uuid, uuid) == 0)
			return &watch.seen[i];
	return NULL;
}

static void look_at(const char *uuid)
{
	struct seen now = {.here = true}, *old = find_seen(uuid);
	char path[1024];
	struct stat st;

	(void)vhca_strcpy(now.uuid, sizeof(now.uuid), uuid);
	(void)snprintf(path, sizeof(path), "%s/%s", watch.conn->folder, uuid);
	if (stat(path, &st) < 0)
		return;
	now.inode = st.st_ino;
	if (old && old->inode == now.inode) {
		old->here = true;
		return;
	}
	free(read_domain(path, &now.state, &now.reason));
	if (!old) {
		tell(uuid, VIR_DOMAIN_EVENT_STARTED,
		     is_incoming(&now) ? VIR_DOMAIN_EVENT_STARTED_MIGRATED
				       : VIR_DOMAIN_EVENT_STARTED_BOOTED);
		old = &watch.seen[watch.n++];
	} else {
		tell_change(old, &now);
	}
	*old = now;
}

static void forget_gone(void)
{
	for (unsigned int i = watch.n; i-- > 0;) {
		if (watch.seen[i].here)
			continue;
		tell(watch.seen[i].uuid, VIR_DOMAIN_EVENT_STOPPED,
		     VIR_DOMAIN_EVENT_STOPPED_DESTROYED);
		watch.seen[i] = watch.seen[--watch.n];
	}
}

static void on_poll(int timer, void *opaque)
{
	char uuids[DOMAINS_MAX][VHCA_UUID_STRLEN];
	unsigned int n;

	(void)timer, (void)opaque;
	(void)pthread_mutex_lock(&watch.lock);
	if (watch.conn) {
		n = list_files(watch.conn->folder, uuids);
		for (unsigned int i = 0; i < watch.n; i++)
			watch.seen[i].here = false;
		for (unsigned int i = 0; i < n; i++)
			look_at(uuids[i]);
		forget_gone();
	}
	(void)pthread_mutex_unlock(&watch.lock);
}

int virConnectDomainEventRegisterAny(virConnectPtr conn, virDomainPtr dom, int id,
				     virConnectDomainEventGenericCallback cb, void *opaque,
				     virFreeCallback free_opaque)
{
	const char *delay = getenv("SIM_EVENTS_MS");

	(void)dom;
	if (id != VIR_DOMAIN_EVENT_ID_LIFECYCLE) {
		free_opaque(opaque); /* there are no such events */
		return id;
	}
	(void)pthread_mutex_lock(&watch.lock);
	watch.conn = conn;
	watch.fn = (virConnectDomainEventCallback)(void (*)(void))cb;
	watch.opaque = opaque;
	watch.free_opaque = free_opaque;
	watch.n = 0;
	(void)pthread_mutex_unlock(&watch.lock);
	if (!watch.timer)
		watch.timer = virEventAddTimeout(delay ? (int)strtol(delay, NULL, 10) : POLL_MS,
						 on_poll, NULL, NULL);
	return id;
}

int virConnectDomainEventDeregisterAny(virConnectPtr conn, int id)
{
	(void)conn;
	if (id != VIR_DOMAIN_EVENT_ID_LIFECYCLE)
		return 0;
	(void)pthread_mutex_lock(&watch.lock);
	watch.conn = NULL;
	(void)pthread_mutex_unlock(&watch.lock);
	watch.free_opaque(watch.opaque);
	return 0;
}

/* ---- connections ---- */

virConnectPtr virConnectOpen(const char *uri)
{
	virConnectPtr conn = calloc(1, sizeof(*conn));

	if (!conn || strncmp(uri, SCHEME, strlen(SCHEME)) != 0 ||
	    vhca_strcpy(conn->folder, sizeof(conn->folder), uri + strlen(SCHEME)) < 0)
		abort();
	return conn;
}

int virConnectClose(virConnectPtr conn)
{
	free(conn);
	return 0;
}

int virConnectSetKeepAlive(virConnectPtr conn, int interval, unsigned int count)
{
	(void)conn, (void)interval, (void)count;
	return 1;
}

int virConnectIsAlive(virConnectPtr conn)
{
	(void)conn;
	return 1;
}

int virConnectGetLibVersion(virConnectPtr conn, unsigned long *ret)
{
	(void)conn;
	*ret = 9000000;
	return 0;
}

int virConnectRegisterCloseCallback(virConnectPtr conn, virConnectCloseFunc fn, void *opaque,
				    virFreeCallback free_opaque)
{
	(void)conn, (void)fn;
	free_opaque(opaque); /* it never closes by itself */
	return 0;
}

int virConnectUnregisterCloseCallback(virConnectPtr conn, virConnectCloseFunc fn)
{
	(void)conn, (void)fn;
	return 0;
}

/* ---- domains ---- */

int virConnectListAllDomains(virConnectPtr conn, virDomainPtr **ret, unsigned int flags)
{
	char uuids[DOMAINS_MAX][VHCA_UUID_STRLEN];
	unsigned int n = list_files(conn->folder, uuids);

	(void)flags;
	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		abort();
	for (unsigned int i = 0; i < n; i++)
		(*ret)[i] = make_domain(conn, uuids[i]);
	return (int)n;
}

virDomainPtr virDomainLookupByUUID(virConnectPtr conn, const unsigned char *uuid)
{
	struct vhca_uuid id;
	virDomainPtr dom;

	memcpy(id.b, uuid, sizeof(id.b));
	dom = make_domain(conn, VHCA_UUID_STR(&id));
	if (access(dom->path, F_OK) == 0)
		return dom;
	(void)virDomainFree(dom);
	return NULL;
}

int virDomainFree(virDomainPtr dom)
{
	free(dom);
	return 0;
}

const char *virDomainGetName(virDomainPtr dom)
{
	return dom->uuid;
}

int virDomainGetUUID(virDomainPtr dom, unsigned char *uuid)
{
	struct vhca_uuid id;

	if (vhca_uuid_parse(dom->uuid, &id) < 0)
		abort();
	memcpy(uuid, id.b, sizeof(id.b));
	return 0;
}

unsigned int virDomainGetID(virDomainPtr dom)
{
	(void)dom;
	return 1;
}

int virDomainGetState(virDomainPtr dom, int *state, int *reason, unsigned int flags)
{
	VHCA_AUTO_FREE char *xml = read_domain(dom->path, state, reason);

	(void)flags;
	return xml ? 0 : -1;
}

/* The marker of a migration that has ended: whoever puts the file there has left it out. */
int virDomainSetMetadata(virDomainPtr dom, int type, const char *metadata, const char *key,
			 const char *uri, unsigned int flags)
{
	(void)dom;
	(void)type;
	(void)metadata;
	(void)key;
	(void)uri;
	(void)flags;
	return 0;
}

char *virDomainGetXMLDesc(virDomainPtr dom, unsigned int flags)
{
	size_t folder = strlen(dom->path) - strlen(dom->uuid);
	char hang[sizeof(dom->path)];
	int state, reason;

	(void)flags;
	(void)snprintf(hang, sizeof(hang), "%.*shang", (int)folder, dom->path);
	while (access(hang, F_OK) == 0)
		usleep(POLL_MS * 1000);
	return read_domain(dom->path, &state, &reason);
}
