/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_CTL_CLI_SERVER_H
#define VHCA_CTL_CLI_SERVER_H
/* Where the server is, and who asks it, by the options that all programs have: ctl->server but for
 * what it is called there. Reads files, asks nobody. Errors: usage, credentials. */
#include "common/http/auth.h"
#include "ctl/cli/ctl.h"

/* No option of those for https may be there. */
int vhca_ctl_use_socket(struct vhca_ctl *ctl, const char *path, struct vhca_error *err);
/* what says where the URL stands: "--url". There may be a secret in it: no message shows it. */
int vhca_ctl_parse_url(struct vhca_ctl *ctl, const char *what, const char *url,
		       struct vhca_error *err);
/* Of the URL that is in ctl->server; the options take the place of what is in files. */
int vhca_ctl_use_url(struct vhca_ctl *ctl, struct vhca_http_auth_files files,
		     struct vhca_error *err);
/* "usage". */
int vhca_ctl_refuse(struct vhca_error *err, const char *message, const char *hint);

#endif
