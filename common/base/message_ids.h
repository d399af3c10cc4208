/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_BASE_MESSAGE_IDS_H
#define VHCA_BASE_MESSAGE_IDS_H
/*
 * MESSAGE_IDs of what is told for an audit: journalctl _UID=0 MESSAGE_ID=. Never changed, for
 * somebody looks for them; vhcad(8) and libvhcasm(7) list them with their fields.
 */
#define VHCA_MESSAGE_CHANGE  "b2f94a7d5b1c4be7a8d0f3c96e2a5d18" /* somebody has asked for it */
#define VHCA_MESSAGE_REFUSED "6c1e0f8b9d3a47529f7be4a1d5c83062" /* for want of a role */
#define VHCA_MESSAGE_PIN     "e57d3b90a2c64f1c8b46d19f0e7a5c23" /* of a port, to a node */
#define VHCA_MESSAGE_OWNER   "18a6c4f2d7e94b0ba35f6e8d2c9b7140" /* of a vGUID: another node's port */

#endif
