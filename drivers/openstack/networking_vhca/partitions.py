# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which partitions Neutron wants a port to have, as the list that vhcad takes."""

import re

from neutron_lib import constants

FULL = 0x8000
DEFAULT_PARTITION = 0xffff
SEGMENT_MAX = 0x7ffe
KEYS_MAX = 127
PROFILE_KEY = 'ib_pkeys'
ENTRY = re.compile(r'(0x[0-9a-fA-F]{1,4})(?:=(full|limited))?')


class BadPartitions(Exception):
    """The port has a segment or a profile that is no partition."""


def _entry_key(entry):
    match = ENTRY.fullmatch(entry.strip())
    if not match:
        raise BadPartitions(f'binding:profile: {PROFILE_KEY} has "{entry[:40]}": want 0x8001, 0x0001=full or 0x0001=limited')
    key = int(match[1], 16)
    key = {'full': key | FULL, 'limited': key & ~FULL}.get(match[2], key)
    if not key & ~FULL:
        raise BadPartitions(f'binding:profile: {PROFILE_KEY} has "{entry[:40]}": 0 is no partition')
    return key


def _profile_keys(text):
    if not isinstance(text, str):
        raise BadPartitions(f'binding:profile: {PROFILE_KEY} is no text')
    entries = text.split(',')
    if len(entries) > KEYS_MAX:
        raise BadPartitions(f'binding:profile: {PROFILE_KEY} has more than {KEYS_MAX} entries')
    return [_entry_key(entry) for entry in entries]


def _segment_key(details):
    if details['network_type'] != constants.TYPE_VLAN:
        return DEFAULT_PARTITION
    segment = details['segmentation_id']
    if not isinstance(segment, int) or not 0 < segment <= SEGMENT_MAX:
        raise BadPartitions(f'segment {segment} is no partition: want 1 to {SEGMENT_MAX}')
    return FULL | segment


def wanted(details):
    """Of an active binding's `get_device_details`; in the order of the guest's table."""
    if not details['admin_state_up']:
        return []
    profile = details.get('profile') or {}
    keys = _profile_keys(profile[PROFILE_KEY]) if PROFILE_KEY in profile else [_segment_key(details)]
    return [f'0x{key:04x}' for key in keys]
