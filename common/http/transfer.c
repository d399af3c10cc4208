// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/http/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/http/auth_private.h"
#include "common/http/json.h"
#include "config.h"

#define CONNECT_MS 2000
#define TOTAL_MS   10000
#define REPLY_MAX  (4 * 1024 * 1024)
#define TEXT_FIRST 1024

/* ---- callbacks of curl ---- */

static int reserve(struct vhca_http_transfer *t, size_t need)
{
	size_t size = t->text_size ? t->text_size : TEXT_FIRST;
	char *text;

	while (size < need)
		size *= 2;
	if (size == t->text_size)
		return 0;
	text = realloc(t->text, size);
	if (!text)
		return -ENOMEM;
	t->text = text;
	t->text_size = size;
	return 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
	struct vhca_http_transfer *t = arg;
	size_t len = size * n;

	t->too_large = len > t->reply_max - t->text_len;
	if (t->too_large || reserve(t, t->text_len + len) < 0)
		return 0; /* less than len: curl gives up */
	memcpy(t->text + t->text_len, data, len);
	t->text_len += len;
	return len;
}

static void take_etag(struct vhca_http_transfer *t, const char *value, size_t len)
{
	while (len > 0 && strchr(" \t", *value)) {
		value++;
		len--;
	}
	while (len > 0 && strchr(" \t\r\n", value[len - 1]))
		len--;
	if (len <
	    sizeof(t->etag)) { /* a longer one cannot be used; that costs a full answer only */
		memcpy(t->etag, value, len);
		t->etag[len] = '\0';
	}
}

/* Called for each line, not terminated, from the status line to the blank one. */
static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
	static const char etag[] = "etag:";
	struct vhca_http_transfer *t = arg;
	size_t len = size * n, name = sizeof(etag) - 1;

	t->head_complete = len > 0 && strchr("\r\n", data[0]);
	if (len >= name && strncasecmp(data, etag, name) == 0)
		take_etag(t, data + name, len - name);
	return len;
}

static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *addr)
{
	(void)ctx;
	(void)purpose;
	return socket(addr->family, addr->socktype | SOCK_CLOEXEC, addr->protocol);
}

/* ---- the request ---- */

static bool add_header(struct vhca_http_transfer *t, const char *line)
{
	struct curl_slist *list = curl_slist_append(t->headers, line);

	if (list)
		t->headers = list;
	return list != NULL;
}

/* Never in clear: whoever may read it on its way may use it. */
static bool add_token(struct vhca_http_transfer *t, const struct vhca_http_call_args *args)
{
	char line[VHCA_HTTP_TOKEN_MAX + 32];
	bool ok;

	if (!args->auth || args->auth->n_tokens == 0 || strncmp(args->url, "https:", 6) != 0)
		return true;
	(void)snprintf(line, sizeof(line), "Authorization: Bearer %s", args->auth->tokens[0].text);
	ok = add_header(t, line);
	explicit_bzero(line, sizeof(line));
	return ok;
}

static bool set_headers(struct vhca_http_transfer *t, const struct vhca_http_call_args *args)
{
	/* No "Expect: 100-continue": it would cost a round trip, and bodies are small. */
	bool ok = add_header(t, "Accept: application/json, application/problem+json") &&
		  add_header(t, "Expect:") && add_token(t, args);

	if (ok && args->body)
		ok = add_header(t, "Content-Type: application/json");
	for (const char *const *line = args->headers; ok && line && *line; line++)
		ok = add_header(t, *line);
	return ok && curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers) == CURLE_OK;
}

static bool set_body(struct vhca_http_transfer *t, const struct vhca_http_call_args *args)
{
	const char *text = "";

	if (args->body)
		text = json_object_to_json_string_ext(args->body, JSON_C_TO_STRING_PLAIN);
	else if (strcmp(args->method, "GET") == 0 || strcmp(args->method, "DELETE") == 0)
		return true;
	return text &&
	       curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE, (long)strlen(text)) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_COPYPOSTFIELDS, text) == CURLE_OK;
}

/*
 * The files were checked when they were loaded; curl reads them again for each connection, so a
 * renewed certificate is used at once.
 */
static bool set_trust(CURL *easy, const struct vhca_http_auth *auth)
{
	bool ok = curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) ==
		  CURLE_OK;

	/* Some builds of curl keep authorities for a day; others do not know the option. */
	(void)curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	/* CAPATH: the system's authorities are not meant when ours are named. */
	if (ok && auth && auth->authority.path)
		ok = curl_easy_setopt(easy, CURLOPT_CAINFO, auth->authority.path) == CURLE_OK &&
		     curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK;
	if (ok && auth && auth->revoked.path)
		ok = curl_easy_setopt(easy, CURLOPT_CRLFILE, auth->revoked.path) == CURLE_OK;
	if (ok && auth && auth->certificate.path)
		ok = curl_easy_setopt(easy, CURLOPT_SSLCERT, auth->certificate.path) == CURLE_OK &&
		     curl_easy_setopt(easy, CURLOPT_SSLKEY, auth->key.path) == CURLE_OK;
	return ok;
}

static bool set_options(struct vhca_http_transfer *t, const struct vhca_http_call_args *args)
{
	long connect_ms = args->connect_ms ? (long)args->connect_ms : CONNECT_MS;
	long total_ms = args->total_ms ? (long)args->total_ms : TOTAL_MS;

	/* Neither the environment's proxies nor a redirect may choose whom we talk to. */
	return curl_easy_setopt(t->easy, CURLOPT_URL, args->url) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_UNIX_SOCKET_PATH, args->unix_socket) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_PROXY, "") == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, args->method) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, total_ms) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, t) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_HEADERDATA, t) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_ERRORBUFFER, t->error) == CURLE_OK &&
	       curl_easy_setopt(t->easy, CURLOPT_USERAGENT, "vhcad/" VHCA_VERSION) == CURLE_OK;
}

int vhca_http_transfer_init(struct vhca_http_transfer *t, const struct vhca_http_call_args *args)
{
	*t = (struct vhca_http_transfer){.easy = curl_easy_init()};
	t->reply_max = args->reply_max ? args->reply_max : REPLY_MAX;
	(void)snprintf(t->label, sizeof(t->label), "%s %s", args->method,
		       args->unix_socket ? args->unix_socket : args->url);
	if (t->easy && set_options(t, args) && set_trust(t->easy, args->auth) &&
	    set_body(t, args) && set_headers(t, args))
		return 0;
	vhca_http_transfer_done(t);
	return -ENOMEM; /* with valid options setting them fails for no other reason */
}

void vhca_http_transfer_done(struct vhca_http_transfer *t)
{
	curl_easy_cleanup(t->easy); /* accepts NULL, as the others */
	curl_slist_free_all(t->headers);
	free(t->text);
	*t = (struct vhca_http_transfer){.easy = NULL};
}

/* ---- the result ---- */

/* What the kernel said, if that is the reason; curl also leaves EINPROGRESS and the like there. */
static int os_error(CURL *easy)
{
	long error = 0;

	if (curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &error) != CURLE_OK)
		return 0;
	return error == EINPROGRESS || error == EAGAIN || error == EINTR ? 0 : (int)error;
}

/* curl says "unsupported protocol" also of a server that does not speak HTTP. */
static bool is_bad_url(CURL *easy, CURLcode code)
{
	long connects = 0;

	if (code == CURLE_URL_MALFORMAT)
		return true;
	return code == CURLE_UNSUPPORTED_PROTOCOL &&
	       curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects) == CURLE_OK &&
	       connects == 0;
}

static int no_answer(struct vhca_http_transfer *t, CURLcode code, struct vhca_error *err)
{
	const char *reason = t->error[0] ? t->error : curl_easy_strerror(code);

	if (t->too_large)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "reply_too_large", EMSGSIZE,
				      "%s: the answer is longer than %zu bytes", t->label,
				      t->reply_max);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "timeout", ETIMEDOUT, "%s: %s",
				      t->label, reason);
	if (is_bad_url(t->easy, code))
		return vhca_error_set(err, VHCA_ERR_INVALID, "bad_url", EINVAL, "%s: %s", t->label,
				      reason);
	if (code == CURLE_OUT_OF_MEMORY)
		return vhca_error_no_memory(err, t->label);
	return vhca_error_set(err, VHCA_ERR_UNAVAILABLE, "unreachable", os_error(t->easy), "%s: %s",
			      t->label, reason);
}

int vhca_http_transfer_result(struct vhca_http_transfer *t, CURLcode code,
			      struct vhca_http_result *res, struct vhca_error *err)
{
	struct vhca_error refused = VHCA_ERROR_INIT;
	long status = 0;

	*res = (struct vhca_http_result){.status = 0};
	if (code == CURLE_OK && !t->head_complete) /* curl is content with half a head */
		code = CURLE_GOT_NOTHING;
	if (code != CURLE_OK)
		return no_answer(t, code, err);
	(void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status); /* known after success */
	res->status = (int)status;
	(void)vhca_strcpy(res->etag, sizeof(res->etag), t->etag); /* of the same size */
	if (t->text_len > 0)
		(void)vhca_json_parse(t->text, t->text_len, &res->body,
				      NULL); /* stays NULL if it is none */
	if (t->text_len > 0 && !res->body)
		res->text = strndup(t->text, t->text_len);
	/* 304 is an answer too: only a caller that sent If-None-Match gets it. */
	if ((status >= 200 && status < 300) || status == 304)
		return 0;
	vhca_json_problem_to_error(res->body, res->status, &refused);
	if (!res->body)
		vhca_error_prefix(&refused, "%s", t->label);
	if (err)
		*err = refused;
	return -EREMOTEIO;
}
