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

"""Each recorded host offers what its answer says, and nothing else.

An answer has, for a line of each driver that matches any function, or for the
lines that it writes out: what is offered, and what is refused or faulty, with
a part of the reason.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import json
import pathlib
import re
from typing import Any
import unittest

import fixtures
import jsonschema
from oslo_config import fixture as config_fixture
import testscenarios
import testtools
from testtools import matchers

from nova_accel import conf
from nova_accel.api.schemas import host as host_schema
from nova_accel.drivers import catalogue
from nova_accel.drivers import loading
from nova_accel.host import host_use
from nova_accel.host import nova_claims
from nova_accel.host import pci_function
from nova_accel.host import pci_topology
from nova_accel.model import host_contract
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.providers import provider_layout
from nova_accel.model.providers import publishable
from nova_accel.virt.publishing import device_links
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import gpu_links
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import link_memory
from nova_accel.virt.publishing import units_in_use
from recorded import recordings

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'

#: Keys that a driver wants in each of its lines.
_WANTED: Mapping[str, Mapping[str, Any]] = {
    'nic': {'physical_network': 'physnet1'}
}


def address(short: str) -> str:
    """``81:00.0`` of an answer is ``0000:81:00.0``."""
    return short if short.count(':') == 2 else f'0000:{short}'


class RecordedHost(testscenarios.WithScenarios, testtools.TestCase):
    scenarios = [
        (recordings.name_of(path), {'archive': path})
        for path in recordings.archives()
    ]

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(config_fixture.Config(conf.CONF))
        # The processes of this machine are not those of the recorded one.
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.privileged.gpu_nodes.opened', lambda: {}
            )
        )
        self.host = recordings.unpacked(self.archive)
        self.answer = recordings.answers(self.archive.parent.name)[
            recordings.name_of(self.archive)
        ]
        self.drivers = loading.load(
            self.host.node_devices, self.host.sysfs, NODE_UUID
        )

    def discover(self, *lines: Mapping[str, Any]) -> discovery.Discovered:
        return discovery.discover(
            self.host.node_devices,
            self.drivers,
            device_spec.parse(map(json.dumps, lines), self.drivers),
            nova_claims.NovaClaims('host1', NODE_UUID),
            lambda _mdevs: units_in_use.Found(),
            lambda: host_use.HostUse(self.host.sysfs),
            last_answers.LastAnswers(),
        )

    def test_every_function_is_read(self) -> None:
        self.assertEqual((), self.host.devices.unreadable)
        self.assertEqual(
            self.answer['functions'], len(self.host.devices.functions)
        )

    def test_each_driver(self) -> None:
        """A line for all functions offers those of its driver's kind."""
        answers = self.answer.get('drivers', {})
        self.assertLessEqual(answers.keys(), self.drivers.keys())
        for driver in self.drivers:
            line = {'vendor_id': '*', 'driver': driver}
            self._check(
                line | _WANTED.get(driver, {}), answers.get(driver, {})
            )

    def test_lines(self) -> None:
        for case in self.answer.get('lines', ()):
            self._check(case['line'], case)

    def test_links(self) -> None:
        """The devices of some lines that share a switch or a NUMA node."""
        for case in self.answer.get('links', ()):
            found = self._links().joined(
                self.discover(
                    *({'pool': 'link'} | line for line in case['lines'])
                )
            )
            self._publish(found)
            where = {
                device.name: str(device.address) for device in found.devices
            }
            sets = {
                kind: [
                    sorted(where[name] for name in each.members)
                    for node in found.links.nodes
                    for each in node.sets
                    if each.kind == kind
                ]
                for kind in ('nvlink', 'pcie', 'root', 'numa')
            }
            for kind in case.keys() - {'lines'}:
                self.assertEqual(
                    sorted(sorted(map(address, each)) for each in case[kind]),
                    sorted(sets[kind]),
                    f'{kind} of {case["lines"]}',
                )

    def test_place_of_each_function(self) -> None:
        """Each has a place in the tree that is below the one above it."""
        for function in self.host.devices.functions.values():
            if self.host.sysfs.real_path(function.address) is None:
                self.assertIn(str(function.address), self.answer['no_sysfs'])
                continue
            path = pci_topology.path(self.host.sysfs, function.address)
            self.assertEqual(
                function.upstream, (*path.bridges, None)[len(path.bridges) - 1]
            )
            self.assertEqual(function.numa_node, path.numa_node)

    def test_processes_on_partitions(self) -> None:
        """A process on any node of KFD keeps its whole GPU from guests."""
        found: dict[str, int] = {}
        for properties in self.host.sysfs.root.glob(
            'class/kfd/kfd/topology/nodes/*/properties'
        ):
            [minor] = re.findall(
                r'^drm_render_minor (\d+)$', properties.read_text(), re.M
            )
            opened = {f'dri/renderD{minor}': [(4711, 'python3')]}
            if minor == '0':
                # It is a processor.
                continue
            with fixtures.MonkeyPatch(
                'nova_accel.privileged.gpu_nodes.opened',
                lambda opened=opened: opened,
            ):
                uses = host_use.HostUse(self.host.sysfs)
                [used] = filter(uses.reason, self.host.devices.functions)
            found[str(used)] = found.get(str(used), 0) + 1
        self.assertEqual(
            {
                address(short): count
                for short, count in self.answer.get('partitions', {}).items()
            },
            found,
        )

    def _links(self) -> device_links.DeviceLinks:
        directory = self.useFixture(fixtures.TempDir()).path
        memory = link_memory.LinkMemory(pathlib.Path(directory, 'links.json'))
        return device_links.DeviceLinks(
            self.host.sysfs,
            memory,
            gpu_links.GpuLinks(self.host.sysfs, memory, lambda _addresses: ()),
        )

    def _check(
        self, line: Mapping[str, Any], expected: Mapping[str, Any]
    ) -> None:
        found = self.discover(line)
        self._nothing_vanishes(line, found)
        self._publish(found)
        offered = _offered(found.devices)
        if 'units' in expected:
            offered = {
                name.split()[0]: len(units) for name, units in offered.items()
            }
        # All lines of a host are checked, and all differences told.
        self.expectThat(
            offered,
            matchers.Equals(
                expected.get('units') or _expanded(expected.get('offered', {}))
            ),
            f'offered by {line}',
        )
        faults = {
            str(device.address): device.fault
            for device in found.devices
            if device.fault
        }
        self._told(expected.get('faulty', {}), faults, line)
        self.expectThat(
            faults.keys() - set(map(address, expected.get('faulty', {}))),
            matchers.Equals(set()),
            f'faulty by {line}: {faults}',
        )
        self._told(
            expected.get('refused', {}),
            _causes(found),
            line,
        )

    def _told(
        self,
        expected: Mapping[str, str],
        texts: Mapping[str, str],
        line: Mapping[str, Any],
    ) -> None:
        for short, part in expected.items():
            self.expectThat(
                texts,
                matchers.ContainsDict(
                    {address(short): matchers.Contains(part)}
                ),
                f'{short} by {line}',
            )

    def _nothing_vanishes(
        self, line: Mapping[str, Any], found: discovery.Discovered
    ) -> None:
        """Each function that the line matches is offered, or has a reason."""
        (spec,) = device_spec.parse([json.dumps(line)], self.drivers)
        told = _causes(found).keys()
        there = {
            str(each) for device in found.devices for each in device.addresses
        }
        for function in self.host.devices.functions.values():
            if spec.matches(function):
                # What is said of a card is said of its virtual functions, and
                # what is said of function 0 of those of its slot.
                names = {
                    str(function.address),
                    str(function.card),
                    str(dataclasses.replace(function.address, function=0)),
                    *map(str, function.virtual_functions),
                }
                self.assertTrue(
                    names & (told | there),
                    f'{function.address} vanishes by {line}',
                )

    def _publish(self, found: discovery.Discovered) -> None:
        """All that is offered can be published, as it is."""
        published = publishable.of('host1', found.devices)
        self.assertEqual((), published.left_out)
        self.assertEqual(tuple(found.devices), published.devices)
        layout = provider_layout.layout(
            'host1', NODE_UUID, published.devices, found.links
        )
        handles = [
            handle.uuid
            for device in published.devices
            for handle in device.handles
        ]
        self.assertEqual(set(handles), set(layout.places))
        report = {
            host_contract.KEY: host_contract.NEWEST,
            'node_uuid': NODE_UUID,
            'service_host': 'host1',
            'digest': 'digest',
            host_contract.KEY: host_contract.NEWEST,
            'devices': [
                device.to_report(NODE_UUID, layout.rp_uuids)
                for device in published.devices
            ],
        }
        jsonschema.validate(json.loads(json.dumps(report)), host_schema.REPORT)


def _causes(found: discovery.Discovered) -> dict[str, str]:
    """Each function that a refusal names -> the refusals that name it."""
    causes: dict[str, str] = {}
    for text in found.refused:
        for name in re.findall(
            r'[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]',
            text.partition(' ([nova_accel]')[0],
        ):
            causes[name] = causes.get(name, '') + text
    return causes


def _offered(devices: Iterable[hardware.Device]) -> dict[str, list[str]]:
    """``<resource class> <traits>`` -> the addresses of the units."""
    found: dict[str, list[str]] = {}
    for device in devices:
        for each in device.deployables:
            traits = ' '.join(
                sorted(
                    trait
                    for trait in each.traits
                    if not trait.startswith('CUSTOM_PHYSNET_')
                )
            )
            found.setdefault(f'{each.resource_class} {traits}', []).extend(
                str(handle.address) for handle in each.handles
            )
    return {name: sorted(units) for name, units in found.items()}


def _expanded(offered: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """As :func:`_offered`; ``81:00.4 x 3`` is an address with three units."""
    return {
        name: sorted(
            address(short)
            for each in units
            for short, _x, count in [each.partition(' x ')]
            for _unit in range(int(count or 1))
        )
        for name, units in offered.items()
    }


class TestEachRecording(testtools.TestCase):
    def test_has_an_answer(self) -> None:
        """A new recording without an answer fails, and so does the reverse."""
        found: dict[str, set[str]] = {}
        for archive in recordings.archives():
            found.setdefault(archive.parent.name, set()).add(
                recordings.name_of(archive)
            )
        self.assertTrue(found, f'{recordings.FOLDER} has no recording')
        for folder, names in found.items():
            self.assertEqual(names, set(recordings.answers(folder)))


class TestBrokenReader(testtools.TestCase):
    """The answers notice a reader that tells something else."""

    def test_is_noticed(self) -> None:
        archive = recordings.FOLDER / 'sysfs/hpe-gen9-a2-16vf-3mdev.tar.xz'
        if not archive.exists():
            self.skipTest(f'{archive} is not there')
        real = pci_function.parse_pci
        for target, broken in (
            (
                'nova_accel.host.host_use.HostUse.reason',
                lambda _self, _address: None,
            ),
            (
                'nova_accel.host.pci_function.parse_pci',
                lambda xml: dataclasses.replace(
                    real(xml), virtual_functions=(), parent_address=None
                ),
            ),
            (
                'nova_accel.drivers.catalogue.look_up',
                lambda *_ids: catalogue.Product(None, None, None),
            ),
        ):
            recordings.unpacked.cache_clear()
            with fixtures.MonkeyPatch(target, broken):
                result = self._run(archive)
            recordings.unpacked.cache_clear()
            self.assertTrue(result.failures, target)
        self.assertEqual([], self._run(archive).failures)

    def _run(self, archive: pathlib.Path) -> unittest.TestResult:
        test = RecordedHost('test_each_driver')
        test.scenarios, test.archive = (), archive
        result = unittest.TestResult()
        test.run(result)
        self.assertEqual([], result.errors)
        return result
