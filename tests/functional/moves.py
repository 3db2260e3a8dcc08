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

"""What the tests of resize and migration have in common."""

import functools

from nova.virt import libvirt
import sqlalchemy as sa

from functional import base
from nova_accel import exceptions
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.testing import hostdev


class MoveTestCase(base.AcceleratorTestCase):
    """Two hosts, and flavors with and without accelerators."""

    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        self.plain = self._create_flavor()
        self.create_profile('both', [base.FPGA, base.VGPU])
        self.both = self.create_accel_flavor('both')
        self.create_profile('vgpus', [{'resources:VGPU': '2'}])
        self.vgpus = self.create_accel_flavor('vgpus')

    def boot_on(self, host, flavor):
        return self.boot(flavor, host=host)

    def resize(self, server, flavor, status='VERIFY_RESIZE'):
        self.api.post_server_action(
            server['id'], {'resize': {'flavorRef': flavor}}
        )
        return self._wait_for_state_change(server, status)

    def confirm(self, server, source='host1'):
        # Nova's driver looks at the one option that all computes here share.
        self.flags(host=source)
        return self._confirm_resize(server)

    def revert(self, server):
        self.api.post_server_action(server['id'], {'revertResize': None})
        return self._wait_for_state_change(server, 'ACTIVE')

    def held(self, server):
        """(host, role) -> the devices that the server holds so, sorted."""
        with engine.reader() as connection:
            keys = connection.execute(
                sa.select(schema.ARQS.c.hostname, schema.ARQS.c.role)
                .where(schema.ARQS.c.instance_uuid == server['id'])
                .distinct()
            ).all()
        return {
            (host, role): sorted(
                self.arq_device(arq)
                for arq in host_arqs.get(server['id'], host, role)
            )
            for host, role in keys
        }

    def assert_guest(self, server, host, devices):
        """The server runs on the host, with these devices and ARQs alone."""
        server = self.api.get_server(server['id'])
        self.assertEqual(host, server['OS-EXT-SRV-ATTR:host'])
        self.assertEqual(
            devices, sorted(map(hostdev.identity, self.hostdevs(server, host)))
        )
        self.assertEqual(
            {(host, 'active'): devices} if devices else {}, self.held(server)
        )
        self.assert_counted(server)

    def assert_usage(self, host, **usage):
        """What Placement counts of the host's accelerators."""
        found = {}
        for provider in self.accelerator_providers(host):
            for resource_class, amount in provider['usage'].items():
                found[resource_class] = found.get(resource_class, 0) + amount
        self.assertEqual(
            {'FPGA': 0, 'VGPU': 0, 'CUSTOM_QAT': 0, **usage}, found
        )

    def cut_off(self, host):
        """The host's requests to the API fail, until what is returned."""
        api = self.computes[host].driver._accelerators.attachments._api

        def fail(*_args, **_kwargs):
            raise exceptions.ServiceUnavailable('the network is cut')

        api._call = fail
        return functools.partial(delattr, api, '_call')

    def break_driver(self, name, error):
        """The next call of a method of Nova's driver raises."""
        self.break_method(libvirt.LibvirtDriver, name, error)


class ServerTestCase(MoveTestCase):
    """A server that has devices of both kinds on the first host.

    :ivar before: its devices
    """

    CAST_AS_CALL = False

    def setUp(self):
        super().setUp()
        self.server = self.boot_on('host1', self.both)
        self.before = self.guest_devices(self.server)
