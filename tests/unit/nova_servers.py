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

"""Servers as Nova's databases have them, in this process."""

from typing import Any

import fixtures
from nova import exception
from nova import objects

from unit import message_bus

objects.register_all()


class NovaServers(fixtures.Fixture):
    """Both copies of the flavor of each server.

    :param bus: has the cell of the servers; None if no host is called
    :ivar cell: uuid -> the instance, with the flavor in the cell
    :ivar specs: uuid -> the flavor in the request spec
    :ivar fault: why no request spec can be saved, None if it can
    """

    def __init__(self, bus: message_bus.MessageBus | None = None) -> None:
        super().__init__()
        self._mapping = objects.CellMapping() if bus is None else bus.cell()
        self._has_bus = bus is not None
        self.cell: dict[str, objects.Instance] = {}
        self.specs: dict[str, objects.Flavor] = {}
        self.fault: Exception | None = None

    def _setUp(self) -> None:
        stand_ins = {
            'nova.objects.InstanceMapping.get_by_instance_uuid': self._mapped,
            'nova.objects.Instance.get_by_uuid': self._instance,
            'nova.objects.RequestSpec.get_by_instance_uuid': self._spec,
        }
        if not self._has_bus:
            stand_ins |= {
                'nova.context.set_target_cell': lambda _context, _cell: None,
                'nova_accel.api.compute.nova_setup.ensure': lambda: None,
            }
        for target, stand_in in stand_ins.items():
            self.useFixture(fixtures.MockPatch(target, stand_in))
        self.useFixture(
            fixtures.MonkeyPatch('nova.objects.RequestSpec.save', self._save())
        )

    def add(
        self,
        uuid: str,
        project_id: str,
        host: str | None,
        node: str | None = None,
        **extra_specs: str,
    ) -> None:
        """A server whose request spec says the same as its cell.

        :param node: Nova's nodename of its host, None for the host's name
        """
        self.cell[uuid] = objects.Instance(
            uuid=uuid, project_id=project_id, host=host, node=node or host
        )
        self.specs[uuid] = _flavor(extra_specs)
        self.change(uuid, **extra_specs)

    def change(self, uuid: str, **extra_specs: str) -> None:
        """Give it another flavor in the cell, as its host does."""
        self.cell[uuid].flavor = _flavor(extra_specs)

    def extra_specs(self, uuid: str) -> list[dict[str, str]]:
        """Those of both copies, the cell's first."""
        return [
            self.cell[uuid].flavor.extra_specs,
            self.specs[uuid].extra_specs,
        ]

    def _mapped(self, _context: Any, uuid: str) -> objects.InstanceMapping:
        if uuid not in self.cell:
            raise exception.InstanceMappingNotFound(uuid=uuid)
        return objects.InstanceMapping(
            instance_uuid=uuid, cell_mapping=self._mapping
        )

    def _instance(
        self, _context: Any, uuid: str, expected_attrs: list[str]
    ) -> objects.Instance:
        return self.cell[uuid].obj_clone()

    def _spec(self, _context: Any, uuid: str) -> objects.RequestSpec:
        if uuid not in self.specs:
            raise exception.RequestSpecNotFound(instance_uuid=uuid)
        return objects.RequestSpec(
            instance_uuid=uuid, flavor=self.specs[uuid].obj_clone()
        )

    def _save(self) -> Any:
        def save(spec: objects.RequestSpec) -> None:
            if self.fault is not None:
                raise self.fault
            self.specs[spec.instance_uuid] = spec.flavor

        return save


def _flavor(extra_specs: dict[str, str]) -> objects.Flavor:
    return objects.Flavor(flavorid='small', extra_specs=extra_specs)
