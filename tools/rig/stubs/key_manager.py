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

"""A key manager with certificates, and signatures made with them."""

import base64
import datetime
from typing import Any
import uuid

from castellan.common import exception as castellan_exception
from castellan.common.objects import x_509
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import oid
import fixtures


class KeyManager(fixtures.Fixture):
    """A stub in the place of Barbican, below castellan.

    :ivar asked_by: the contexts of the callers that asked for certificates
    """

    def _setUp(self) -> None:
        self.asked_by: list[Any] = []
        self._certificates: dict[str, x509.Certificate] = {}
        self._keys: dict[str, ec.EllipticCurvePrivateKey] = {}
        self.useFixture(
            fixtures.MonkeyPatch(
                'castellan.key_manager.API', lambda *_args: self
            )
        )

    def get(self, context: Any, managed_object_id: str) -> x_509.X509:
        """:raises ManagedObjectNotFoundError: there is no such certificate."""
        self.asked_by.append(context)
        if managed_object_id not in self._certificates:
            raise castellan_exception.ManagedObjectNotFoundError(
                uuid=managed_object_id
            )
        return x_509.X509(
            self._certificates[managed_object_id].public_bytes(
                serialization.Encoding.DER
            )
        )

    def issue(self, issuer: str | None = None, days: int = 1) -> str:
        """Make a certificate.

        :param issuer: the id of the certificate that signs it; by default it
            is an authority, and signs itself
        :param days: how long it is valid, from yesterday on
        :returns: its id
        """
        certificate_id = str(uuid.uuid4())
        key = ec.generate_private_key(ec.SECP384R1())
        begin = datetime.datetime.now(datetime.UTC) - datetime.timedelta(
            days=1
        )
        builder = x509.CertificateBuilder(
            _name(issuer or certificate_id),
            _name(certificate_id),
            key.public_key(),
            x509.random_serial_number(),
            begin,
            begin + datetime.timedelta(days=days, hours=1),
        )
        if issuer is None:
            builder = builder.add_extension(
                x509.BasicConstraints(True, None), True
            ).add_extension(
                x509.KeyUsage(
                    False,
                    False,
                    False,
                    False,
                    False,
                    True,
                    False,
                    False,
                    False,
                ),
                True,
            )
        self._keys[certificate_id] = key
        self._certificates[certificate_id] = builder.sign(
            self._keys[issuer or certificate_id], hashes.SHA256()
        )
        return certificate_id

    def sign(self, data: bytes, certificate_id: str) -> dict[str, str]:
        """The properties of an image whose data is signed."""
        signature = self._keys[certificate_id].sign(
            data, ec.ECDSA(hashes.SHA256())
        )
        return {
            'img_signature': base64.b64encode(signature).decode(),
            'img_signature_hash_method': 'SHA-256',
            'img_signature_key_type': 'ECC_SECP384R1',
            'img_signature_certificate_uuid': certificate_id,
        }


def _name(common_name: str) -> x509.Name:
    return x509.Name(
        [x509.NameAttribute(oid.NameOID.COMMON_NAME, common_name)]
    )
