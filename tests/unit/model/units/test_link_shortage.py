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

import dataclasses

import testtools

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import free_units
from nova_accel.model.units import host_links
from nova_accel.model.units import link_shortage
from unit import call_count
from unit.model import boards


def parts(*amounts, link='nvlink', **kwargs):
    return [
        device_profile.Group({'PGPU': amount}, link=link, **kwargs)
        for amount in amounts
    ]


class TestDoubts(testtools.TestCase):
    def doubts(self, *groups):
        return list(
            link_shortage.doubts(groups, ['board nvlink=8', 'pair nvlink=2'])
        )

    def test_sizes_that_hosts_have(self):
        self.assertEqual([], self.doubts(*parts(2)))
        self.assertEqual([], self.doubts(*parts(4, 4)))
        self.assertEqual([], self.doubts(*parts(3, link=None)))

    def test_sizes_that_no_host_has(self):
        self.assertEqual(
            [
                'no host has PGPU=3 joined by NVLink, as groups 0, 1 ask for: '
                'hosts have sets of 2, 8'
            ],
            self.doubts(*parts(1, 2)),
        )
        self.assertEqual(
            [
                'no host has PGPU=2 joined by one PCIe switch, as group 0 '
                'asks for: hosts have no such sets'
            ],
            self.doubts(*parts(2, link='pcie')),
        )


class TestFind(testtools.TestCase):
    def found(self, groups, *used):
        """The text, on hosts with a board each of which these are used."""
        return str(
            link_shortage.find(groups, [boards.links(each) for each in used])
        )

    def test_no_host_has_such_a_link(self):
        self.assertEqual(
            'no set of a host joins 2', self.found(parts(2, link='pcie'), ())
        )
        self.assertEqual('no set of a host joins 2', self.found(parts(2)))

    def test_no_such_size(self):
        self.assertEqual(
            'no set of a host joins 6, nearest: sets of 2, 4, 8',
            self.found(parts(2, 2, 2), ()),
        )

    def test_all_sets_are_broken(self):
        self.assertEqual(
            'none of 4 sets that join 4 has as many free, nearest: a set of '
            '2 is free',
            self.found(parts(2, 2), {0, 4}, {1, 5}),
        )
        self.assertEqual(
            'the only set that joins 8 has not as many free, nearest: a set '
            'of 4 is free',
            self.found(parts(2, 2, 2, 2), {0}),
        )

    def test_single_ones_are_free(self):
        self.assertEqual(
            'none of 4 sets that join 2 has as many free, nearest: 4 free on '
            'one host, not joined',
            self.found(parts(2), {0, 2, 4, 6}),
        )

    def test_nothing_is_free(self):
        self.assertEqual(
            'none of 4 sets that join 2 has as many free',
            self.found(parts(2), range(8)),
        )

    def test_other_devices(self):
        self.assertEqual(
            'no set that joins 2 has devices as they are asked for',
            self.found(parts(2, required=frozenset({'CUSTOM_B200'})), ()),
        )

    def test_one_can(self):
        self.assertIsNone(link_shortage.find(parts(2), [boards.links({0})]))

    def test_two_classes(self):
        gpu, *_others = parts(1, link='numa')
        card = dataclasses.replace(gpu, resources={'CUSTOM_NIC': 1})
        self.assertEqual(
            'no set that joins 2 has devices as they are asked for',
            self.found([gpu, card], ()),
        )

    def test_each_unit_is_looked_at_once(self):
        """A host decides in how many sets the devices of a pool are."""
        calls = [self.calls(devices) for devices in (100, 200, 400)]
        self.assertLess(calls[2], 4.2 * calls[0] + 1000, calls)

    def calls(self, devices):
        """How many functions are called to find out why none is free."""
        host = host_links.HostLinks(
            {
                'pool': [
                    free_units.FreeUnits(
                        f'{number}',
                        'pool',
                        'PGPU',
                        frozenset(),
                        0,
                        1,
                        (f'set-{number // 2} nvlink=2',),
                    )
                    for number in range(devices)
                ]
            }
        )

        def find():
            found = link_shortage.find(parts(2), [host])
            self.assertIn('has as many free', str(found))

        return call_count.calls_of(find)
