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
import hashlib
import logging
import pathlib
import threading
import types

import fixtures
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.bitstreams import bitstream_cache
from nova_accel.bitstreams import store
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from rig import sample_devices
from rig.stubs import bitstreams
from rig.stubs import key_manager

FUNCTION = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
REGION_TYPE = '9eb88c8c-981c-59f8-9ada-574fd16d4d18'
DATA = b'bits' * 1000
CONTEXT = types.SimpleNamespace(project_id='mine')

CARD = sample_devices.fpga(0x81, product='PAC Arria10')
REGION = programmable.Region('region1', REGION_TYPE)


class Glance:
    """Bitstreams, as a Glance in the same process would have them.

    :ivar answers: if it is set, what comes instead of the data of each
    """

    def __init__(self):
        self._images = bitstreams.Images()
        self.answers = None
        self.downloads = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def add(self, data=DATA, owner=None, **properties):
        """:param owner: if it is a project's"""
        properties.setdefault('region_uuid', REGION_TYPE)
        image_id = self._images.add(data, **properties)
        if owner is not None:
            self._images.show(None, image_id).update(
                is_public=False, owner=owner
            )
        return fpga_bitstream.from_image(self._images.show(None, image_id))

    def is_for_all(self, bitstream_id, context):
        assert context is CONTEXT
        image = self._images.show(None, bitstream_id)
        return image['visibility'] != 'private'

    def hide(self, bitstream_id):
        self._images.show(None, bitstream_id)['visibility'] = 'private'

    def show(self, bitstream_id, context):
        for found in self.tagged(context):
            if found.id == bitstream_id:
                return found
        raise exceptions.BitstreamNotFound(bitstream_id)

    def tagged(self, context):
        assert context is CONTEXT
        return [
            fpga_bitstream.from_image(image)
            for image in self._images.detail(None)
        ]

    def chunks(self, bitstream, context):
        assert context is CONTEXT
        self.downloads.append(bitstream.id)
        self.may_answer.wait(60)
        yield from self.answers or [DATA[:1000], DATA[1000:]]


class StoreTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.glance = Glance()
        self.store = self.reopened()

    def reopened(self):
        return store.Store(
            self.glance, bitstream_cache.Cache(self.directory, 10000)
        )

    def set(self, name, value, group='nova_accel'):
        conf.CONF.set_override(name, value, group)
        self.addCleanup(conf.CONF.clear_override, name, group)

    def fetch(self, bitstream):
        """The content of its file."""
        with self.store.fetched(bitstream, CONTEXT) as fetched:
            self.assertEqual(fetched.sha256, fetched.path.name)
            return fetched.path.read_bytes()

    def refusal(self, bitstream, fault=exceptions.BitstreamRefused):
        return str(self.assertRaises(fault, self.fetch, bitstream))

    def files(self):
        return [path for path in self.directory.iterdir() if path.is_file()]


class TestResolve(StoreTestCase):
    def resolve(self, **wanted):
        return self.store.resolve(
            fpga_bitstream.WantedBitstream(**wanted), CARD, REGION, CONTEXT
        )

    def fault(self, fault, **wanted):
        return str(self.assertRaises(fault, self.resolve, **wanted))

    def texts(self, **wanted):
        """What is logged of what is not found, and what the caller reads."""
        error = self.assertRaises(
            exceptions.BitstreamNotFound, self.resolve, **wanted
        )
        self.assertIn(str(CARD.address), str(error))
        self.assertNotIn(str(CARD.address), error.public)
        return str(error), error.public

    def test_by_id(self):
        bitstream = self.glance.add()
        self.glance.add()
        self.assertEqual(bitstream, self.resolve(bitstream_id=bitstream.id))

    def test_another_projects_image_has_no_function(self):
        theirs = self.glance.add(owner='theirs', function_uuid=FUNCTION)
        text = self.fault(exceptions.BitstreamNotFound, function_id=FUNCTION)
        self.assertNotIn(theirs.id, text)
        mine = self.glance.add(owner='mine', function_uuid=FUNCTION)
        self.assertEqual(mine, self.resolve(function_id=FUNCTION))
        # Who names it knows what he does.
        self.assertEqual(theirs, self.resolve(bitstream_id=theirs.id))

    def test_an_id_that_does_not_fit(self):
        bitstream = self.glance.add(vendor='Xilinx', board='U250')
        text = self.fault(
            exceptions.BitstreamRefused, bitstream_id=bitstream.id
        )
        for part in (
            bitstream.id,
            'region1 of 0000:81:00.0',
            'Xilinx',
            'U250',
        ):
            self.assertIn(part, text)

    def test_an_id_that_is_not_there(self):
        self.fault(exceptions.BitstreamNotFound, bitstream_id=FUNCTION)

    def test_by_function(self):
        bitstream = self.glance.add(
            function_uuid=FUNCTION, function_name='multiply'
        )
        self.glance.add(
            function_uuid=FUNCTION,
            function_name='multiply',
            region_uuid=FUNCTION,
        )
        self.glance.add()
        self.assertEqual(bitstream, self.resolve(function_id=FUNCTION))
        self.assertEqual(bitstream, self.resolve(function_name='multiply'))

    def test_more_than_one(self):
        found = [
            self.glance.add(name=name, function_uuid=FUNCTION)
            for name in ('fast', 'small')
        ]
        for text in self.texts(function_id=FUNCTION):
            self.assertIn('2 bitstreams', text)
            for each in found:
                self.assertIn(f'{each.name!r} ({each.id})', text)

    def test_none_fits(self):
        found = self.glance.add(
            name='other', function_name='multiply', vendor='Xilinx'
        )
        for text in self.texts(function_name='multiply'):
            for part in ('multiply', found.id, 'its vendor is Xilinx'):
                self.assertIn(part, text)

    def test_there_is_none(self):
        self.glance.add(function_name='multiply')
        text = self.fault(exceptions.BitstreamNotFound, function_name='divide')
        self.assertIn("no bitstream with function 'divide' fits", text)


class TestResolveForAll(StoreTestCase):
    def resolve(self, bitstream_id):
        return self.store.resolve_for_all(bitstream_id, CARD, REGION, CONTEXT)

    def is_refused(self, why, bitstream_id):
        error = self.assertRaises(
            exceptions.BitstreamRefused, self.resolve, bitstream_id
        )
        self.assertIn(why, str(error))

    def test_the_operators(self):
        found = self.glance.add()
        self.assertEqual(found, self.resolve(found.id))

    def test_a_projects(self):
        self.is_refused(
            "not the operator's", self.glance.add(owner='project').id
        )

    def test_what_not_every_project_may_use(self):
        found = self.glance.add()
        self.glance.hide(found.id)
        self.is_refused('publish its image', found.id)

    def test_what_does_not_fit(self):
        self.is_refused(
            'does not fit', self.glance.add(region_uuid=FUNCTION).id
        )


class TestFetched(StoreTestCase):
    def test_downloaded_once(self):
        bitstream = self.glance.add()
        for _again in range(2):
            self.assertEqual(DATA, self.fetch(bitstream))
        self.store = self.reopened()
        self.assertEqual(DATA, self.fetch(bitstream))
        self.assertEqual([bitstream.id], self.glance.downloads)

    def test_two_at_once(self):
        bitstream = self.glance.add()
        found = []
        self.glance.may_answer.clear()
        threads = [
            threading.Thread(
                target=lambda: found.append(self.fetch(bitstream))
            )
            for _number in range(4)
        ]
        for thread in threads:
            thread.start()
        self.glance.may_answer.set()
        for thread in threads:
            thread.join()
        self.assertEqual([DATA] * 4, found)
        self.assertEqual([bitstream.id], self.glance.downloads)

    def test_pinned_while_it_is_used(self):
        bitstream, other = self.glance.add(), self.glance.add(b'o' * 8000)
        self.glance.answers = None
        with self.store.fetched(bitstream, CONTEXT) as fetched:
            self.glance.answers = [b'o' * 8000]
            self.refusal(other, exceptions.DeviceError)
            self.assertTrue(fetched.path.exists())
        self.fetch(other)
        self.assertFalse(fetched.path.exists())

    def test_released_when_its_use_fails(self):
        bitstream, other = self.glance.add(), self.glance.add(b'o' * 8000)

        def use():
            with self.store.fetched(bitstream, CONTEXT):
                raise exceptions.DeviceError('it did not take it')

        self.assertRaises(exceptions.DeviceError, use)
        self.glance.answers = [b'o' * 8000]
        self.fetch(other)

    def test_an_image_that_changed(self):
        bitstream = self.glance.add()
        self.fetch(bitstream)
        changed = dataclasses.replace(
            self.glance.add(b'n' * 10), id=bitstream.id
        )
        self.glance.answers = [b'n' * 10]
        self.assertEqual(b'n' * 10, self.fetch(changed))
        self.assertEqual([bitstream.id] * 2, self.glance.downloads)

    def test_too_large(self):
        self.set('bitstream_max_size_mb', 1)
        bitstream = dataclasses.replace(
            self.glance.add(), size=1024 * 1024 + 1
        )
        self.assertIn('bitstream_max_size_mb', self.refusal(bitstream))
        self.assertEqual([], self.glance.downloads)

    def test_what_is_wrong_leaves_nothing(self):
        bitstream = self.glance.add()
        for answer, why in (
            ([DATA[:-1]], 'truncated'),
            ([DATA, b'x'], 'more than'),
            ([b'x' * len(DATA)], 'corrupt'),
        ):
            self.glance.answers = answer
            self.assertIn(why, self.refusal(bitstream))
            self.assertEqual([], self.files())

    def test_a_fault_in_the_middle_leaves_nothing(self):
        def chunks(_bitstream, _context):
            yield DATA[:1000]
            raise exceptions.ServiceUnavailable('gone')

        self.glance.chunks = chunks
        self.refusal(self.glance.add(), exceptions.ServiceUnavailable)
        self.assertEqual([], self.files())

    def test_damaged_in_the_cache(self):
        bitstream = self.glance.add()
        self.fetch(bitstream)
        (path,) = self.files()
        path.write_bytes(b'x' * len(DATA))
        self.assertEqual(DATA, self.fetch(bitstream))
        self.assertEqual([bitstream.id] * 2, self.glance.downloads)
        path.write_bytes(b'x' * len(DATA))
        self.glance.answers = [b'x' * len(DATA)]
        self.refusal(bitstream)
        self.assertEqual([], self.files())


class TestKept(StoreTestCase):
    """What a guest had already, without Glance."""

    def kept(self, sha256=None):
        with self.store.kept(
            sha256 or hashlib.sha256(DATA).hexdigest()
        ) as file:
            return file and (file.path.read_bytes(), file.sha256)

    def test_what_was_fetched(self):
        self.assertIsNone(self.kept())
        self.fetch(self.glance.add())
        self.store = self.reopened()
        self.glance.show = self.glance.chunks = None
        self.assertEqual((DATA, hashlib.sha256(DATA).hexdigest()), self.kept())

    def test_what_was_damaged(self):
        self.fetch(self.glance.add())
        [path] = self.files()
        path.write_bytes(DATA[::-1])
        self.assertIsNone(self.kept())
        self.assertEqual([], self.files())

    def test_no_hash(self):
        for name in ('../images', 'images', '0' * 64):
            self.assertIsNone(self.kept(name))

    def test_it_stays_while_it_is_used(self):
        bitstream = self.glance.add()
        self.fetch(bitstream)
        [path] = self.files()
        with self.store.kept(path.name):
            self.assertEqual(1, self.store._cache._pins[path.name])
        self.assertEqual({}, self.store._cache._pins)


class TestSigned(StoreTestCase):
    def setUp(self):
        super().setUp()
        self.keys = self.useFixture(key_manager.KeyManager())
        self.certificate_id = self.keys.issue()

    def add(self, signed=DATA):
        return self.glance.add(**self.keys.sign(signed, self.certificate_id))

    def test_good(self):
        bitstream = self.add()
        for _again in range(2):
            self.assertEqual(DATA, self.fetch(bitstream))
        self.assertEqual([bitstream.id], self.glance.downloads)
        # Once more from the cache.
        self.assertEqual([CONTEXT] * 2, self.keys.asked_by)

    def test_bad(self):
        self.assertIn('signature', self.refusal(self.add(b'other')))
        self.assertEqual([], self.files())

    def test_missing(self):
        self.set('bitstream_signatures', 'required')
        self.assertIn('no signature', self.refusal(self.glance.add()))
        self.assertEqual([], self.glance.downloads)

    def test_what_was_fetched_before_it_was_required(self):
        bitstream = self.glance.add()
        self.fetch(bitstream)
        self.set('bitstream_signatures', 'required')
        self.refusal(bitstream)

    def test_another_signature_of_what_is_in_the_cache(self):
        bitstream = self.add()
        self.fetch(bitstream)
        resigned = dataclasses.replace(
            bitstream, signature=self.add(b'other').signature
        )
        self.assertIn('signature', self.refusal(resigned))
        self.assertEqual([], self.files())


class TestPrefetch(StoreTestCase):
    def test_downloads_before_it_is_needed(self):
        bitstream = self.glance.add()
        self.store.prefetch(bitstream.id, CONTEXT)
        self.assertEqual([bitstream.id], self.glance.downloads)
        self.assertEqual(DATA, self.fetch(bitstream))
        self.assertEqual([bitstream.id], self.glance.downloads)

    def test_what_the_caller_may_not_see(self):
        self.assertRaises(
            exceptions.BitstreamNotFound,
            self.store.prefetch,
            FUNCTION,
            CONTEXT,
        )


class TestFromConf(StoreTestCase):
    def test_the_operators_directory(self):
        self.set('bitstream_cache_directory', str(self.directory / 'its'))
        store.from_conf()
        self.assertTrue((self.directory / 'its' / 'images').is_dir())

    def test_signatures_of_anyone(self):
        log = self.useFixture(fixtures.FakeLogger())
        self.set('bitstream_cache_directory', str(self.directory / 'its'))
        self.set('bitstream_signatures', 'required')
        store.from_conf()
        self.assertIn('bitstream_trusted_certificates is empty', log.output)
