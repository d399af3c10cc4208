# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test rig: two hypervisor VMs under QEMU TCG. See docs/HACKING.md."""
