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

import pathlib

import testtools

from nova_accel.model.devices import host_uses

GUIDE = (
    pathlib.Path(__file__).parents[4]
    / 'doc/source/admin/attachable-devices.rst'
)


class TestUses(testtools.TestCase):
    def test_the_guide_has_each(self):
        rows = GUIDE.read_text().split('   * - ')
        told = {' '.join(row.split()) for row in rows}
        for use in host_uses.every():
            self.assertTrue(
                any(
                    row.startswith(f'{use.what} - {use.cure}') for row in told
                ),
                f'{GUIDE.name} lacks: {use.what} - {use.cure}',
            )

    def test_commands_as_the_kernel_cuts_them(self):
        for command, cure in (
            ('nvidia-persistenced', 'disable --now nvidia-persistenced'),
            ('nv-fabricmanager', 'FABRIC_MODE=1'),
            ('dcgm-exporter', 'disable --now nvidia-dcgm'),
            ('amd-metrics-exporter', 'disable --now amd-metrics-exporter'),
            ('habanalabs-exporter', 'stop habanalabs-exporter'),
            ('ceph-osd', 'use another NIC'),
            ('python3', 'end the process'),
            ('', 'end the process'),
        ):
            self.assertIn(cure, host_uses.of_command(command[:15]).cure)
