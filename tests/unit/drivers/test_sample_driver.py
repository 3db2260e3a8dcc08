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

from importlib import metadata
import pathlib
import sys
import tomllib

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.drivers import base as driver_base
from nova_accel.drivers import loading
from nova_accel.model.devices import device_spec
from unit.drivers import base

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
PACKAGE = pathlib.Path(__file__).parents[2] / 'sample_driver'


class Installed(fixtures.Fixture):
    """The package as pip would install it, in a directory of its own."""

    def _setUp(self):
        site = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        project = tomllib.loads((PACKAGE / 'pyproject.toml').read_text())[
            'project'
        ]
        installed = site / 'acme_nova-1.0.dist-info'
        installed.mkdir()
        (installed / 'METADATA').write_text(
            f'Metadata-Version: 2.1\nName: {project["name"]}\n'
            f'Version: {project["version"]}\n'
        )
        (installed / 'entry_points.txt').write_text(
            ''.join(
                f'[{group}]\n'
                + ''.join(
                    f'{name} = {value}\n' for name, value in points.items()
                )
                for group, points in project['entry-points'].items()
            )
        )
        (site / 'acme_nova').symlink_to(PACKAGE / 'acme_nova')
        self.useFixture(
            fixtures.MonkeyPatch('sys.path', [*sys.path, str(site)])
        )
        self.addCleanup(sys.modules.pop, 'acme_nova', None)


def acme():
    """The class, as it is loaded by its entry point."""
    with Installed():
        (point,) = metadata.entry_points(group=loading.NAMESPACE, name='acme')
        return point.load()


class TestEntryPoint(testtools.TestCase):
    def test_it_is_one_of_the_drivers(self):
        self.assertNotIn('acme', loading.names())
        self.useFixture(Installed())
        self.assertIn('acme', loading.names())
        self.assertIsInstance(
            loading.load(None, None, NODE_UUID)['acme'], driver_base.Driver
        )
        (spec,) = device_spec.parse(
            ['{"vendor_id": "ac3e", "driver": "acme"}'], loading.names()
        )
        self.assertEqual('acme', spec.driver)


class TestConformance(base.DriverTestCase):
    driver = acme()
    spec = {'vendor_id': 'ac3e'}

    def functions(self):
        return base.sriov(self.CARD, 'ac3e', '0001', '0002', 4)

    def test_its_own_step(self):
        (handle, *_others) = self.handles(self.discover())
        self.sysfs.set(handle.address, acme__state='failed')
        self.assertRaises(exceptions.DeviceError, self.a_driver().plug, handle)
