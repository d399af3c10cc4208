/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "agent/libvirt/qga.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/http/json.h"

/*
 * $1: the bridge that the device is behind, a pattern below devices/; empty on bus 0. $2: the
 * device's slot. Shell builtins only: of the guest nothing is known but that it has a shell. An
 * ACPI slot of one function has the address 0000:01:00, so has a native one.
 */
static const char script[] = "cd /sys/bus/pci || exit 11\n"
			     "a=0000:00:$2\n"
			     "if [ -n \"$1\" ]; then\n"
			     "  for b in devices/$1/pci_bus/*; do a=${b##*/}:$2; done\n"
			     "fi\n"
			     "for s in slots/*; do\n"
			     "  [ -e \"$s/power\" ] && read -r x <\"$s/address\" || continue\n"
			     "  [ \"$x\" = \"$a\" ] || continue\n"
			     "  for d in devices/$a.[1-7]; do [ ! -e \"$d\" ] || exit 12; done\n"
			     "  echo 0 >\"$s/power\" || exit 13\n"
			     "  read -r x <\"$s/adapter\" && [ \"$x\" = 1 ] || exit 0\n"
			     "  echo 1 >\"$s/power\"\n"
			     "  exit 14\n"
			     "done\n"
			     "exit 11\n";

static void append(struct json_object *array, const char *text)
{
	(void)json_object_array_add(array, json_object_new_string(text));
}

static struct json_object *power_off(const struct vhca_dom_path *path)
{
	struct json_object *args, *words;
	char bridge[VHCA_DOM_HOPS_MAX * 16] = "", slot[8];
	struct vhca_strbuf sb;

	if (path->n == 0 || path->n > VHCA_DOM_HOPS_MAX)
		return NULL;
	/* "0000:00:02.1", or "0000:00:02.1/????:??:00.0" for a bridge behind a bridge. */
	vhca_strbuf_init(&sb, bridge, sizeof(bridge));
	for (unsigned int i = 0; i + 1 < path->n; i++)
		vhca_strbuf_add(&sb, "%s:%02x.%x", i ? "/????:??" : "0000:00", path->hops[i].dev,
				path->hops[i].fn);
	if (sb.truncated)
		return NULL;
	(void)snprintf(slot, sizeof(slot), "%02x", path->hops[path->n - 1].dev);
	args = json_object_new_object();
	words = json_object_new_array();
	append(words, "-c");
	append(words, script);
	append(words, "vhcad"); /* $0 */
	append(words, bridge);
	append(words, slot);
	vhca_json_add_string(args, "path", "/bin/sh");
	vhca_json_add(args, "arg", words);
	return args;
}

static void put(struct json_object **obj)
{
	(void)json_object_put(*obj); /* accepts NULL */
}
#define AUTO_PUT VHCA_CLEANUP(put) struct json_object

char *vhca_qga_command(const struct vhca_qga_ask *ask)
{
	struct json_object *args = ask->pid ? json_object_new_object() : power_off(&ask->path);
	AUTO_PUT *command = args ? json_object_new_object() : NULL;
	const char *text;

	if (!command) {
		(void)json_object_put(args);
		return NULL;
	}
	if (ask->pid)
		vhca_json_add_u64(args, "pid", ask->pid);
	vhca_json_add_string(command, "execute", ask->pid ? "guest-exec-status" : "guest-exec");
	vhca_json_add(command, "arguments", args);
	text = json_object_to_json_string_ext(command, JSON_C_TO_STRING_PLAIN);
	return text ? strdup(text) : NULL;
}

/* exitcode is absent while it runs, and when a signal has killed it. */
static int read_status(struct json_object *answer, struct vhca_qga_answer *ret)
{
	struct json_object *exited;
	uint64_t code = UINT64_MAX;

	if (!json_object_object_get_ex(answer, "exited", &exited) ||
	    vhca_json_opt_bool(answer, "exited", &ret->exited, NULL) < 0 ||
	    vhca_json_opt_u64(answer, "exitcode", 255, &code, NULL) < 0)
		return -EINVAL;
	ret->exit_code = code <= 255 ? (int)code : -1;
	return 0;
}

int vhca_qga_read(const struct vhca_qga_ask *ask, const char *answer, struct vhca_qga_answer *ret,
		  struct vhca_error *err)
{
	size_t len = strnlen(answer, VHCA_QGA_ANSWER_MAX + 1);
	struct vhca_qga_answer found = {.pid = ask->pid};
	AUTO_PUT *doc = NULL;
	struct json_object *value = NULL;
	int r = len > VHCA_QGA_ANSWER_MAX ? -E2BIG : vhca_json_parse(answer, len, &doc, NULL);

	if (r == 0 && (!json_object_is_type(doc, json_type_object) ||
		       !json_object_object_get_ex(doc, "return", &value) ||
		       !json_object_is_type(value, json_type_object)))
		r = -EINVAL;
	if (r == 0 && ask->pid)
		r = read_status(value, &found);
	else if (r == 0 &&
		 (vhca_json_get_u64(value, "pid", INT64_MAX, &found.pid, NULL) < 0 || !found.pid))
		r = -EINVAL;
	if (r < 0)
		return vhca_error_set(err, VHCA_ERR_DEVICE, "bad_guest_answer", 0,
				      "the guest agent's answer (%zu bytes%s) is not one to %s",
				      len, r == -E2BIG ? " or more" : "",
				      ask->pid ? "guest-exec-status" : "guest-exec");
	*ret = found;
	return 0;
}
