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
import itertools
import threading

import cryptography.exceptions
import testtools

from nova_accel import exceptions
from nova_accel.bitstreams import bitstream_check
from nova_accel.model.fpga import fpga_bitstream
from rig.stubs import bitstreams

CHUNKS = [b'first', b'', b'second']
DATA = b''.join(CHUNKS)


def described(hash_algorithm='sha512'):
    return fpga_bitstream.from_image(
        bitstreams.image(DATA, hash_algorithm=hash_algorithm)
    )


class Verifier:
    """Of a signature that is good for one text."""

    def __init__(self, signed):
        self._signed = signed
        self._seen = b''

    def update(self, data):
        self._seen += data

    def verify(self):
        if self._seen != self._signed:
            raise cryptography.exceptions.InvalidSignature


def verified(bitstream, chunks=CHUNKS, verifier=None):
    """What has passed, and its hash."""
    found = bitstream_check.Verification(bitstream, verifier)
    passed = list(found.passing(chunks))
    return passed, found.end()


class TestVerification(testtools.TestCase):
    def refusal(self, *args, **kwargs):
        return str(
            self.assertRaises(
                exceptions.BitstreamRefused, verified, *args, **kwargs
            )
        )

    def test_passes_what_is_right(self):
        for algorithm in ('sha256', 'sha512', 'sha3_384', 'blake2b'):
            passed, sha256 = verified(described(algorithm))
            self.assertEqual(CHUNKS, passed)
            self.assertEqual(described('sha256').hash_value, sha256)

    def test_truncated(self):
        self.assertIn('5 of 11', self.refusal(described(), CHUNKS[:1]))

    def test_too_much_ends_at_once(self):
        def endless():
            while True:
                yield b'more'

        self.assertIn('more than', self.refusal(described(), endless()))

    def test_waits_for_a_slow_hash(self):
        """Else a whole bitstream could be in memory."""
        may_end = threading.Event()
        self.addCleanup(may_end.set)
        came = []

        class Slow(Verifier):
            def update(self, data):
                may_end.wait(30)

        def endless():
            for number in itertools.count():
                came.append(number)
                yield b''

        passing = bitstream_check.Verification(described(), Slow(b'')).passing(
            endless()
        )
        reader = threading.Thread(
            target=lambda: list(itertools.islice(passing, 100))
        )
        reader.start()
        reader.join(0.5)
        self.assertTrue(reader.is_alive())
        self.assertLess(len(came), 20)
        may_end.set()
        reader.join(30)
        passing.close()
        self.assertEqual(100, len(came))

    def test_another_hash(self):
        for algorithm in ('sha256', 'sha512'):
            self.assertIn(
                'corrupt',
                self.refusal(described(algorithm), [b'first', b'sEcond']),
            )

    def test_signature(self):
        verified(described(), verifier=Verifier(DATA))
        self.assertIn(
            'signature', self.refusal(described(), verifier=Verifier(b'other'))
        )


class TestCheckDescribed(testtools.TestCase):
    def refusal(self, max_bytes=100, **changes):
        return str(
            self.assertRaises(
                exceptions.BitstreamRefused,
                bitstream_check.check_described,
                dataclasses.replace(described(), **changes),
                max_bytes,
            )
        )

    def test_size(self):
        bitstream_check.check_described(described(), len(DATA))
        self.assertIn('bitstream_max_size_mb', self.refusal(len(DATA) - 1))
        self.assertIn('0 bytes', self.refusal(size=0))

    def test_hash(self):
        for changes in (
            {'hash_value': None},
            {'hash_algorithm': None},
            {'hash_algorithm': 'md5'},
            {'hash_algorithm': 'sha1'},
            {'hash_algorithm': 'shake_128'},
        ):
            self.assertIn('no hash', self.refusal(**changes), changes)
