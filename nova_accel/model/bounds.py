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

"""Limits on the values in a host's report and in requests to Placement.

The API's JSON schemas use them.

Patterns end with ``\\Z``: ``$`` would accept a line feed at the end. No text
may have a NUL, which PostgreSQL cannot store, or half of a surrogate pair,
which cannot be encoded as UTF-8.
"""

MAX_TEXT = 255

TEXT = '^[^\0\ud800-\udfff]*\\Z'

#: Control characters, ends of lines, and characters that cannot be seen or
#: turn the direction of others: a terminal or a reader of a log is deceived.
_DECEIVING = (
    r'\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e'
    r'\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff'
)

#: The name of something on a host.
PLAIN_NAME = f'^[^{_DECEIVING}]{{1,{MAX_TEXT}}}\\Z'

#: Nova's ``[DEFAULT] host``, which Nova lets be any word.
SERVICE_HOST = rf'^[^\s{_DECEIVING}]{{1,{MAX_TEXT}}}\Z'

#: Only the canonical form, because the database compares texts.
UUID = r'^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z'

#: The name of a trait or a resource class.
PLACEMENT_NAME = r'^[A-Z0-9_]{1,255}\Z'

PCI_ADDRESS = r'^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]\Z'

PCI_ID = r'^[0-9a-f]{4}\Z'

#: Devices of a host. Some hosts have forty thousand functions, each a device.
MAX_DEVICES = 48 * 1024

#: Devices in one part of a host's report.
MAX_DEVICES_OF_PART = 1024

#: The parts of a device, as its driver answers: deployables, regions,
#: attributes, units and traits together.
MAX_PARTS = 16 * 1024

#: Bounds of a device.
MAX_ATTRIBUTES = 64
MAX_DEPLOYABLES = 256

#: Bounds of a deployable. A driver also gives no more traits to a device: for
#: each one that is new, Placement is asked to make it.
MAX_HANDLES = 1024
MAX_TRAITS = 1024

#: Bounds of an attach handle.
MAX_FURTHER_FUNCTIONS = 255

MAX_NUMA_NODE = 1023

#: NUMA nodes of a guest; it has no more cells.
MAX_NUMA_NODES = 64

#: The sets of joined devices that a device is in, and the length of the text
#: of one, see :mod:`nova_accel.model.link_places`.
MAX_LINK_SETS = 8
MAX_LINK_SET = 128
