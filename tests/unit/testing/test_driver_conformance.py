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
import unittest

import testtools

from nova_accel.drivers import pci
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.testing import driver_conformance

CARD = '0000:3d:00.0'
FUNCTION = '0000:3d:00.1'


def failures(driver, **more):
    """The names of the tests that a driver fails."""

    class Conformance(
        driver_conformance.DriverConformance, testtools.TestCase
    ):
        spec = {'vendor_id': '8086'}
        address = FUNCTION
        takes_any = False

        def functions(self):
            self.sysfs.set(self.address, enable='0')
            return [
                driver_conformance.a_function(
                    CARD, '8086', '37c8', virtual=[FUNCTION]
                ),
                driver_conformance.a_function(
                    FUNCTION, '8086', '37c9', parent=CARD
                ),
            ]

    Conformance.driver = driver
    for name, value in more.items():
        setattr(Conformance, name, value)
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Conformance).run(result)
    assert result.testsRun > 12
    return {
        test.id().rpartition('.')[2]
        for test, _text in result.failures + result.errors
    }


def changed(**fields):
    """A driver that says something else of its device."""

    class Changed(pci.PciDriver):
        def discover(self, function, spec, host):
            return dataclasses.replace(
                super().discover(function, spec, host), **fields
            )

    return Changed


def handing_out(make):
    """A driver with other handles."""

    class HandingOut(pci.PciDriver):
        def discover(self, function, spec, host):
            device = super().discover(function, spec, host)
            (deployable,) = device.deployables
            return dataclasses.replace(
                device,
                deployables=(
                    dataclasses.replace(
                        deployable,
                        handles=tuple(
                            make(self, function, deployable.handles[0])
                        ),
                    ),
                ),
            )

    return HandingOut


class TestDriverConformance(testtools.TestCase):
    """It finds what is wrong; that it lets our drivers pass they show."""

    def assert_found(self, test, driver, **more):
        self.assertIn(f'test_{test}', failures(driver, **more))

    def test_right(self):
        self.assertEqual(set(), failures(pci.PciDriver))

    def test_facts(self):
        for fields in (
            {'name': 'card'},
            {'driver': 'pci'},
            {'type': 'X'},
            {'deployables': ()},
        ):
            self.assert_found('device', changed(**fields))

    def test_operators_keys(self):
        for fields in ({'pooled': True}, {'operator_traits': frozenset()}):
            self.assert_found('the_operators_keys', changed(**fields))

    def test_handles_that_are_not_derived(self):
        made = iter(range(10000))
        self.assert_found(
            'discovery_is_repeatable_and_changes_nothing',
            handing_out(
                lambda _driver, function, _handle: [
                    attach_handle.AttachHandle(
                        str(next(made)), function.address
                    )
                ]
            ),
        )
        self.assert_found(
            'uuids_are_derived_from_the_node',
            handing_out(
                lambda _driver, function, _handle: [
                    attach_handle.AttachHandle(
                        naming.derived_uuid(
                            driver_conformance.NODE_UUID, function.name
                        ),
                        function.address,
                    )
                ]
            ),
        )

    def test_more_handles_than_functions(self):
        self.assert_found(
            'handles_are_made_of_what_the_host_has',
            handing_out(
                lambda _driver, _function, handle: [
                    handle,
                    dataclasses.replace(handle, uuid='another'),
                ]
            ),
        )

    def test_a_card_that_is_carved(self):
        self.assert_found(
            'handles_are_made_of_what_the_host_has',
            handing_out(
                lambda _driver, function, handle: [
                    dataclasses.replace(
                        handle,
                        address=function.parent_address or function.address,
                    )
                ]
            ),
        )

    def test_traits(self):
        class Lower(pci.PciDriver):
            def discover(self, function, spec, host):
                device = super().discover(function, spec, host)
                return dataclasses.replace(
                    device,
                    deployables=tuple(
                        dataclasses.replace(each, traits={'fast'})
                        for each in device.deployables
                    ),
                )

        self.assert_found('names_are_valid_in_placement', Lower)
        self.assert_found('each_deployable_repeats_the_devices_trait', Lower)

    def test_writes_at_discovery(self):
        class Writes(pci.PciDriver):
            def discover(self, function, spec, host):
                path = self._sysfs._path(function.address, 'enable')
                path.write_text(path.read_text() + '1')
                return super().discover(function, spec, host)

        self.assert_found(
            'discovery_is_repeatable_and_changes_nothing', Writes
        )

    def test_plug_that_is_not_undone(self):
        class Leaves(pci.PciDriver):
            def plug(self, handle):
                self._sysfs._path(handle.address, 'enable').write_text('1')

        self.assert_found('all_can_be_plugged_at_once', Leaves)

    def test_unplug_that_wants_to_be_second(self):
        class Strict(pci.PciDriver):
            def unplug(self, handle):
                raise LookupError(handle.uuid)

        self.assert_found('unplug_of_what_was_never_plugged', Strict)

    def test_errors_that_are_not_typed(self):
        class Careless(pci.PciDriver):
            def discover(self, function, spec, host):
                if function.vendor_id == 'ffff':
                    raise KeyError(function.vendor_id)
                return super().discover(function, spec, host)

        self.assert_found('what_is_anothers', Careless)

    def test_takes_what_is_anothers(self):
        self.assert_found(
            'what_is_anothers',
            pci.PciDriver,
            spec={'vendor_id': '8086', 'type': 'QAT'},
        )
