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

import functools

import fixtures
from nova.accelerator import cyborg
from nova.compute import resource_tracker
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.tests.functional.api import client as api_client
import oslo_messaging
from oslo_utils import uuidutils

from functional import base
from functional import one_server
from functional import operations
from nova_accel.model.profiles import device_profile
from nova_accel.testing import libvirt
from rig import compute_parts
from rig.loopback import clients


class CompatTestCase(base.AcceleratorTestCase):
    """Nova's own Cyborg client talks to our REST API."""

    flavor_key = device_profile.CYBORG_FLAVOR_KEY

    def compat_flavor(self, *groups, name='profile'):
        self.create_profile(name, groups)
        return self.create_accel_flavor(name)

    def boot_compat(self, *groups):
        return self.boot(self.compat_flavor(*groups))

    def create_arq(self, profile):
        """The uuid of the one ARQ of a profile."""
        (arq,) = self.accelerator.post(
            '/accelerator_requests', {'device_profile_name': profile}
        )['arqs']
        return arq['uuid']

    def bind(self, arq_uuid, binding):
        """As nova-conductor does."""
        self.accelerator.patch(
            '/accelerator_requests',
            {
                arq_uuid: [
                    {'op': 'add', 'path': f'/{name}', 'value': value}
                    for name, value in binding.items()
                ]
            },
            service_user=self.nova,
        )

    def delete_arqs_of(self, instance_uuid):
        self.accelerator.delete(
            f'/accelerator_requests?instance={instance_uuid}',
            service_user=self.nova,
        )


class TestBoot(CompatTestCase):
    @operations.shows('boot', devices=['PCI'])
    def test_pci(self):
        server = self.boot_compat(base.QAT)
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        self.delete(server)

    @operations.shows('boot', devices=['mdev'])
    def test_mdev(self):
        server = self.boot_compat(base.VGPU)
        self.assert_guest_has_its_arqs(server, (0, 'MDEV'))
        self.delete(server)

    def test_groups_of_several_units(self):
        server = self.boot_compat(
            {'resources:CUSTOM_QAT': '2'}, {'resources:VGPU': '2'}, base.FPGA
        )
        self.assert_guest_has_its_arqs(
            server,
            (0, 'PCI'),
            (0, 'PCI'),
            (1, 'MDEV'),
            (1, 'MDEV'),
            (2, 'PCI'),
        )
        self.delete(server)

    def test_a_bitstream_that_is_not_there(self):
        failed = self.boot(
            self.compat_flavor({**base.FPGA, 'accel:function_name': 'gzip'}),
            expected_state='ERROR',
        )
        # Nova has tried every host.
        self.assertIn(
            'Exceeded maximum number of retries', failed['fault']['message']
        )
        # That there is none is known where it is looked for, on the host.
        self.assertIn(
            "no bitstream with function 'gzip' fits", self.stdlog.logger.output
        )
        self.delete(failed)

    def test_turned_off(self):
        self.flags(cyborg_compatible=False, group='nova_accel')
        failed = self.boot(
            self.compat_flavor(base.FPGA), expected_state='ERROR'
        )
        self.assertIn('No valid host', failed['fault']['message'])
        self.delete(failed)


class TestForbidden(one_server.OneServerTestCase):
    """What Nova does not do with Cyborg's key it refuses, unharmed."""

    flavor_key = device_profile.CYBORG_FLAVOR_KEY

    def assert_forbidden(self, name, value=None):
        error = self.assertRaises(
            api_client.OpenStackApiException, self.act, name, value
        )
        self.assert_says_so(error)
        self.assert_runs_with_all()

    def assert_says_so(self, error):
        self.assertEqual(400, error.response.status_code)
        self.assertIn(
            'not supported with instances that have accelerators',
            error.response.text,
        )

    @operations.refuses('suspend', 'resume')
    def test_suspend(self):
        self.assert_forbidden('suspend')
        self.delete(self.server)

    @operations.refuses(
        'resize',
        'resize to a plain flavor',
        'resize between profiles',
        'resize from our vGPUs to those of Nova',
        'resize to another cell',
    )
    def test_resize(self):
        for flavor in (
            self._create_flavor(),
            self.create_accel_flavor('both'),
        ):
            self.assert_forbidden('resize', {'flavorRef': flavor})
        self.delete(self.server)

    @operations.refuses(
        'resize to accelerators', 'resize from vGPUs of Nova to ours'
    )
    def test_resize_to_accelerators(self):
        plain = self.boot(self._create_flavor())
        error = self.assertRaises(
            api_client.OpenStackApiException,
            self.admin_api.post_server_action,
            plain['id'],
            {'resize': {'flavorRef': self.flavor}},
        )
        self.assert_says_so(error)
        self._delete_server(plain)
        self.delete(self.server)

    @operations.refuses('cold migration')
    def test_cold_migration(self):
        self.assert_forbidden('migrate')
        self.delete(self.server)

    @operations.refuses('live migration')
    def test_live_migration(self):
        self.assert_forbidden(
            'os-migrateLive', {'host': None, 'block_migration': 'auto'}
        )
        self.delete(self.server)


class TestReschedule(CompatTestCase):
    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.flavor = self.compat_flavor(base.FPGA, base.VGPU)

    def lose_races(self, times):
        """Others take the first ARQ's device just before it is bound."""
        bind_arqs = cyborg._CyborgClient.bind_arqs
        self.thieves = []

        def bind_late(client, bindings):
            if len(self.thieves) < times:
                self.steal(next(iter(bindings.values())))
            bind_arqs(client, bindings)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.accelerator.cyborg._CyborgClient.bind_arqs', bind_late
            )
        )
        self.create_profile('fpga', [base.FPGA])

    def steal(self, binding):
        self.thieves.append(uuidutils.generate_uuid())
        self.bind(
            self.create_arq('fpga'),
            {**binding, 'instance_uuid': self.thieves[-1]},
        )

    def free_what_was_stolen(self):
        for uuid in self.thieves:
            self.delete_arqs_of(uuid)

    def assert_rescheduled(self):
        server = self.boot(self.flavor)
        self.assert_guest_has_its_arqs(server, (0, 'PCI'), (1, 'MDEV'))
        self.assertEqual(
            1, sum(len(self.mdevs(host)) for host in self.computes)
        )
        return server

    def test_a_host_that_cannot_give_back_yet(self):
        """What it still has is not given to the guest on the other host."""
        self.break_libvirt((fakelibvirt.Domain, 'createWithFlags'), times=1)
        # By spawn, and by the cleanup after it.
        self.break_libvirt((libvirt.MediatedDevice, 'destroy'), times=2)
        server = self.boot(self.flavor)
        self.assertEqual(3, self.failures)
        here = server['OS-EXT-SRV-ATTR:host']
        (there,) = set(self.hosts) - {here}
        hosts = [arq['hostname'] for arq in self.arqs(server)]
        self.assertEqual(
            [here, here, there, there],
            sorted(hosts, key=lambda host: host == there),
        )
        before = self.guest_devices(server)
        self._reboot_server(server, hard=True)
        self.assertEqual(before, self.guest_devices(server))
        self.assertEqual(2, len(before))
        self.computes[there].driver._accelerators.attachments.retry()
        self.assert_guest_has_its_arqs(server, (0, 'PCI'), (1, 'MDEV'))
        self.delete(server)

    def test_a_lost_race(self):
        self.lose_races(times=1)
        server = self.assert_rescheduled()
        self.assertEqual(1, len(self.thieves))
        self.free_what_was_stolen()
        self.delete(server)

    def test_all_races_lost(self):
        self.lose_races(times=2)
        server = self.boot(self.flavor, expected_state='ERROR')
        self.assertEqual(2, len(self.thieves))
        self.assertIn(
            'Exceeded maximum number of retries', server['fault']['message']
        )
        self.free_what_was_stolen()
        self.assert_nothing_left()
        self.delete(server)


class TestDeletedBeforeItIsBuilt(CompatTestCase):
    """Nova frees the units in Placement, and forgets the ARQs."""

    def delete_at(self, method, is_done_first):
        """Delete the server when Nova calls a method of a class.

        :returns: what deletes the server that is booted
        """
        target, name = method
        real = getattr(target, name)

        def delete():
            (server,) = self.api.get_servers(detail=False)
            self.api.delete_server(server['id'])
            self._wait_until_deleted(server)

        def call_and_delete(*args, **kwargs):
            if not is_done_first:
                delete()
            result = real(*args, **kwargs)
            if is_done_first:
                delete()
            return result

        return fixtures.MonkeyPatch(
            f'{target.__module__}.{target.__name__}.{name}', call_and_delete
        )

    def test_its_arqs_are_gone_with_the_next_report(self):
        flavor = self.compat_flavor(base.FPGA, base.VGPU)
        driver = self.computes['host1'].driver
        reconciler = compute_parts.reconciler(
            driver._accelerators, driver._host
        )
        for method, is_done_first in (
            ((resource_tracker.ResourceTracker, 'instance_claim'), False),
            ((cyborg._CyborgClient, 'bind_arqs'), False),
            ((cyborg._CyborgClient, 'bind_arqs'), True),
        ):
            with self.delete_at(method, is_done_first):
                server = self.api.post_server(
                    {
                        'server': self._build_server(
                            flavor_id=flavor, networks='none'
                        )
                    }
                )
                self._wait_until_deleted(server)
            self.assertEqual(
                ['Bound'] * 2, [arq['state'] for arq in self.arqs(server)]
            )
            compute_parts.publisher(driver._accelerators).report()
            # The next pass is far away.
            reconciler.run()
            self.assert_nothing_left()


class TestBoundEvent(CompatTestCase):
    """Nova hears of what a host has made again, for somebody may wait."""

    def setUp(self):
        super().setUp()
        self.create_profile('fpga', [base.FPGA])
        self.plain = self._create_flavor()
        self.received = []
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.compute.manager.ComputeManager._process_instance_event',
                lambda manager, instance, event: self.received.append(
                    (instance.uuid, event.name, event.status, event.tag)
                ),
            )
        )
        self.provider = next(
            provider['uuid']
            for provider in self.accelerator_providers('host1')
            if 'FPGA' in provider['inventory']
        )

    def bind_to(self, server):
        """An ARQ, of a provider that has one unit."""
        arq_uuid = self.create_arq('fpga')
        self.bind(
            arq_uuid,
            {
                'hostname': 'host1',
                'device_rp_uuid': self.provider,
                'instance_uuid': server['id'],
            },
        )
        return arq_uuid

    def make_again(self, arq_uuid, failed=()):
        """As a host does after its boot."""
        host_api = clients.AcceleratorClient(
            self.keystone, self.nova, f'{self.url}/accelerator/v2'
        )
        for body in (
            {'arqs': [arq_uuid]},
            *({'arqs': [uuid], 'failed': [uuid]} for uuid in failed),
            {'arqs': []},
        ):
            host_api.request(
                'PUT', '/hosts/host1/provisioning', json=body
            ).raise_for_status()

    def test_only_what_is_made_again(self):
        server = self.boot(self.plain)
        arq_uuid = self.bind_to(server)
        self.assertEqual(
            ['Bound'], [arq['state'] for arq in self.arqs(server)]
        )
        self.assertEqual([], self.received)
        self.make_again(arq_uuid)
        self._wait_for_assert(
            functools.partial(
                self.assertEqual,
                [
                    (
                        server['id'],
                        'accelerator-request-bound',
                        'completed',
                        arq_uuid,
                    )
                ],
                self.received,
            )
        )
        self.delete_arqs_of(server['id'])

    def test_what_fails_and_is_made_after_all(self):
        server = self.boot(self.plain)
        arq_uuid = self.bind_to(server)
        self.make_again(arq_uuid, failed=[arq_uuid])
        self._wait_for_assert(
            functools.partial(
                self.assertEqual,
                [
                    (
                        server['id'],
                        'accelerator-request-bound',
                        status,
                        arq_uuid,
                    )
                    for status in ('failed', 'completed')
                ],
                self.received,
            )
        )
        self.delete_arqs_of(server['id'])

    def test_a_message_that_cannot_be_sent(self):
        def fail(*_args, **_kwargs):
            raise oslo_messaging.MessageDeliveryFailure('the queue is away')

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.compute.rpcapi.ComputeAPI.external_instance_event', fail
            )
        )
        server = self.boot(self.plain)
        arq_uuid = self.bind_to(server)
        self.make_again(arq_uuid)
        (arq,) = self.arqs(server)
        self.assertEqual((arq_uuid, 'Bound'), (arq['uuid'], arq['state']))
        self.assertIn(arq_uuid, self.stdlog.logger.output)
        self.delete_arqs_of(server['id'])
        self.delete(server)


class TestSideBySide(CompatTestCase):
    hosts = ('host1', 'host2')
    # Nova's services do not wait for each other, as on real ones.
    CAST_AS_CALL = False

    def test_native_and_compat_in_parallel(self):
        compat = self.compat_flavor(base.QAT, base.VGPU)
        native = self.create_accel_flavor('profile', device_profile.FLAVOR_KEY)
        servers = [
            self.api.post_server(
                {
                    'server': self._build_server(
                        flavor_id=flavor, networks='none'
                    )
                }
            )
            for flavor in (compat, native) * 3
        ]
        servers = [
            self._wait_for_state_change(server, 'ACTIVE') for server in servers
        ]
        self.assertEqual(
            12,
            len(
                {
                    (server['OS-EXT-SRV-ATTR:host'], device)
                    for server in servers
                    for device in self.guest_devices(server)
                }
            ),
        )
        for server in servers:
            self.assertEqual(
                sorted(map(self.arq_device, self.arqs(server))),
                self.guest_devices(server),
            )
        self.delete(*servers)
