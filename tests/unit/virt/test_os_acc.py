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

from concurrent import futures
import json
import pathlib
import types

from nova import conf as nova_conf

from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import device_profile
from nova_accel.model import arq_types
from nova_accel.model.fpga import region_request
from nova_accel.model.profiles import provider_allocation
from nova_accel.testing import devices
from nova_accel.virt import guest_cells
from nova_accel.virt import os_acc
from nova_accel.virt.fabric import no_fabric
from unit.virt import started

CONF = nova_conf.CONF
INSTANCE = {
    'uuid': '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01',
    'name': 'vm',
    'project_id': 'project',
}


class Instance:
    uuid = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
    project_id = 'project'
    user_id = 'user'
    system_metadata = {}
    numa_topology = None
    vm_state = 'building'
    flavor = types.SimpleNamespace(
        extra_specs={'nova_accel:device_profile': 'qat'}
    )


class PlainInstance(Instance):
    flavor = types.SimpleNamespace(extra_specs={})


class CyborgsInstance(Instance):
    vm_state = 'active'
    flavor = types.SimpleNamespace(extra_specs={'accel:device_profile': 'qat'})


class Programmer:
    """What the regions are to hold, each time that it is told."""

    def __init__(self):
        self.wanted = []

    def start(self, arqs, asker, image_properties, context=None):
        self.wanted += [
            str(region_request.read_wanted(arq.group, image_properties))
            for arq in arqs
        ]

    def ready(self, arqs, asker, image_properties, is_new):
        self.start(arqs, asker, image_properties)


class TestOsAcc(started.StartedTestCase):
    def setUp(self):
        super().setUp()
        self.host = self.start()
        self.os_acc = os_acc.OsAcc(
            self.host.node.nodename,
            self.current,
            self.publisher,
            self.host.attachments,
            self.host.programmer,
            self.image,
            guest_cells.GuestCells(self.libvirt.host),
            no_fabric.NoFabric(),
        )
        self.images = []

    def image(self, image_id):
        self.images.append(image_id)
        return {
            'properties': {
                'bad': {'accel:function_id': 'x'},
                'gzip': {'accel:function_name': 'gzip'},
            }.get(image_id, {})
        }

    def plug(
        self, resource_class, amount=1, key='nova_accel', specs=(), **info
    ):
        """By a device profile."""
        device_profile.create(
            resource_class, [{f'resources:{resource_class}': '1'}] * amount
        )
        return self.plug_by(
            resource_class,
            {f'{key}:device_profile': resource_class, **dict(specs)},
            amount,
            **info,
        )

    def plug_by(self, resource_class, specs, amount=1, **info):
        """As the specification shows it."""
        provider = self.provider(resource_class)
        with futures.ThreadPoolExecutor(max_workers=1) as executor:
            return executor.submit(
                self.os_acc.plug,
                {**INSTANCE, **info},
                {
                    'uuid': provider.uuid,
                    'resources': {resource_class: amount},
                    'traits': sorted(provider.traits),
                },
                specs,
            ).result(60)

    def provider(self, resource_class):
        self.publisher.wait_published(60)
        return next(
            provider
            for provider in self.current.view.layout.providers
            if resource_class in provider.totals
        )

    def test_arqs_of_our_providers_are_ours(self):
        provider = self.current.view.layout.providers[0].uuid
        ours, cyborgs = (
            {
                'uuid': name,
                'device_rp_uuid': rp_uuid,
                'hostname': self.libvirt.host.get_hostname(),
            }
            for name, rp_uuid in (('ours', provider), ('theirs', 'cyborg'))
        )
        self.assertEqual(
            (('ours',), (cyborgs,)), self.os_acc.split([ours, cyborgs])
        )
        self.assertEqual(((), ()), self.os_acc.split(None))

    def test_our_mdevs_are_known_before_they_are_made(self):
        (vgpu,) = (
            device
            for device in self.current.view.devices
            if device.driver == 'mdev'
        )
        for handle in vgpu.deployables[0].handles:
            self.assertTrue(self.os_acc.owns_mdev(handle.uuid))
        self.assertFalse(self.os_acc.owns_mdev('another'))

    def test_it_is_ready_when_devices_are_published(self):
        self.assertIsNone(self.os_acc.initialize())
        self.assertTrue(self.publisher._published.is_set())

    def test_it_is_not_ready(self):
        self.os_acc.initialize()
        self.publisher._published.clear()
        self.api.refuse = True
        CONF.set_override('publish_timeout_s', 0, 'nova_accel')
        self.addCleanup(CONF.clear_override, 'publish_timeout_s', 'nova_accel')
        self.assertRaises(
            exceptions.CyborgAgentUnavailable, self.os_acc.initialize
        )

    def test_partitions_are_for_what_is_plugged(self):
        asked = []
        self.os_acc._fabric = types.SimpleNamespace(
            ready=lambda instance_uuid, arqs: asked.append(
                (instance_uuid, [str(arq.handle.address) for arq in arqs])
            )
        )
        told = self.plug('CUSTOM_QAT')
        self.assertEqual(
            [(INSTANCE['uuid'], [each['pci_id'] for each in told])], asked
        )
        # Ports have no GPUs.
        self.os_acc._ready(
            types.SimpleNamespace(uuid=INSTANCE['uuid']), arq_types.Role.PORT
        )
        self.assertEqual(1, len(asked))

    def test_functions(self):
        plugged = self.plug('CUSTOM_QAT', 2, key='accel')
        held = self.host.attachments.held.arqs_of(INSTANCE['uuid'])
        self.assertEqual(
            [{'pci_id': str(arq.handle.address)} for arq in held], plugged
        )
        self.assertEqual(2, len(plugged))
        self.assertEqual(2, self.os_acc.unplug(INSTANCE))
        self.assertEqual(0, self.os_acc.unplug(INSTANCE))

    def test_a_mediated_device(self):
        (plugged,) = self.plug('VGPU', image_id='good')
        (held,) = self.host.attachments.held.arqs_of(INSTANCE['uuid'])
        self.assertEqual({'mdev_uuid': held.handle.uuid}, plugged)
        self.assertEqual(['good'], self.images)

    def test_what_fails_holds_nothing(self):
        self.assertRaises(
            exceptions.InvalidDeviceProfile, self.plug, 'FPGA', image_id='bad'
        )
        self.assertFalse(self.host.attachments.held.has(INSTANCE['uuid']))

    def test_what_extra_specs_ask_for(self):
        traits = self.provider('CUSTOM_QAT').traits
        group = {
            'resources:CUSTOM_QAT': '2',
            **{
                f'trait:{trait}': 'required'
                for trait in traits
                if trait.startswith('CUSTOM_')
            },
        }
        self.assertLess(1, len(group))
        plugged = self.plug_by(
            'CUSTOM_QAT',
            {
                **group,
                'resources:VCPU': '4',
                'hw:cpu_policy': 'dedicated',
                'trait:HW_CPU_X86_AVX2': 'required',
            },
            2,
        )
        held = self.host.attachments.held.arqs_of(INSTANCE['uuid'])
        self.assertEqual(
            [{'pci_id': str(arq.handle.address)} for arq in held], plugged
        )
        self.assertEqual(
            [('', group)] * 2,
            [(arq.device_profile_name, arq.group) for arq in held],
        )
        self.assertEqual(plugged, self.plug_by('CUSTOM_QAT', group, 2))
        self.assertEqual(2, self.os_acc.unplug(INSTANCE))

    def test_extra_specs_that_the_provider_does_not_serve(self):
        for specs, fault, text in (
            ({}, exceptions.InvalidRequest, 'CUSTOM_QAT'),
            (
                {'resources:VCPU': '1'},
                exceptions.InvalidRequest,
                self.provider('CUSTOM_QAT').uuid,
            ),
            (
                {'resources:CUSTOM_QAT': '2'},
                exceptions.NoAssignment,
                'CUSTOM_QAT',
            ),
            (
                {'resources:CUSTOM_QAT': 'x'},
                exceptions.InvalidRequest,
                'CUSTOM_QAT',
            ),
            (
                {'resources:CUSTOM_QAT': '1', 'trait:CUSTOM_A': 'required'},
                exceptions.NoAssignment,
                'CUSTOM_QAT',
            ),
            (
                {'resources:CUSTOM_QAT': '1', 'accel:function_id': 'x'},
                exceptions.InvalidDeviceProfile,
                'function_id',
            ),
        ):
            error = self.assertRaises(fault, self.plug_by, 'CUSTOM_QAT', specs)
            self.assertIn(text, str(error))
            self.assertFalse(self.host.attachments.held.has(INSTANCE['uuid']))

    def test_extra_specs_say_what_to_program(self):
        programmer = Programmer()
        self.os_acc = os_acc.OsAcc(
            self.host.node.nodename,
            self.current,
            self.publisher,
            self.host.attachments,
            programmer,
            self.image,
            guest_cells.GuestCells(self.libvirt.host),
            no_fabric.NoFabric(),
        )
        specs = {'accel:function_name': 'gzip'}
        self.plug('FPGA', specs=specs)
        self.os_acc.unplug(INSTANCE)
        for of_flavor, image in (
            ({'resources:FPGA': '1'}, 'good'),
            ({'resources:FPGA': '1'}, 'gzip'),
            ({'nova_accel:device_profile': 'FPGA'}, 'gzip'),
        ):
            self.plug_by('FPGA', {**of_flavor, **specs}, image_id=image)
            self.os_acc.unplug(INSTANCE)
        self.assertEqual(["function 'gzip'"] * 8, programmer.wanted)

    def test_extra_specs_and_others_say_what_to_program(self):
        other = {'accel:function_name': 'zstd'}
        device_profile.create(
            'gzip', [{'resources:FPGA': '1', 'accel:function_name': 'gzip'}]
        )
        for specs, image in (
            ({'resources:FPGA': '1', **other}, 'gzip'),
            ({'nova_accel:device_profile': 'gzip', **other}, 'good'),
        ):
            error = self.assertRaises(
                exceptions.InvalidDeviceProfile,
                self.plug_by,
                'FPGA',
                specs,
                image_id=image,
            )
            self.assertIn(
                'accel:function_name=gzip and accel:function_name=zstd',
                str(error),
            )
            self.assertFalse(self.host.attachments.held.has(INSTANCE['uuid']))

    def test_what_is_not_given_back_yet(self):
        self.plug('CUSTOM_QAT')
        self.api.refuse = True
        self.assertEqual(0, self.os_acc.unplug(INSTANCE))
        self.api.refuse = False
        self.assertEqual(1, self.os_acc.unplug(INSTANCE))


class TestHooks(started.StartedTestCase):
    """What the hooks of the libvirt driver use."""

    def started(self, amount):
        """A host, and what is allocated of it."""
        device_profile.create('qat', [{'resources:CUSTOM_QAT': str(amount)}])
        started = self.start()
        return started, [
            provider_allocation.ProviderAllocation(
                provider.uuid, {'CUSTOM_QAT': amount}, frozenset()
            )
            for provider in self.current.view.layout.providers
            if 'CUSTOM_QAT' in provider.totals
        ]

    def acquired(self, started, allocations, fails=False, **keeps):
        """How many the instance holds in the body, and afterwards."""
        attachments = started.attachments
        try:
            with started.os_acc.acquired(None, Instance, allocations, **keeps):
                held = len(attachments.held.arqs_of(Instance.uuid))
                if fails:
                    raise exceptions.DeviceError('it does not boot')
        except exceptions.DeviceError:
            self.assertTrue(fails)
        return held, len(attachments.held.arqs_of(Instance.uuid))

    def test_what_is_acquired_for_a_guest(self):
        started, allocations = self.started(1)
        self.assertEqual(
            (1, 0), self.acquired(started, allocations, fails=True)
        )
        self.assertEqual(
            (1, 1),
            self.acquired(
                started, allocations, fails=True, keeps=lambda: True
            ),
        )
        # It had that before.
        self.assertEqual(
            (1, 1), self.acquired(started, allocations, fails=True)
        )
        started.os_acc.unplug({'uuid': Instance.uuid})
        self.assertEqual((1, 1), self.acquired(started, allocations))

    def test_what_fails_has_the_host_compared(self):
        """Its unit may be another's, or Nova loses its allocations."""
        started, allocations = self.started(1)
        self.current.is_doubtful = False
        self.acquired(started, allocations)
        self.assertFalse(self.current.is_doubtful)
        self.acquired(started, allocations, fails=True)
        self.assertTrue(self.current.is_doubtful)
        self.current.is_doubtful = False
        started.os_acc.unplug({'uuid': Instance.uuid})
        with (
            self.assertRaises(exceptions.AcceleratorError),
            started.os_acc.acquired(None, Instance, ()),
        ):
            self.fail('it was acquired')
        self.assertTrue(self.current.is_doubtful)
        self.current.is_doubtful = False
        with (
            self.assertRaises(ValueError),
            started.os_acc.acquired(None, PlainInstance, ()),
        ):
            raise ValueError('a server without accelerators')
        self.assertFalse(self.current.is_doubtful)

    def test_a_server_gets_a_device_and_gives_it_back(self):
        started, allocations = self.started(2)
        started.os_acc.acquire(Instance, 'qat', allocations)
        arqs = started.os_acc.ready(Instance)
        self.assertEqual(2, len(arqs))
        # The next nova-compute of the host knows them.
        self.assertEqual(arqs, self.start().os_acc.ready(Instance))
        # So does the API.
        (path,) = pathlib.Path(CONF.state_path).glob('nova_accel/*/*.json')
        path.unlink()
        started = self.start()
        self.assertEqual(arqs, started.os_acc.ready(Instance))
        self.assertEqual(2, started.os_acc.unplug({'uuid': Instance.uuid}))
        self.assertRaises(
            exceptions.DeviceError, started.os_acc.ready, Instance
        )

    def test_an_instance_without_a_profile_gets_nothing(self):
        self.assertEqual((), self.start().os_acc.ready(PlainInstance))

    def test_what_ports_have_is_held_once_and_is_not_the_flavors(self):
        CONF.set_override(
            'device_spec',
            [
                json.dumps(
                    {
                        **json.loads(devices.QAT_SPEC),
                        'physical_network': 'physnet1',
                    }
                )
            ],
            'nova_accel',
        )
        device_profile.create('qat', [{'resources:CUSTOM_QAT': '1'}])
        started = self.start()
        self.publisher.wait_published(60)
        (arq,) = self.bound()
        self.assertEqual(
            'physnet1', arq['attach_handle_info']['physical_network']
        )
        ports = [self.port(arq)]
        for _time in range(2):
            started.os_acc.ready_ports(Instance, ports)
            (held,) = started.attachments.held.arqs(arq_types.Role.PORT)
            self.assertEqual(arq['uuid'], held.uuid)
            self.api.refuse = True
        self.assertEqual((), started.attachments.held.arqs_of(Instance.uuid))
        self.assertEqual(((), ()), started.os_acc.split([arq]))

    def bound(self, amount=1):
        """ARQs as Nova's Cyborg client has bound them."""
        created = client_arqs.create('qat', 'project')
        self.assertEqual(amount, len(created))
        client_arqs.bind(
            {
                each['uuid']: {
                    'hostname': self.libvirt.host.get_hostname(),
                    'device_rp_uuid': self.provider(amount),
                    'instance_uuid': Instance.uuid,
                }
                for each in created
            }
        )
        return [client_arqs.get(each['uuid']) for each in created]

    def provider(self, amount):
        return next(
            provider.uuid
            for provider in self.current.view.layout.providers
            if provider.totals.get('CUSTOM_QAT', 0) >= amount
        )

    @staticmethod
    def port(arq):
        address = '{domain}:{bus}:{device}.{function}'.format(
            **arq['attach_handle_info']
        )
        return {'profile': {'arq_uuid': arq['uuid'], 'pci_slot': address}}

    def test_a_hard_reboot_takes_over_what_was_imported(self):
        """Nova passes all ARQs of the instance, those of ports too."""
        device_profile.create('qat', [{'resources:CUSTOM_QAT': '3'}])
        started = self.start()
        self.publisher.wait_published(60)
        arqs = self.bound(3)
        of_flavor, of_port = arqs[:2], arqs[2]
        held = started.attachments.held
        for _time in range(2):
            started.os_acc.ready_ports(CyborgsInstance, [self.port(of_port)])
            found = started.os_acc.split(arqs)
            self.assertEqual((), found.others)
            self.assertEqual(
                [arq['uuid'] for arq in of_flavor], list(found.ours)
            )
            ready = started.os_acc.ready(CyborgsInstance, found)
            self.assertEqual(
                {arq['uuid'] for arq in of_flavor},
                {arq.uuid for arq in ready},
            )
            self.assertEqual(
                [of_port['uuid']],
                [arq.uuid for arq in held.arqs(arq_types.Role.PORT)],
            )
            # The journal is enough from then on.
            self.api.refuse = True

    def test_what_was_imported_later_is_taken_over_beside_the_rest(self):
        device_profile.create('qat', [{'resources:CUSTOM_QAT': '2'}])
        started = self.start()
        self.publisher.wait_published(60)
        arqs = self.bound(2)
        started.attachments.recover(Instance.uuid, unadopted=[arqs[0]['uuid']])
        ready = started.os_acc.ready(
            CyborgsInstance, started.os_acc.split(arqs)
        )
        self.assertEqual(
            {arq['uuid'] for arq in arqs}, {arq.uuid for arq in ready}
        )
