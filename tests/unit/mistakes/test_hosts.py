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

"""Mistakes in ``device_spec`` that only the host's devices show."""

import fixtures
import testscenarios

from nova_accel.client import accelerator_api
from nova_accel.model.providers import host_view
from nova_accel.virt.publishing import periodic_work
from nova_accel.virt.publishing import publication
from unit.mistakes import base
from unit.virt.publishing import test_discovery

_mistake = base.mistake


class TestRefused(
    testscenarios.WithScenarios,
    test_discovery.DiscoveryTestCase,
    base.MistakeTestCase,
):
    """nova-compute starts without the devices, and logs why."""

    line: dict[str, object]

    scenarios = [
        _mistake(
            'an option of another driver',
            '"mdev_type" is not for the driver pci, but for mdev, nvidia_vgpu',
            'remove the key, or name the right driver',
            line={
                'address': '81:00.0',
                'driver': 'pci',
                'type': 'GPU',
                'mdev_type': 'nvidia-11',
            },
        ),
        _mistake(
            'cleaning that the driver cannot do',
            '"clean": "sanitize" does not work with the driver pci',
            'but command, none, reset',
            line={'address': '83:00.1', 'driver': 'pci', 'clean': 'sanitize'},
        ),
        _mistake(
            'no type of mediated devices',
            test_discovery.GPU,
            'the line must have an "mdev_type" that it makes',
            line={'address': '81:00.0', 'driver': 'mdev'},
        ),
        _mistake(
            'no device of the host',
            '"vendor_id": "10ee"',
            'matches no device of this host that an earlier line has not: '
            'correct it, or remove it',
            line={'vendor_id': '10ee', 'driver': 'pci'},
        ),
    ]

    def test_it_is_logged(self) -> None:
        log = self.useFixture(fixtures.FakeLogger())
        node = host_view.Node('host1', test_discovery.NODE_UUID, 'service')
        board = host_view.CurrentState(host_view.View(node.uuid))
        publisher = publication.Publisher(
            node,
            lambda: self.discover(test_discovery.a_line(**self.line)),
            accelerator_api.AcceleratorApi(None, 'host1'),
            board,
            periodic_work.Cycle(3600, board.findings),
        )
        for _look in range(2):
            publisher.refresh()
        self.assert_told(log.output)
        self.assertEqual(1, log.output.count('device_spec ='))
        self.assertEqual((), board.view.devices)
