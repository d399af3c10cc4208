/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_CERTS_H
#define VHCA_TESTS_CERTS_H
/*
 * Certificates of a day for tests. In the directory afterwards, NAME.pem and NAME.key of each:
 *
 *   ca        an authority              server    of ca, for 127.0.0.1 and localhost      expired   of ca, as server, until yesterday
 *   other-ca  another one               client    of ca                                   future    of ca, as server, from tomorrow on
 *                                       stranger  of other-ca, for the same names as server
 *
 *   for-clients, for-servers, for-mail, for-code, for-anything
 *             of ca, with this one extendedKeyUsage; the others have none
 *
 * Returns 0, or -1 if any of it failed.
 */
int certs_make(const char *dir);

#endif
