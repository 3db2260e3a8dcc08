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

import cryptography.exceptions
import testtools

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.bitstreams import signing
from nova_accel.model.fpga import fpga_bitstream
from rig.stubs import bitstreams
from rig.stubs import key_manager

DATA = b'bits'
CONTEXT = object()


class SignatureTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.keys = self.useFixture(key_manager.KeyManager())

    def set(self, name, value, group='nova_accel'):
        conf.CONF.set_override(name, value, group)
        self.addCleanup(conf.CONF.clear_override, name, group)

    def signed(self, certificate_id, data=DATA, **changes):
        return fpga_bitstream.from_image(
            bitstreams.image(
                DATA, **{**self.keys.sign(data, certificate_id), **changes}
            )
        )

    def verify(self, bitstream):
        """Whether the signature was asked for, and is good."""
        verifier = signing.verifier(bitstream, CONTEXT)
        if verifier is not None:
            verifier.update(DATA)
            verifier.verify()
        return verifier is not None

    def refusal(self, bitstream):
        return str(
            self.assertRaises(
                exceptions.BitstreamRefused,
                signing.verifier,
                bitstream,
                CONTEXT,
            )
        )


class TestPolicy(SignatureTestCase):
    def setUp(self):
        super().setUp()
        self.unsigned = fpga_bitstream.from_image(bitstreams.image(DATA))
        self.good = self.signed(self.keys.issue())
        self.bad = self.signed(self.keys.issue(), data=b'other')

    def test_if_present_is_the_default(self):
        self.assertFalse(self.verify(self.unsigned))
        self.assertTrue(self.verify(self.good))
        self.assertRaises(
            cryptography.exceptions.InvalidSignature, self.verify, self.bad
        )

    def test_off(self):
        self.set('bitstream_signatures', 'off')
        for bitstream in (self.unsigned, self.good, self.bad):
            self.assertFalse(self.verify(bitstream))
        self.assertEqual([], self.keys.asked_by)

    def test_required(self):
        self.set('bitstream_signatures', 'required')
        self.assertIn('no signature', self.refusal(self.unsigned))
        self.assertTrue(self.verify(self.good))
        self.assertRaises(
            cryptography.exceptions.InvalidSignature, self.verify, self.bad
        )

    def test_required_of_the_operators_alone(self):
        """No one has signed what a project's image says of itself."""
        own = dataclasses.replace(self.good, owner='project')
        self.assertTrue(self.verify(own))
        self.set('bitstream_signatures', 'required')
        text = self.refusal(own)
        self.assertIn(own.id, text)
        self.assertIn('bitstream_projects', text)

    def test_the_caller_asks_for_the_certificate(self):
        self.verify(self.good)
        self.assertEqual([CONTEXT], self.keys.asked_by)


class TestMalformed(SignatureTestCase):
    def test_each_part(self):
        certificate_id = self.keys.issue()
        for name, value in (
            ('img_signature', 'x'),
            ('img_signature', ''),
            ('img_signature_hash_method', 'MD5'),
            ('img_signature_hash_method', ''),
            ('img_signature_key_type', 'RSA-PSS'),
            ('img_signature_key_type', 'ROT13'),
            ('img_signature_certificate_uuid', ''),
            ('img_signature_certificate_uuid', 'unknown'),
        ):
            self.assertIn(
                'cannot be verified',
                self.refusal(self.signed(certificate_id, **{name: value})),
                (name, value),
            )


class TestTrust(SignatureTestCase):
    def setUp(self):
        super().setUp()
        self.authority = self.keys.issue()
        self.issued = self.signed(self.keys.issue(self.authority))

    def test_nobody_is_asked_for_by_default(self):
        self.assertTrue(self.verify(self.issued))

    def test_of_a_trusted_issuer(self):
        self.set('bitstream_trusted_certificates', [self.authority])
        self.assertTrue(self.verify(self.issued))

    def test_of_another_issuer(self):
        self.set('bitstream_trusted_certificates', [self.keys.issue()])
        self.assertIn('chain', self.refusal(self.issued))

    def test_out_of_date(self):
        self.set('bitstream_trusted_certificates', [self.authority])
        self.assertIn(
            'valid date',
            self.refusal(self.signed(self.keys.issue(self.authority, days=0))),
        )

    def test_nova_s_trust(self):
        self.set('enable_certificate_validation', True, 'glance')
        self.assertIn('trusts none', self.refusal(self.issued))
        self.set('default_trusted_certificate_ids', [self.authority], 'glance')
        self.assertTrue(self.verify(self.issued))
        self.set('bitstream_trusted_certificates', [self.keys.issue()])
        self.refusal(self.issued)
