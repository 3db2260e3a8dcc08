# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Tests with a real libvirtd, on hosts whose /sys is hand-written.

The hosts are those of tools/lab. Not named after libvirt: then what imports
libvirt would find this.
"""

import threading

import libvirt


def _run_events() -> None:
    while True:
        libvirt.virEventRunDefaultImpl()


# As initialize() of Nova's Host has it, which leaves a thread without an end.
# Where eventlet replaces threads, it does so below; this one has to be real.
libvirt.virEventRegisterDefaultImpl()
libvirt.registerErrorHandler(lambda _context, _error: None, None)
threading.Thread(target=_run_events, daemon=True).start()

import nova.tests.functional  # noqa: E402, F401
