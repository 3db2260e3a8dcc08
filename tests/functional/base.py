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

"""What the functional tests have in common."""

import collections
import contextlib
import faulthandler
import functools
import gc
import sys

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt

from nova_accel import exceptions
from nova_accel.drivers import mdev
from nova_accel.model import attach_handle
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.testing import fake_fpga
from nova_accel.testing import hostdev
from rig import compute_parts
from rig.loopback import cloud

FPGA = {'resources:FPGA': '1'}
QAT = {'resources:CUSTOM_QAT': '1'}
VGPU = {'resources:VGPU': '1'}

# All that is imported stays for the life of the process. Looking for garbage
# in it, at Python's default thresholds, took a sixth of a test's time.
gc.freeze()
gc.set_threshold(50_000, 20, 50)

_DRIVERS = {'PCI': fake_fpga.FakeFpgaDriver, 'mdev': mdev.MdevDriver}


def _stuck():
    return exceptions.DeviceError(
        '0000:99:00.0 of host9 is stuck', public='the device is stuck'
    )


class AcceleratorTestCase(cloud.Cloud):
    """A cloud whose servers' devices can be named.

    :cvar hosts: started, with all kinds of devices, before each test
    :cvar flavor_key: by which servers get accelerators: NATIVE, or Cyborg's
        for COMPAT
    :cvar never_ends_s: a test that takes so long ends the process; longer
        than OS_TEST_TIMEOUT, which ends no thread
    :ivar failures: how many calls were made to fail
    :ivar wsgi: what serves all APIs
    """

    ADMIN_API = True
    hosts = ('host1',)
    flavor_key = device_profile.FLAVOR_KEY
    never_ends_s = 600
    failures = 0

    def setUp(self):
        # Also where the process then waits for a thread that never ends: all
        # of them are shown, and it ends as a failure.
        faulthandler.dump_traceback_later(
            self.never_ends_s, exit=True, file=sys.__stderr__
        )
        super().setUp()
        self.wsgi = self.server
        self.flags(
            cyborg_compatible=(
                self.flavor_key == device_profile.CYBORG_FLAVOR_KEY
            ),
            group='nova_accel',
        )
        for host in self.hosts:
            self.start_accelerated_compute(host)

    def guest_devices(self, server):
        """What the guest has: PCI addresses and uuids of mdevs, sorted."""
        return sorted(map(hostdev.identity, self.hostdevs(server)))

    @staticmethod
    def arq_device(arq):
        """What an ARQ of the REST API hands over, as a guest has it."""
        handle = attach_handle.from_dict(
            {
                'uuid': arq['attach_handle_uuid'],
                'type': arq['attach_handle_type'],
                'info': arq['attach_handle_info'],
            }
        )
        return str(handle.uuid if handle.mdev_type else handle.address)

    def _wait_for_server_parameter(
        self, server, expected_params, max_retries=10, **kwargs
    ):
        """With time for a busy machine: 30 seconds."""
        return super()._wait_for_server_parameter(
            server, expected_params, max_retries=max(max_retries, 60), **kwargs
        )

    def _wait_for_assert(self, assert_func, max_retries=10, **kwargs):
        """With as much time."""
        return super()._wait_for_assert(
            assert_func, max_retries=max(max_retries, 60), **kwargs
        )

    def _wait_for_instance_action_event(self, *args, **kwargs):
        """Nova waits five seconds: six times that."""
        return super()._wait_for_assert(
            functools.partial(
                super()._wait_for_instance_action_event, *args, **kwargs
            ),
            max_retries=6,
        )

    def _wait_for_migration_status(self, *args):
        """So, too."""
        return super()._wait_for_assert(
            functools.partial(super()._wait_for_migration_status, *args),
            max_retries=6,
        )

    def _create_flavor(self, **kwargs):
        """Small, so that accelerators are what runs out."""
        return super()._create_flavor(
            **{'memory_mb': 64, 'vcpu': 1, 'disk': 1, 'ephemeral': 0, **kwargs}
        )

    def create_accel_flavor(self, profile, key=None, **kwargs):
        return super().create_accel_flavor(
            profile, key or self.flavor_key, **kwargs
        )

    def boot(self, flavor, **kwargs):
        return self._create_server(flavor_id=flavor, networks='none', **kwargs)

    def boot_with(self, *groups, **flavor):
        """A server with a profile of these groups."""
        self.create_profile('profile', groups)
        return self.boot(self.create_accel_flavor('profile', **flavor))

    def delete(self, *servers):
        """And nothing may be left then."""
        for server in servers:
            self._delete_server(server)
        self.assert_nothing_left()

    def assert_guest_has_its_arqs(self, server, *expected):
        """Each ARQ is bound and is one <hostdev>; and nothing else is.

        :param expected: (group, attach handle type) of each
        """
        arqs = self.arqs(server)
        self.assertEqual(
            sorted(expected),
            sorted(
                (arq['device_profile_group_id'], arq['attach_handle_type'])
                for arq in arqs
            ),
        )
        host = server['OS-EXT-SRV-ATTR:host']
        self.assertEqual(
            {('Bound', host, server['id'])},
            {
                (arq['state'], arq['hostname'], arq['instance_uuid'])
                for arq in arqs
            },
        )
        self.assertEqual(
            sorted(map(self.arq_device, arqs)), self.guest_devices(server)
        )
        self.assertEqual(
            sorted(
                arq['attach_handle_uuid']
                for arq in arqs
                if arq['attach_handle_type'] == 'MDEV'
            ),
            sorted(self.mdevs(host)),
        )
        self.assert_counted(server)

    def assert_counted(self, server):
        """Placement has allocated to it what hosts hold for it.

        After an operation that loses allocations, the hosts look first. Nova
        gives a migration's allocations back when all is done.
        """
        for compute in self.computes.values():
            compute_parts.count(
                compute.driver._accelerators, compute.driver._host
            )
        held = collections.Counter()
        for compute in self.computes.values():
            for (
                binding
            ) in compute.driver._accelerators.attachments.held.bindings():
                if binding.instance_uuid != server['id']:
                    continue
                for arq in binding.arqs:
                    held[arq.device_rp_uuid, arq.resource_class] += 1
                    if arq.handle.slice is not None:
                        held[arq.device_rp_uuid, naming.CARD_SHARE] += (
                            arq.handle.slice.size
                        )
        self._wait_for_assert(
            lambda: self.assertEqual(dict(held), self.allocated(server))
        )

    def assert_all_counted(self):
        for server in self.api.get_servers(detail=False):
            self.assert_counted(server)

    def allocated(self, server):
        """(provider of ours, class) -> the amount, also of its migrations."""
        consumers = {server['id']}.union(
            migration['uuid']
            for migration in self.admin_api.api_get(
                f'/os-migrations?instance_uuid={server["id"]}'
            ).body['migrations']
        )
        ours = self.provider_names()
        found = collections.Counter()
        for consumer in consumers:
            for rp_uuid, allocation in (
                self.placement.get(f'/allocations/{consumer}', version='1.28')
                .body['allocations']
                .items()
            ):
                if rp_uuid in ours:
                    found.update(
                        {
                            (rp_uuid, name): amount
                            for name, amount in allocation['resources'].items()
                        }
                    )
        return dict(found)

    def settle(self, host):
        """Have the host do now what it does periodically."""
        self.computes[host].driver._accelerators.cycle.run()

    def break_libvirt(self, method, times):
        """The first calls of a method fail; the ones after it do not."""
        self.break_method(
            *method,
            fakelibvirt.make_libvirtError(
                fakelibvirt.libvirtError,
                'the device is stuck',
                error_code=fakelibvirt.VIR_ERR_INTERNAL_ERROR,
            ),
            times,
        )

    def break_method(self, target, name, error, times=1):
        """The first calls of a method of a class raise the error."""
        real = getattr(target, name)
        failing = iter(range(times))

        def fail_first(*args, **kwargs):
            if next(failing, None) is not None:
                self.failures += 1
                raise error
            return real(*args, **kwargs)

        self.useFixture(
            fixtures.MonkeyPatch(
                f'{target.__module__}.{target.__name__}.{name}', fail_first
            )
        )

    def each_refusing(self, method='plug', times=1):
        """A device of each kind after the other refuses."""
        for device in _DRIVERS:
            before = self.failures
            self.break_plug(device, method, times)
            yield
            self.assertEqual(before + times, self.failures)

    @contextlib.contextmanager
    def stuck(self, method):
        """All devices refuse a call of their drivers while the body runs."""

        def refuse(*_args):
            raise _stuck()

        with contextlib.ExitStack() as stack:
            for driver in _DRIVERS.values():
                stack.enter_context(
                    fixtures.MonkeyPatch(
                        f'{driver.__module__}.{driver.__name__}.{method}',
                        refuse,
                    )
                )
            yield

    def break_plug(self, device, method='plug', times=1):
        """The next device of the kind, PCI or mdev, refuses."""
        self.break_method(
            _DRIVERS[device],
            method,
            _stuck(),
            times,
        )

    @contextlib.contextmanager
    def api_away(self):
        """Whoever calls the accelerator API gets a 503."""

        def unavailable(_environ, start_response):
            start_response('503 Service Unavailable', [])
            return [b'']

        self.wsgi.mount('/accelerator', unavailable)
        try:
            yield
        finally:
            self.wsgi.unmount('/accelerator')
