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

"""The tests that every device driver has to pass.

The author of a driver runs them like this:

.. code-block:: python

   class TestAcme(driver_conformance.DriverConformance, testtools.TestCase):

       driver = acme.AcmeDriver
       spec = {'vendor_id': 'ac3e', 'type': 'AICHIP'}
       address = '0000:81:00.0'

       def functions(self):
           self.sysfs.set(self.address, acme_awake='0')
           return [driver_conformance.a_function(
               self.address, 'ac3e', '0001')]
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import hashlib
import json
import pathlib
from typing import Any
from typing import ClassVar

import fixtures
import os_resource_classes
import os_traits

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.drivers import answers
from nova_accel.drivers import base
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.model.providers import provider_layout
from nova_accel.testing import fake_sysfs
from nova_accel.testing import simulated_mdevs

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'
_A_BITSTREAM = '6a8ee9d1-5d0f-4f5e-9f5b-2a4d1f0a7c33'

_OTHER_NODE_UUID = '9d1f5c2e-7b0a-4c1e-8a55-1f0b6c3d7e02'


def a_function(
    address: str,
    vendor_id: str,
    product_id: str,
    parent: str | None = None,
    virtual: Iterable[str] = (),
    **more: Any,
) -> pci_function.PciFunction:
    """A PCI function as libvirt has it.

    :param parent: the address of its physical function
    :param virtual: those of its virtual functions
    """
    place = pci_address.PciAddress.parse(address)
    return pci_function.PciFunction(
        place.node_device,
        place,
        vendor_id,
        product_id,
        parent_address=(
            None if parent is None else pci_address.PciAddress.parse(parent)
        ),
        virtual_functions=tuple(
            pci_address.PciAddress.parse(each) for each in virtual
        ),
        **more,
    )


def cached(directory: pathlib.Path, content: bytes) -> pathlib.Path:
    """A bitstream in the directory of a cache, which names it by its hash."""
    file = directory / hashlib.sha256(content).hexdigest()
    file.write_bytes(content)
    return file


class DriverUnderTest:
    """The driver under test, on a simulated host.

    The author of a driver sets the first four, and writes ``functions``.

    :cvar driver: the class
    :cvar spec: a line of ``device_spec``, without its ``driver``
    :cvar address: the function of the simulated host that the line matches
    :cvar takes_any: the driver offers functions of any vendor
    :cvar bitstreams: two that fit the first region, none if the driver
        programs none. If the driver tells contents, it must tell the two
        apart. ``setUp`` or ``functions`` simulate its tool or the kernel.
    :ivar sysfs: of the host, a
        :class:`nova_accel.testing.fake_sysfs.FakeSysfs`
    """

    driver: ClassVar[type[base.Driver]]
    spec: ClassVar[Mapping[str, Any]]
    address: ClassVar[str]
    takes_any: ClassVar[bool] = False
    bitstreams: ClassVar[tuple[bytes, ...]] = ()

    def break_programming(self) -> None:
        """Have the next programming fail, where ``bitstreams`` are set."""
        raise NotImplementedError

    def functions(self) -> Iterable[pci_function.PciFunction]:
        """All PCI functions of the host; it also fills in their sysfs."""
        raise NotImplementedError

    def setUp(self) -> None:
        super().setUp()  # type: ignore[misc]
        self.sysfs = self.useFixture(  # type: ignore[attr-defined]
            fake_sysfs.FakeSysfs()
        )
        self.node_devices = simulated_mdevs.SimulatedMdevs(self.functions())

    def discover(
        self,
        address: str | None = None,
        node_uuid: str = NODE_UUID,
        **keys: Any,
    ) -> hardware.Device:
        """Discover the device, as the core does.

        :param keys: further keys of the line
        """
        host = self.node_devices.look()
        function = host.functions[
            pci_address.PciAddress.parse(address or self.address)
        ]
        device = self.a_driver(node_uuid).discover(
            function, self.a_spec(**keys), host
        )
        assert device is not None, 'only its virtual functions are offered'
        return device

    def a_spec(self, **keys: Any) -> device_spec.DeviceSpec:
        """The parsed line; a key that is None is left out."""
        line = {'vendor_id': '*', **self.spec, 'driver': 'mine', **keys}
        (spec,) = device_spec.parse(
            [
                json.dumps(
                    {
                        key: value
                        for key, value in line.items()
                        if value is not None
                    }
                )
            ],
            ['mine'],
        )
        return spec

    def a_driver(self, node_uuid: str = NODE_UUID) -> base.Driver:
        return self.driver(
            self.node_devices,  # type: ignore[arg-type]
            self.sysfs.sysfs,
            node_uuid,
        )

    def _sysfs_contents(self) -> dict[str, str]:
        return {
            str(path): path.read_text(errors='replace')
            for path in sorted(self.sysfs.root.rglob('*'))
            if path.is_file()
        }


class DiscoveryConformance(DriverUnderTest):
    """Tests of what the driver says of a device."""

    def test_device(self) -> None:
        device = self.discover()
        function = self.node_devices.look().functions[
            pci_address.PciAddress.parse(self.address)
        ]
        # An answer that the core would refuse fails here.
        answers.device(device, function, self.a_spec())
        assert device.deployables, 'a device without deployables is refused'

    def test_discovery_is_repeatable_and_changes_nothing(self) -> None:
        before = self._sysfs_contents()
        self.node_devices.is_locked = True
        assert self.discover() == self.discover()
        assert self._sysfs_contents() == before, 'sysfs was changed'

    def test_uuids_are_derived_from_the_node(self) -> None:
        uuids = [handle.uuid for handle in _handles(self.discover())]
        assert uuids, 'there is nothing to hand out'
        assert len(uuids) == len(set(uuids)), uuids
        others = {
            handle.uuid
            for handle in _handles(self.discover(node_uuid=_OTHER_NODE_UUID))
        }
        assert not others & set(uuids), 'another host has the same uuids'

    def test_names_are_valid_in_placement(self) -> None:
        device = self.discover()
        for deployable in device.deployables:
            for trait in deployable.traits:
                assert os_traits.is_custom(trait), trait
                assert (
                    os_traits.normalize_name(trait.removeprefix('CUSTOM_'))
                    == trait
                ), trait
                assert len(trait) <= naming.MAX_LENGTH, trait
            name = deployable.resource_class
            assert (
                os_resource_classes.is_custom(name)
                or name in os_resource_classes.STANDARDS
            ), name
        layout = provider_layout.layout('node', NODE_UUID, [device])
        json.dumps(device.to_report(NODE_UUID, layout.rp_uuids))

    def test_each_deployable_repeats_the_devices_trait(self) -> None:
        device = self.discover()
        shared = frozenset.intersection(
            *(each.traits for each in device.deployables)
        )
        assert any(
            trait.startswith(f'CUSTOM_{device.type}_') for trait in shared
        ), shared

    def test_the_operators_keys(self) -> None:
        for pool in (True, False, 'numa'):
            device = self.discover(
                pool=pool,
                traits=['CUSTOM_RACK_7'],
                resource_class='CUSTOM_MINE',
            )
            assert device.pooled is bool(pool)
            assert device.pooled_by_numa_node is (pool == 'numa')
            assert 'CUSTOM_RACK_7' in device.operator_traits
            for deployable in device.deployables:
                assert 'CUSTOM_RACK_7' in deployable.traits
                assert deployable.resource_class == 'CUSTOM_MINE'


class HandleConformance(DriverUnderTest):
    """Tests of the attach handles of a device, and of their cleaning."""

    def test_handles_survive_the_journal(self) -> None:
        for handle in _handles(self.discover()):
            text = json.dumps(handle.to_dict())
            assert attach_handle.from_dict(json.loads(text)) == handle, text

    def test_handles_are_made_of_what_the_host_has(self) -> None:
        host = self.node_devices.look()
        functions: list[pci_address.PciAddress] = []
        for handle in _handles(self.discover()):
            assert handle.address in host.functions, handle
            functions.extend(handle.functions)
        assert len(functions) == len(set(functions)), (
            'a function is in two handles'
        )
        assert set(functions) <= host.functions.keys()
        given = set(functions)
        for address in functions:
            virtual = host.functions[address].virtual_functions
            assert not virtual, f'{address} is a card that is carved'
            assert host.functions[address].parent_address not in given, (
                f'{address} goes with its card'
            )

    def test_all_can_be_plugged_at_once(self) -> None:
        before = self.discover()
        driver = self.a_driver()
        contents = self._sysfs_contents()
        for _time in range(2):
            for handle in _handles(before):
                driver.plug(handle)
        # Units that are in use are still discovered.
        assert self.discover() == before, 'it is another device in use'
        for _time in range(2):
            for handle in _handles(before):
                driver.unplug(handle)
        assert self.discover() == before, 'it is another device after use'
        assert self._sysfs_contents() == contents
        assert not self.node_devices.look().mdevs

    def test_unplug_of_what_was_never_plugged(self) -> None:
        for handle in _handles(self.discover()):
            self.a_driver().unplug(handle)

    def test_migration_is_refused_with_a_reason_or_possible(self) -> None:
        for handle in _handles(self.discover()):
            try:
                self.a_driver().check_migratable(handle)
            except exceptions.DeviceError as error:
                assert str(error)

    def test_cleaning(self) -> None:
        driver = self.a_driver()
        driver.check_cleaning(self.a_spec())
        assert 'none' in driver.cleaning_methods
        methods = driver.cleaning_methods - {'command'}
        if not self.discover().regions:
            methods -= {'program'}
        for method in methods:
            keys: dict[str, Any] = {
                'clean': method,
                'clean_command': None,
                'clean_bitstream': _A_BITSTREAM
                if method == 'program'
                else None,
            }
            driver.check_cleaning(self.a_spec(**keys))
            device = self.discover(**keys)
            assert all(
                each.is_cleaned is (method != 'none')
                for each in device.deployables
            )


class ProgrammingConformance(DriverUnderTest):
    """Tests of programming a region, and of refusing to."""

    def test_programming(self) -> None:
        if not self.bitstreams:
            self._refuses_to_program()
            return
        device, region, (first, second) = self._to_program()
        driver = self.a_driver()
        told = []
        for file in (first, first, second):
            driver.program(device, region, file, 60)
            told.append(driver.loaded(device, region))
            assert told[-1] == driver.loaded(device, region), (
                'it is another text each time'
            )
            assert told[-1] == self.a_driver().loaded(device, region), (
                'another process would not know it'
            )
        assert told[0] == told[1], 'the same bitstream is another text'
        if self.driver.tells_contents:
            assert told[1] != told[2], 'another bitstream is the same text'
        self._is_as_before(device, first.parent)

    def test_a_programming_that_fails(self) -> None:
        if not self.bitstreams:
            return
        device, region, (first, _second) = self._to_program()
        self.break_programming()
        _raises(self.a_driver().program, device, region, first, 60)
        self._is_as_before(device, first.parent)

    def test_a_bitstream_that_is_not_there(self) -> None:
        if not self.bitstreams:
            return
        device, region, (first, _second) = self._to_program()
        third = first.with_name(64 * '3')
        _raises(self.a_driver().program, device, region, third, 60)

    def _refuses_to_program(self) -> None:
        device = self.discover()
        region = programmable.Region('region0')
        _raises(
            self.a_driver().program,
            device,
            region,
            pathlib.Path('/nonexistent'),
            1,
        )

    def _to_program(
        self,
    ) -> tuple[hardware.Device, programmable.Region, list[pathlib.Path]]:
        """A device, its region, and the bitstreams in the host's cache."""
        device = self.discover()
        directory = pathlib.Path(
            self.useFixture(  # type: ignore[attr-defined]
                fixtures.TempDir()
            ).path
        )
        # A privileged function takes no file from elsewhere.
        conf.CONF.set_override(
            'bitstream_cache_directory', str(directory), 'nova_accel'
        )
        self.addCleanup(  # type: ignore[attr-defined]
            conf.CONF.clear_override, 'bitstream_cache_directory', 'nova_accel'
        )
        return (
            device,
            device.regions[0],
            [cached(directory, content) for content in self.bitstreams],
        )

    def _is_as_before(
        self, device: hardware.Device, directory: pathlib.Path
    ) -> None:
        for content in self.bitstreams:
            file = directory / hashlib.sha256(content).hexdigest()
            assert file.read_bytes() == content, file
        assert len(list(directory.iterdir())) == 2, 'something is left'
        after = self.discover()
        assert list(after.handles) == list(device.handles)
        assert after.regions == device.regions


class RefusalConformance(DriverUnderTest):
    """Tests of the functions that the driver refuses."""

    def test_only_typed_errors(self) -> None:
        """Discover every function of the host, also with an empty sysfs."""
        host = self.node_devices.look()
        for function in host.functions.values():
            self._discover_or_refuse(function, host)
        for function in list(host.functions.values()):
            self.sysfs.set(function.address)
            self.sysfs.remove(function.address)
        for function in host.functions.values():
            self._discover_or_refuse(function, host)
            self._discover_or_refuse(
                function,
                libvirt_devices.HostDevices({function.address: function}),
            )

    def test_what_is_anothers(self) -> None:
        stranger = a_function('0000:fe:00.0', 'ffff', 'ffff')
        host = libvirt_devices.HostDevices({stranger.address: stranger})
        is_offered = self._discover_or_refuse(stranger, host)
        assert self.takes_any or not is_offered, (
            'a function of an unknown vendor is offered'
        )

    def _discover_or_refuse(
        self,
        function: pci_function.PciFunction,
        host: libvirt_devices.HostDevices,
    ) -> bool:
        try:
            self.a_driver().discover(function, self.a_spec(), host)
        except exceptions.AcceleratorError as error:
            assert str(error), 'the operator reads the reason'
            return False
        return True


class DriverConformance(
    DiscoveryConformance,
    HandleConformance,
    ProgrammingConformance,
    RefusalConformance,
):
    """A mixin for ``testtools.TestCase``, with all tests of a driver.

    See :class:`DriverUnderTest` for what the author of a driver sets.
    """


def _raises(what: Callable[..., object], *arguments: object) -> None:
    """Make sure that a call raises DeviceError, with a text."""
    try:
        what(*arguments)
    except exceptions.DeviceError as error:
        assert str(error), 'the operator reads the reason'
    else:
        raise AssertionError(f'{what} did not raise DeviceError')


def _handles(device: hardware.Device) -> list[attach_handle.AttachHandle]:
    return [
        handle
        for deployable in device.deployables
        for handle in deployable.handles
    ]
