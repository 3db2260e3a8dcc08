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

"""Glance, with the bitstreams of a tenant, for a cloud of two hosts."""

import io
import os

import fixtures
from keystoneauth1 import token_endpoint
from nova import conf as nova_conf
from nova import context as nova_context

from rig.serving import wsgi_server
from rig.stubs import bitstreams
from rig.stubs import glance as glance_stub

CONF = nova_conf.CONF


class TenantsBitstreams(fixtures.Fixture):
    """Nova's client asks it by HTTP, with the tenant's token."""

    def _setUp(self):
        self._images = bitstreams.Images()
        server = self.useFixture(wsgi_server.WsgiServer())
        server.mount('/', glance_stub.Glance(server.url, self._images))
        for name, value in (('api_servers', [server.url]), ('num_retries', 0)):
            CONF.set_override(name, value, 'glance')
            self.addCleanup(CONF.clear_override, name, 'glance')
        for name, value in (
            (
                'nova_accel.client.accelerator_api.auth_from_conf',
                lambda: token_endpoint.Token(server.url, 'the-hosts'),
            ),
            (
                'crash.imitation._CONTEXT',
                nova_context.RequestContext(
                    'user',
                    'project',
                    is_admin=False,
                    auth_token='the-tenants',
                    overwrite=False,
                ),
            ),
        ):
            self.useFixture(fixtures.MonkeyPatch(name, value))

    def upload(self, **properties):
        """A private bitstream; returns the image's uuid."""
        data = os.urandom(16)
        image = bitstreams.image(data, **properties)
        image.update(owner='project', visibility='private', is_public=False)
        return self._images.create(None, image, io.BytesIO(data))['id']
