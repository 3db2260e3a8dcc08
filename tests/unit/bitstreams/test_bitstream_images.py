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

import io
import itertools
import types

import fixtures
from keystoneauth1 import token_endpoint
from nova import context as nova_context
import testtools
import webob
import webob.dec

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.bitstreams import bitstream_images
from nova_accel.model.fpga import fpga_bitstream
from rig.serving import wsgi_server
from rig.stubs import bitstreams
from rig.stubs import glance as glance_stub

DATA = b'bits' * 1000000
UNKNOWN = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'


class TestGlance(testtools.TestCase):
    """Nova's client on an image API that listens on loopback."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.server = self.useFixture(wsgi_server.WsgiServer())
        self.images = bitstreams.Images()
        self.requests = []
        # Instead of the image API's own answer to requests for a path.
        self.answers = {}
        self.stub = glance_stub.Glance(self.server.url, self.images)
        self.server.mount('/', webob.dec.wsgify(self.answer))
        for name, value, group in (
            ('api_servers', [self.server.url], 'glance'),
            ('num_retries', 0, 'glance'),
        ):
            self.set(name, value, group)
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.client.accelerator_api.auth_from_conf',
                lambda: token_endpoint.Token(self.server.url, 'the-hosts'),
            )
        )
        self.context = nova_context.RequestContext(
            'user',
            'project',
            is_admin=False,
            auth_token='the-callers',
            overwrite=False,
        )
        self.glance = bitstream_images.Glance()

    def set(self, name, value, group):
        conf.CONF.set_override(name, value, group)
        self.addCleanup(conf.CONF.clear_override, name, group)

    def answer(self, request):
        self.requests.append(
            (request.headers.get('X-Auth-Token'), request.path_qs)
        )
        for path, answer in self.answers.items():
            if path in request.path_qs:
                return answer
        return request.get_response(self.stub)

    def add(self, data=DATA, **properties):
        image = bitstreams.image(data, **properties)
        self.images.create(None, image, io.BytesIO(data))
        return fpga_bitstream.from_image(image)

    def test_show(self):
        bitstream = self.add(
            vendor='Intel', function_uuid=UNKNOWN, img_signature='c2ln'
        )
        self.assertEqual(
            bitstream, self.glance.show(bitstream.id, self.context)
        )
        self.assertIsNotNone(bitstream.signature)
        self.assertEqual(
            {'the-callers'}, {token for token, _path in self.requests}
        )

    def test_for_whom(self):
        for visibility, is_for_all in (
            ('public', True),
            ('community', True),
            ('shared', False),
            ('private', False),
        ):
            image = bitstreams.image(DATA)
            image['visibility'] = visibility
            self.images.create(None, image)
            self.assertIs(
                is_for_all, self.glance.is_for_all(image['id'], self.context)
            )
        self.assertRaises(
            exceptions.BitstreamNotFound,
            self.glance.is_for_all,
            UNKNOWN,
            self.context,
        )

    def test_properties_that_nova_does_not_know(self):
        image_id = self.images.add(DATA, **{'accel:function_name': 'fast'})
        image = self.glance.image(image_id, self.context)
        self.assertEqual({'accel:function_name': 'fast'}, image['properties'])

    def test_not_there(self):
        for status in (404, 403, 401):
            self.answers['v2/images/'] = webob.Response(status=status)
            error = self.assertRaises(
                exceptions.BitstreamNotFound,
                self.glance.show,
                UNKNOWN,
                self.context,
            )
            self.assertIn(UNKNOWN, str(error))

    def test_no_answer(self):
        self.answers['v2/images'] = webob.Response(status=500)
        for call in (
            lambda: self.glance.show(UNKNOWN, self.context),
            lambda: self.glance.tagged(self.context),
            lambda: list(self.glance.chunks(self.add(), self.context)),
        ):
            self.assertRaises(exceptions.ServiceUnavailable, call)

    def test_nobody_listens(self):
        self.set('api_servers', ['http://127.0.0.1:1'], 'glance')
        self.assertRaises(
            exceptions.ServiceUnavailable,
            self.glance.show,
            UNKNOWN,
            self.context,
        )

    def test_tagged(self):
        bitstream = self.add(function_name='multiply')
        guest = bitstreams.image(b'guest')
        guest['tags'] = []
        self.images.create(None, guest)
        deleted = bitstreams.image(b'off')
        deleted['status'] = 'deactivated'
        self.images.create(None, deleted)
        self.assertEqual([bitstream], self.glance.tagged(self.context))
        self.assertEqual(
            {'the-callers'}, {token for token, _path in self.requests}
        )

    def test_whose_image_it_is(self):
        image_id = self.images.add(DATA)
        self.images.show(None, image_id).update(
            visibility='shared', is_public=False, owner='project'
        )
        self.assertEqual(
            'project', self.glance.show(image_id, self.context).owner
        )
        self.set('bitstream_projects', ['project'], 'nova_accel')
        self.assertIsNone(self.glance.show(image_id, self.context).owner)
        (found,) = self.glance.tagged(self.context)
        self.assertIsNone(found.owner)

    def test_a_hostile_image_does_not_hide_the_others(self):
        log = self.useFixture(fixtures.FakeLogger())
        good = self.add(function_name='multiply')
        for properties in (
            {'mappings': 'x'},
            {'function_uuid': '---'},
            {'block_device_mapping': '[' * 65000},
        ):
            bad = self.images.add(DATA, **properties)
            self.assertEqual([good], self.glance.tagged(self.context))
            error = self.assertRaises(
                exceptions.BitstreamRefused,
                self.glance.show,
                bad,
                self.context,
            )
            self.assertIn(bad, str(error))
            self.assertIn(bad, log.output)

    def test_data(self):
        bitstream = self.add()
        chunks = list(self.glance.chunks(bitstream, self.context))
        self.assertEqual(DATA, b''.join(chunks))
        self.assertLess(1, len(chunks))
        # Nothing is asked with the host's own rights, as for a private one.
        self.assertEqual(
            {('the-callers', f'/v2/images/{bitstream.id}/file')},
            set(self.requests),
        )

    def test_data_is_not_fetched_in_advance(self):
        bitstream = self.add()
        self.glance.chunks(bitstream, self.context)
        self.assertEqual([], self.images.fetched)

    def test_data_that_comes_too_slowly(self):
        self.set('bitstream_fetch_timeout_s', 1, 'nova_accel')
        clock = itertools.count()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.bitstreams.bitstream_images.time',
                types.SimpleNamespace(monotonic=lambda: next(clock)),
            )
        )
        error = self.assertRaises(
            exceptions.ServiceUnavailable,
            list,
            self.glance.chunks(self.add(), self.context),
        )
        self.assertIn('bitstream_fetch_timeout_s', str(error))

    def test_no_data(self):
        bitstream = self.add(b'')
        error = self.assertRaises(
            exceptions.BitstreamNotFound,
            list,
            self.glance.chunks(bitstream, self.context),
        )
        self.assertIn('no data', str(error))

    def test_data_that_is_gone(self):
        bitstream = self.add()
        self.answers['/file'] = webob.Response(status=404)
        self.assertRaises(
            exceptions.BitstreamNotFound,
            list,
            self.glance.chunks(bitstream, self.context),
        )

    def test_a_connection_that_breaks(self):
        bitstream = self.add()
        self.answers['/file'] = webob.Response(
            content_type='application/octet-stream',
            app_iter=[DATA[:10]],
            content_length=len(DATA),
        )
        self.assertRaises(
            exceptions.ServiceUnavailable,
            list,
            self.glance.chunks(bitstream, self.context),
        )
