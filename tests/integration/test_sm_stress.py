#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The cases of test_sm_plugin.py in which four clients ask at once while OpenSM sweeps: for the thread sanitizer, which cannot wait for all the others."""

import tap
from test_sm_plugin import Stress    # pylint: disable=unused-import

tap.main(__name__)
