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

"""What a Cyborg could have in its database, row by row."""

import json
from typing import Any
import uuid

from nova_accel.model.cyborg import hosts
from nova_accel.model.cyborg import snapshot

PROJECT = 'c' * 32


def pci_info(bus: int, function: int = 0, **further: str) -> str:
    """``attach_info`` of a PCI function, as Cyborg's drivers write it."""
    return json.dumps(
        {
            'bus': f'{bus:02x}',
            'device': '00',
            'domain': '0000',
            'function': f'{function}',
            **further,
        }
    )


def mdev_info(bus: int, number: int, asked_type: str = 'nvidia-223') -> str:
    """``attach_info`` of a mediated device of the card on a bus."""
    return pci_info(
        bus, asked_type=asked_type, vgpu_mark=f'{asked_type}_{number}'
    )


class MadeUpCyborg:
    """Rows that are added one after the other.

    The host that Cyborg knows as ``compute-1`` is node ``compute-1.example``
    of Nova, and so on.
    """

    def __init__(self) -> None:
        self._rows: dict[str, list[Any]] = {
            name: [] for name in snapshot.Snapshot._fields
        }
        self._number = 0

    def snapshot(self) -> snapshot.Snapshot:
        return snapshot.Snapshot(
            **{name: tuple(rows) for name, rows in self._rows.items()}
        )

    @staticmethod
    def node(hostname: str) -> hosts.CyborgNode:
        return hosts.CyborgNode(
            str(uuid.uuid5(uuid.NAMESPACE_DNS, f'node of {hostname}')),
            f'{hostname}.example',
            hostname,
        )

    def profile(
        self,
        name: str,
        *groups: dict[str, Any],
        description: str | None = None,
    ) -> int:
        """:returns: its id"""
        return self._add(
            'profiles',
            snapshot.Profile(
                self._next(),
                self.uuid(),
                name,
                json.dumps({'groups': groups}),
                description,
                None,
                None,
            ),
        )

    def device(self, hostname: str, bus: int = 0, **columns: Any) -> int:
        """An NVIDIA T4, unless the columns say something else.

        :returns: its id
        """
        row = snapshot.CyborgDevice(
            self._next(),
            self.uuid(),
            'GPU',
            '10de',
            'TU104GL [Tesla T4]',
            json.dumps({'product_id': '1eb8', 'controller': '3D controller'}),
            hostname,
            'enabled',
            None,
            None,
        )._replace(**columns)
        self._rows['controlpath_ids'].append(
            snapshot.ControlPath(row.id, pci_info(bus))
        )
        return self._add('devices', row)

    def deployable(
        self,
        device: int,
        resource_class: str,
        *infos: str,
        traits: tuple[str, ...] = (),
        attach_type: str = 'PCI',
        **columns: Any,
    ) -> list[int]:
        """A part of a device, with a handle for each ``attach_info``.

        :returns: the ids of the handles
        """
        row = snapshot.CyborgDeployable(
            self._next(),
            self.uuid(),
            f'part_{device}',
            device,
            len(infos),
            self.uuid(),
            'NVIDIA',
            None,
        )._replace(**columns)
        self._add('deployables', row)
        for key, value in (
            ('rc', resource_class),
            *((f'trait{index}', each) for index, each in enumerate(traits)),
        ):
            self._rows['attributes'].append(
                snapshot.Attribute(row.id, key, value)
            )
        return [
            self._add(
                'handles',
                snapshot.Handle(
                    self._next(), self.uuid(), row.id, attach_type, info
                ),
            )
            for info in infos
        ]

    def arq(
        self,
        profile: int,
        handle: int | None,
        instance_uuid: str | None,
        **columns: Any,
    ) -> str:
        """:returns: its uuid"""
        deployables = {row.id: row for row in self._rows['deployables']}
        handles = {row.id: row for row in self._rows['handles']}
        deployable = (
            None
            if handle is None
            else deployables[handles[handle].deployable_id]
        )
        row = snapshot.CyborgArq(
            self.uuid(),
            PROJECT,
            'Bound',
            profile,
            0,
            None,
            None if deployable is None else deployable.rp_uuid,
            instance_uuid,
            handle,
            None,
            None,
        )._replace(**columns)
        self._rows['arqs'].append(row)
        return row.uuid

    def uuid(self) -> str:
        """Another one at each call, the same ones in each run."""
        self._number += 1
        return str(uuid.uuid5(uuid.NAMESPACE_DNS, str(self._number)))

    def _add(self, table: str, row: Any) -> int:
        """:returns: its id"""
        self._rows[table].append(row)
        number: int = row.id
        return number

    def _next(self) -> int:
        self._number += 1
        return self._number
