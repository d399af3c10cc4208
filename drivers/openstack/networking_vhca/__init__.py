# SPDX-License-Identifier: LGPL-2.1-or-later
"""Neutron's side of vhcad: a mechanism driver of ML2 (mech_driver) and the L2 agent of a host (agent)."""

AGENT_TYPE = 'vHCA agent'
VIF_TYPE = 'ib_hostdev'
