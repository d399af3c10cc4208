/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_TESTS_UNIT_COMMON_HTTP_CERTS_H
#define VHCA_TESTS_UNIT_COMMON_HTTP_CERTS_H
/*
 * Certificates of a day for tests. In the directory afterwards, NAME.pem and NAME.key of each:
 *
 *   ca        an authority
 *   other-ca  another one
 *   server    of ca, for 127.0.0.1 and localhost
 *   client    of ca
 *   stranger  of other-ca, for the same names as server
 *   expired   of ca, as server, until yesterday
 *   future    of ca, as server, from tomorrow on
 *
 *   named     of ca, for the URI spiffe://x/y, 192.0.2.7, HV1.example.org and hv2.example.org
 *   by-uri    of ca, for 192.0.2.7 and the URI spiffe://x/y
 *   by-address  of ca, for 2001:db8::7
 *   unnamed   of ca, for nothing
 *   ill-named of ca, for the hosts "x:admin *" and "hv1" with more behind a NUL byte
 *
 *   for-clients, for-servers, for-mail, for-code, for-anything
 *             of ca, with this one extendedKeyUsage; the others have none
 *
 *   ca-none.crl, ca-client.crl, ca-server.crl, ca-old.crl
 *             of ca: who is revoked; the last has expired. The same of other-ca, whose serial
 *             numbers are those of ca
 *
 * Returns 0, or -1 if any of it failed.
 */
int certs_make(const char *dir);

/*
 * Each authority times each purpose, name, time and word of its revocation list:
 *
 *   AUTHORITY-PURPOSE-NAME-TIME-WORD.pem
 *             {ca, other-ca} × {none, clients, servers, mail, code, anything}
 *             × {listed, unlisted, unnamed} × {now, past, future} × {kept, revoked}
 *   matrix.key
 *             of them all
 *   AUTHORITY.pem, AUTHORITY-server.pem and .key, AUTHORITY-matrix.crl
 *
 * "listed" is for the host hv1.matrix, "unlisted" for hv2.matrix. 0 or -1, as above.
 */
int certs_make_matrix(const char *dir);

#endif
