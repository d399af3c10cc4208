/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_OPENSM_HTTP_PAGE_PAGE_H
#define VHCA_OPENSM_HTTP_PAGE_PAGE_H
/* GET /: opensm/http/page/ in one piece; made at build time by tools/page-to-c. */

extern const char vhca_osm_page[];
/* The Content-Security-Policy that lets its own style and script in, and nothing else. */
extern const char vhca_osm_page_policy[];

#endif
