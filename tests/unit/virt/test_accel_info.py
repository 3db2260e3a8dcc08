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

import testtools

from nova_accel.virt import accel_info

OURS = {'uuid': 'a', 'hostname': 'here', 'device_rp_uuid': 'ours'}
CYBORGS = {'uuid': 'b', 'hostname': 'here', 'device_rp_uuid': 'other'}
LEFT_BEHIND = {'uuid': 'c', 'hostname': 'there', 'device_rp_uuid': 'theirs'}


class TestOfPorts(testtools.TestCase):
    def test_ports_with_our_functions(self):
        def port(**profile):
            return {'profile': profile}

        self.assertEqual(
            frozenset({'a'}),
            accel_info.of_ports(
                [
                    port(arq_uuid='a', pci_slot='0000:81:00.1'),
                    port(arq_uuid='of-cyborg', pci_slot='0000:99:00.1'),
                    port(pci_slot='0000:81:00.2'),
                    port(),
                    {'profile': None},
                ],
                {'0000:81:00.1', '0000:81:00.2'},
            ),
        )


class TestSplit(testtools.TestCase):
    def split(self, *arqs):
        return accel_info.split(arqs, 'here', {'ours'})

    def test_ours_and_cyborgs(self):
        self.assertEqual(
            accel_info.Split(('a',), (CYBORGS,)), self.split(CYBORGS, OURS)
        )

    def test_what_another_host_has_not_given_back_is_neither(self):
        self.assertEqual(
            accel_info.Split(('a',)), self.split(LEFT_BEHIND, OURS)
        )

    def test_none(self):
        self.assertEqual(accel_info.Split(), self.split())
