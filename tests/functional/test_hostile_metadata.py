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

"""A tenant's bitstream says anything: its host and others do not mind."""

import io
import os
import time
import uuid

from functional import base
from rig.loopback import fpga_cloud
from rig.stubs import bitstreams

TENANT = uuid.uuid4().hex


class TestHostileMetadata(fpga_cloud.FpgaCloud, base.AcceleratorTestCase):
    """Many more are in ``crash.test_hostile_metadata``."""

    hosts = ('host1',)

    def setUp(self):
        super().setUp()
        self.region, *_others = self.regions('host1')
        self.create_fpga_profile('fpga', self.region)
        self.create_profile('qat', [base.QAT])
        self.fpga = self.create_accel_flavor('fpga')
        self.qat = self.create_accel_flavor('qat')
        # What others ask of the region that the tenant has left.
        self.create_fpga_profile(
            'operators',
            self.region,
            bitstream_id=self.upload(self.region, b'operators'),
        )
        self.operators = self.create_accel_flavor('operators')
        self.traits = self.placement_traits()

    def placement_traits(self):
        return set(self.placement.get('/traits', version='1.6').body['traits'])

    def server_image(self, bitstream_id):
        """What servers boot from; it asks for a bitstream."""
        image = bitstreams.image(b'', **{'accel:bitstream_id': bitstream_id})
        return self.glance.create(None, image, io.BytesIO(b''))['id']

    def boot_tenants(self, function_uuid):
        """A server with a bitstream of its own, whatever becomes of it.

        :returns: it
        """
        bitstream_id = self.upload(
            self.region, os.urandom(16), function_uuid=function_uuid
        )
        self.glance.images[bitstream_id].update(
            owner=TENANT, is_public=False, visibility='private'
        )
        server = self.api.post_server(
            {
                'server': self._build_server(
                    image_uuid=self.server_image(bitstream_id),
                    flavor_id=self.fpga,
                    networks='none',
                )
            }
        )
        for _try in range(600):
            server = self.api.get_server(server['id'])
            if server['status'] != 'BUILD':
                return server
            time.sleep(0.05)
        self.fail(f'{bitstream_id} is built for ever')

    def check_others(self, *tenants):
        """The host publishes, starts again and serves others.

        :param tenants: servers
        """
        self.settle('host1')
        self._run_periodics()
        self.assertEqual(self.traits, self.placement_traits())
        self.restart_compute_service('host1')
        self.settle('host1')
        self._run_periodics()
        self.delete(*tenants)
        for flavor in (self.qat, self.operators):
            self.delete(self.boot(flavor))
        for text in (
            'Publishing the accelerators',
            'could not be published',
            'Error updating resources',
        ):
            self.assertNotIn(text, self.stdlog.logger.output)

    def test_no_trait_can_be_made_of_a_function(self):
        servers = [
            self.boot_tenants(function_uuid)
            for function_uuid in ('---', 'x' * 300, '\u2122')
        ]
        self.assertEqual({'ERROR'}, {server['status'] for server in servers})
        self.check_others(*servers)

    def test_more_functions_than_the_api_takes(self):
        server = self.boot_tenants(
            ','.join(str(uuid.UUID(int=number)) for number in range(1100))
        )
        self.assertEqual('ERROR', server['status'])
        self.check_others(server)

    def test_a_function_of_the_operators(self):
        """The tenant gets his circuit, and no one is scheduled onto it."""
        server = self.boot_tenants(str(uuid.uuid4()))
        self.assertEqual('ACTIVE', server['status'])
        self.check_others(server)
