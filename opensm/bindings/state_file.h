/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_BINDINGS_STATE_FILE_H
#define VHCA_OPENSM_BINDINGS_STATE_FILE_H
/*
 * The table as a text, one record a line:
 *
 *    vhcasm-state 2
 *    t VGUID EPOCH PORT_GUID                         tombstones, oldest first
 *    n VGUID EPOCH PORT_GUID                         of those that were never bound
 *    b VGUID EPOCH PORT_GUID GID_INDEX LID PKEY,...  bindings ("-" = no keys)
 *    o VGUID PORT_GUID                               the other party, 0 = none; of a tombstone
 *                                                    that its last port has kept
 *    u VGUID                                         whose it is is not known yet
 *    d VGUID                                         ... is disputed
 *    m PORT_GUID PKEY,...                            declared keys
 *    i PORT_GUID PKEY,...                            inherited keys
 *    p PORT_GUID NODE                                ports that have a node
 *    end RECORDS
 *
 * The last line proves that nothing is missing. A file that does not match to the letter is refused
 * as a whole: what it protects (who owns an address) must not be guessed.
 */
#include <stddef.h>

#include "common/base/error.h"
#include "opensm/bindings/table.h"

/* Longest text that is read back: there is room for all bindings, and for all ports twice, with as
 * many keys as each may have. */
#define VHCA_OSM_STATE_MAX (384 * 1024 * 1024)

/* Writes the text into a malloc'ed buffer that the caller frees. */
int vhca_osm_state_format(const struct vhca_osm_table *t, char **ret_text, size_t *ret_len);
/* Fills an empty table from a text (changed while parsing). Errors name the line: state_damaged;
 * both_memberships if a port has both forms of a key, which the table does not take. */
int vhca_osm_state_parse(char *text, struct vhca_osm_table *t, struct vhca_error *err);

/*
 * The same with a file. Loading returns 1 if there is none. Errors: state_unreadable, and those of
 * parsing. Saving is blocking (fsync); -errno.
 */
int vhca_osm_state_load(const char *path, struct vhca_osm_table *t, struct vhca_error *err);
int vhca_osm_state_save(const char *path, const struct vhca_osm_table *t);

#endif
