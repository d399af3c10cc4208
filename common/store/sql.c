// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/store/store_private.h"

static void finalize(sqlite3_stmt **stmt)
{
	(void)sqlite3_finalize(*stmt); /* repeats the error of the last step, which was handled */
}
#define AUTO_FINALIZE VHCA_CLEANUP(finalize) sqlite3_stmt

int vhca_sql_errno(int rc)
{
	static const struct {
		int rc, error;
	} table[] = {
		{SQLITE_OK, 0},
		{SQLITE_DONE, 0},
		{SQLITE_ROW, 0},
		{SQLITE_ERROR, EINVAL}, /* the statement is wrong */
		{SQLITE_BUSY, EBUSY},
		{SQLITE_LOCKED, EBUSY},
		{SQLITE_NOMEM, ENOMEM},
		{SQLITE_READONLY, EROFS},
		{SQLITE_FULL, ENOSPC},
		{SQLITE_CONSTRAINT, EEXIST},
		{SQLITE_CORRUPT, EUCLEAN},
		{SQLITE_NOTADB, EUCLEAN},
		{SQLITE_PERM, EACCES},
		{SQLITE_CANTOPEN, ENOENT},
		{SQLITE_TOOBIG, EMSGSIZE},
		{SQLITE_MISMATCH, EINVAL},
		{SQLITE_RANGE, EINVAL},
	};

	for (size_t i = 0; i < VHCA_ARRAY_SIZE(table); i++)
		if (table[i].rc == (rc & 0xff)) /* without the extended bits */
			return -table[i].error;
	return -EIO;
}

void vhca_sql_free(struct vhca_sql *sql)
{
	if (!sql)
		return;
	for (size_t i = 0; i < sql->n_args; i++)
		free(sql->args[i].text);
	free(sql->text);
	free(sql);
}

/* Takes one argument off the list; false without memory. An unknown type is found out by bind(). */
static bool take_arg(struct vhca_sql_arg *arg, char type, va_list *ap)
{
	const char *text;

	arg->type = type;
	if (type == 'i')
		arg->number = va_arg(*ap, int64_t);
	if (type == 'u')
		arg->number = (int64_t)va_arg(*ap, uint64_t);
	if (type != 's')
		return true;
	text = va_arg(*ap, const char *);
	arg->text = text ? strdup(text) : NULL;
	return !text || arg->text;
}

struct vhca_sql *vhca_sql_new(const char *text, const char *types, va_list ap)
{
	VHCA_CLEANUP(vhca_sql_freep) struct vhca_sql *sql = NULL;
	size_t n = strlen(types);
	va_list copy;
	bool ok = true;

	sql = calloc(1, sizeof(*sql) + n * sizeof(sql->args[0]));
	if (!sql)
		return NULL;
	sql->n_args = n;
	sql->text = strdup(text);
	va_copy(copy, ap); /* so that it can be passed on by address */
	for (size_t i = 0; i < n && ok; i++)
		ok = take_arg(&sql->args[i], types[i], &copy);
	va_end(copy);
	return sql->text && ok ? vhca_steal_ptr(&sql) : NULL;
}

static int bind(sqlite3_stmt *stmt, int index, const struct vhca_sql_arg *arg)
{
	if (arg->type == 's')
		return sqlite3_bind_text(stmt, index, arg->text, -1, SQLITE_TRANSIENT);
	if (arg->type == 'i' || arg->type == 'u')
		return sqlite3_bind_int64(stmt, index, arg->number);
	return SQLITE_RANGE;
}

int vhca_sql_prepare(sqlite3 *db, const struct vhca_sql *sql, sqlite3_stmt **ret)
{
	AUTO_FINALIZE *stmt = NULL;
	const char *tail;
	int rc;

	rc = sqlite3_prepare_v2(db, sql->text, -1, &stmt, &tail);
	if (rc != SQLITE_OK)
		return vhca_sql_errno(rc);
	/* A forgotten argument would be NULL, a second statement would be skipped: both in silence.
	 */
	if (!stmt || tail[strspn(tail, " \t\n;")] ||
	    (size_t)sqlite3_bind_parameter_count(stmt) != sql->n_args)
		return -EINVAL;
	for (size_t i = 0; i < sql->n_args && rc == SQLITE_OK; i++)
		rc = bind(stmt, (int)i + 1, &sql->args[i]);
	if (rc != SQLITE_OK)
		return vhca_sql_errno(rc);
	*ret = vhca_steal_ptr(&stmt);
	return 0;
}

int vhca_sql_run(sqlite3 *db, const struct vhca_sql *sql)
{
	AUTO_FINALIZE *stmt = NULL;
	int r, rc;

	r = vhca_sql_prepare(db, sql, &stmt);
	if (r < 0)
		return r;
	do
		rc = sqlite3_step(stmt);
	while (rc == SQLITE_ROW);
	return vhca_sql_errno(rc);
}

int vhca_sql_exec(sqlite3 *db, const char *text)
{
	return vhca_sql_errno(sqlite3_exec(db, text, NULL, NULL, NULL));
}

int vhca_sql_number(sqlite3 *db, const char *text, int64_t *ret)
{
	AUTO_FINALIZE *stmt = NULL;
	int rc;

	rc = sqlite3_prepare_v2(db, text, -1, &stmt, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW)
		return rc == SQLITE_DONE ? -ENODATA : vhca_sql_errno(rc);
	*ret = sqlite3_column_int64(stmt, 0);
	return 0;
}
