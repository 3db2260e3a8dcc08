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

"""What udev tells its listeners, libvirt for example."""

import itertools
import socket
import struct
import time


class Udev:
    """Sends what udev tells its listeners of devices that come and go.

    All of the network namespace hear it in which this is made.
    """

    _NETLINK_KOBJECT_UEVENT = 15
    _GROUP = 2
    _MAGIC = 0xFEEDCAFE

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW, self._NETLINK_KOBJECT_UEVENT
        )
        self._socket.bind((0, 0))
        self._number = itertools.count(int(time.time()))

    def tell(
        self, action: str, device: str, subsystem: str, uevent: str = ''
    ) -> None:
        """:param uevent: further properties, as in the file of that name"""
        number = next(self._number)
        properties = ''.join(
            f'{line}\0'
            for line in (
                f'ACTION={action}',
                f'DEVPATH=/{device}',
                f'SUBSYSTEM={subsystem}',
                f'SEQNUM={number}',
                f'USEC_INITIALIZED={number}',
                *uevent.split(),
            )
        ).encode()
        # prefix, magic, sizes and offset; no filters of listeners
        header = struct.pack(
            '=8sIIII16x',
            b'libudev',
            socket.htonl(self._MAGIC),
            40,
            40,
            len(properties),
        )
        self._socket.sendto(header + properties, (0, self._GROUP))
