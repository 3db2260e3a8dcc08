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

"""Signatures of bitstreams, which are Glance's, verified by cursive."""

from collections.abc import Sequence
import enum
from typing import Any
from typing import Protocol

from castellan.common import exception as castellan_exception
from cursive import certificate_utils
from cursive import exception as cursive_exception
from cursive import signature_utils

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.model.fpga import fpga_bitstream

CONF = conf.CONF


class SigningPolicy(enum.StrEnum):
    """``[nova_accel] bitstream_signatures``."""

    OFF = 'off'
    IF_PRESENT = 'if_present'
    REQUIRED = 'required'


class Verifier(Protocol):
    """cursive's object for verifying a signature with its certificate.

    cursive has a class for each kind of key, and they have no common base.
    """

    def update(self, data: bytes) -> None:
        """Add the next bytes that were signed."""

    def verify(self) -> None:
        """:raises cryptography.exceptions.InvalidSignature: it is wrong."""


def trusted_certificates() -> Sequence[str]:
    """The ids of the certificates of trusted issuers, empty if none is set."""
    trusted: Sequence[str] = CONF.nova_accel.bitstream_trusted_certificates
    if not trusted and CONF.glance.enable_certificate_validation:
        trusted = CONF.glance.default_trusted_certificate_ids
    return trusted


def verifier(
    bitstream: fpga_bitstream.Bitstream, context: Any
) -> Verifier | None:
    """A verifier of a bitstream's signature, to be given all its bytes.

    :param context: the caller's context; it is used to get certificates from
        the key manager, as Nova does for images
    :returns: None if the policy does not ask for the signature
    :raises BitstreamRefused: the bitstream has no signature, the signature
        cannot be verified, or its certificate is not trusted; or the policy
        requires signatures, and the image is not the operator's.
    """
    signed = _signature(bitstream)
    if signed is None:
        return None
    try:
        result: Verifier = signature_utils.get_verifier(
            context,
            signed.certificate_uuid,
            signed.hash_method,
            signed.signature,
            signed.key_type,
        )
        _check_trusted(bitstream, signed, context)
    # cursive raises ValueError for a malformed certificate.
    except (
        cursive_exception.CursiveException,
        castellan_exception.CastellanException,
        ValueError,
    ) as error:
        what = f'the signature of bitstream {bitstream} cannot be verified'
        raise exceptions.BitstreamRefused(
            f'{what}: {error}', public=what
        ) from error
    return result


def _check_trusted(
    bitstream: fpga_bitstream.Bitstream,
    signed: fpga_bitstream.Signature,
    context: Any,
) -> None:
    """Make sure that the issuer of a certificate is trusted, if it matters."""
    trusted = trusted_certificates()
    if trusted:
        certificate_utils.verify_certificate(
            context, signed.certificate_uuid, trusted
        )
    elif CONF.glance.enable_certificate_validation:
        raise exceptions.BitstreamRefused.for_all(
            f'bitstream {bitstream}: certificates are to be validated, '
            'but this host trusts none'
        )


def _signature(
    bitstream: fpga_bitstream.Bitstream,
) -> fpga_bitstream.Signature | None:
    """The signature to verify, None if the policy does not ask for any.

    :raises BitstreamRefused: the policy requires one, and it has none; or the
        image is not the operator's.
    """
    policy = SigningPolicy(CONF.nova_accel.bitstream_signatures)
    if policy is SigningPolicy.REQUIRED and bitstream.owner is not None:
        # A signature covers the bytes, but not the properties that name a card
        # and region.
        raise exceptions.BitstreamRefused(
            f'bitstream {bitstream} is not the operator\'s, and this host '
            'loads signed bitstreams of the operator only: have an '
            'administrator publish the image, or upload it in one of the '
            'projects of [nova_accel] bitstream_projects'
        )
    signed = bitstream.signature
    if policy is SigningPolicy.OFF:
        return None
    if signed is None and policy is SigningPolicy.REQUIRED:
        raise exceptions.BitstreamRefused.for_all(
            f'bitstream {bitstream} has no signature, and this host requires '
            'one'
        )
    return signed
