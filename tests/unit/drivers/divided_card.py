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

"""A host with one card that is carved."""

import json

import fixtures
import testtools

from nova_accel.drivers import nvidia_vfio
from nova_accel.host import sysfs_tree
from nova_accel.model.devices import device_spec
from nova_accel.testing import driver_conformance
from nova_accel.testing import fake_sysfs
from nova_accel.testing import nvidia_cards
from nova_accel.testing import nvidia_smi
from nova_accel.testing import simulated_mdevs
from unit.drivers import base

CARD = '0000:3d:00.0'
ALL = ('mig:*', 'vgpu:*')


class CardTestCase(testtools.TestCase):
    """Its card is an H100 with 16 virtual functions.

    :ivar card: it
    :ivar tool: of the host
    """

    product_id = '2330'
    count = 16

    def setUp(self):
        super().setUp()
        self.sysfs = self.useFixture(fake_sysfs.FakeSysfs())
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.host.nvidia_smi._GIVES_WAY_S', 0.01
            )
        )
        self.functions = base.sriov(
            CARD, '10de', self.product_id, self.product_id, self.count
        )
        for each in self.functions:
            self.sysfs.identify(each.address, '10de', self.product_id)
        self.card = nvidia_cards.Card(
            CARD, [str(each.address) for each in self.functions[1:]]
        )
        self.tool = self.useFixture(
            nvidia_smi.NvidiaSmi(self.sysfs, [self.card])
        )
        (spec,) = device_spec.parse(
            [
                json.dumps(
                    {
                        'vendor_id': '10de',
                        'driver': 'nvidia_vfio',
                        'shapes': ['mig:*', 'vgpu:*'],
                    }
                )
            ],
            ['nvidia_vfio'],
        )
        # The privileged process reads its own configuration.
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.offered._lines', lambda: (spec,)
            )
        )
        self.spec = spec

    def a_driver(self):
        return nvidia_vfio.NvidiaVfioDriver(
            None, self.sysfs.sysfs, driver_conformance.NODE_UUID
        )

    def discover(self, *shapes, **keys):
        host = simulated_mdevs.SimulatedMdevs(self.functions).look()
        line = {
            'vendor_id': '10de',
            'driver': 'nvidia_vfio',
            'shapes': shapes or ALL,
            **keys,
        }
        (spec,) = device_spec.parse([json.dumps(line)], None)
        with sysfs_tree.noting() as notes:
            device = self.a_driver().discover(self.functions[0], spec, host)
        self.assertEqual([], notes.texts())
        return device

    def units(self, *shapes):
        """Shape -> its handles, by their starts."""
        found = {}
        for each in self.discover(*shapes).handles:
            found.setdefault(each.slice.shape, []).append(each)
        return found

    def made(self):
        """The slices of memory of the card's instances, by their functions."""
        return {
            function: self.card.instances[number].start
            for function, (_type, number) in self.card.vgpus.items()
        }
