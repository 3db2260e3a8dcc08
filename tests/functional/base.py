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

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt

from nova_accel.model import attach_handle
from nova_accel.testing import cloud
from nova_accel.testing import hostdev


class AcceleratorTestCase(cloud.Cloud):
    """A cloud whose servers' devices can be named.

    :ivar failures: how many calls of libvirt were made to fail
    """

    ADMIN_API = True
    failures = 0

    def guest_devices(self, server):
        """What the guest has: PCI addresses and uuids of mdevs, sorted."""
        return sorted(map(hostdev.identity, self.hostdevs(server)))

    @staticmethod
    def arq_device(arq):
        """What an ARQ of the REST API hands over, as a guest has it."""
        handle = attach_handle.from_dict(
            {'uuid': arq['attach_handle_uuid'],
             'info': arq['attach_handle_info']})
        return str(handle.uuid if handle.mdev_type else handle.address)

    def _wait_for_server_parameter(self, server, expected_params,
                                   max_retries=10, **kwargs):
        """With time for a busy machine: 30 seconds."""
        return super()._wait_for_server_parameter(
            server, expected_params, max_retries=max(max_retries, 60),
            **kwargs)

    def _create_flavor(self, **kwargs):
        """Small, so that accelerators are what runs out."""
        return super()._create_flavor(**{
            'memory_mb': 64, 'vcpu': 1, 'disk': 1, 'ephemeral': 0, **kwargs})

    def boot(self, flavor, **kwargs):
        return self._create_server(
            flavor_id=flavor, networks='none', **kwargs)

    def boot_with(self, *groups, **flavor):
        """A server with a profile of these groups."""
        self.create_profile('profile', groups)
        return self.boot(self.create_accel_flavor('profile', **flavor))

    def delete(self, *servers):
        """And nothing may be left then."""
        for server in servers:
            self._delete_server(server)
        self.assert_nothing_left()

    def break_libvirt(self, method, times):
        """The first calls of a method fail; the ones after it do not."""
        target, name = method
        real = getattr(target, name)
        failing = iter(range(times))

        def fail_first(*args, **kwargs):
            if next(failing, None) is not None:
                self.failures += 1
                raise fakelibvirt.make_libvirtError(
                    fakelibvirt.libvirtError, 'the device is stuck',
                    error_code=fakelibvirt.VIR_ERR_INTERNAL_ERROR)
            return real(*args, **kwargs)

        self.useFixture(fixtures.MonkeyPatch(
            f'{target.__module__}.{target.__name__}.{name}', fail_first))
