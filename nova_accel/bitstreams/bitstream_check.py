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

"""Verify a bitstream's bytes against Glance's hash, in one pass."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from concurrent import futures
import contextlib
import hashlib
import hmac
from typing import Any

import cryptography.exceptions
from nova import utils as nova_utils

from nova_accel import exceptions
from nova_accel.bitstreams import signing
from nova_accel.model.fpga import fpga_bitstream

#: The values of Glance's ``[DEFAULT] hashing_algorithm`` that are strong
#: enough.
HASH_ALGORITHMS = frozenset(
    {
        'sha224',
        'sha256',
        'sha384',
        'sha512',
        'sha3_224',
        'sha3_256',
        'sha3_384',
        'sha3_512',
        'blake2b',
        'blake2s',
    }
)

#: How many chunks may wait for the slowest hash; Glance's have 1 MiB each.
_AHEAD = 8


def check_described(
    bitstream: fpga_bitstream.Bitstream, max_bytes: int
) -> None:
    """Check that a bitstream may be fetched and can be verified.

    :raises BitstreamRefused: it is empty or too large, or Glance has no strong
        hash for it.
    """
    if not 0 < bitstream.size <= max_bytes:
        raise exceptions.BitstreamRefused.for_all(
            f'bitstream {bitstream} has {bitstream.size} bytes; 1 to '
            f'{max_bytes} are allowed (bitstream_max_size_mb)'
        )
    if (
        bitstream.hash_algorithm not in HASH_ALGORITHMS
        or not bitstream.hash_value
    ):
        raise exceptions.BitstreamRefused.for_all(
            f'bitstream {bitstream} cannot be verified: Glance has no hash '
            f'of it, or a weak one ({bitstream.hash_algorithm})'
        )


class Verification:
    """The verification of all bytes of a bitstream.

    :param verifier: verifies its signature, None if that is not required
    :raises BitstreamRefused: Glance has no strong hash for it.
    """

    def __init__(
        self,
        bitstream: fpga_bitstream.Bitstream,
        verifier: signing.Verifier | None,
    ) -> None:
        check_described(bitstream, bitstream.size)
        self._bitstream = bitstream
        self._sha256 = hashlib.sha256()
        # Glance's hash may be sha256, too; then one is enough.
        self._glances: Any = (
            None
            if bitstream.hash_algorithm == 'sha256'
            else hashlib.new(str(bitstream.hash_algorithm))
        )
        self._verifier = verifier
        self._size = 0

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Pass the chunks on unchanged, and hash them.

        All hashes are computed in parallel while the next chunks arrive.
        hashlib releases the interpreter's lock. In Nova's eventlet mode native
        threads compute them.

        :raises BitstreamRefused: there are more bytes than Glance said.
        """
        updates = [
            nova_utils.tpool_wrap(hash_).update
            for hash_ in (self._sha256, self._glances, self._verifier)
            if hash_ is not None
        ]
        pending: collections.deque[list[Any]] = collections.deque()
        with contextlib.ExitStack() as stack:
            # Each executor has one thread, so that its hash gets the chunks in
            # order.
            executors = [
                stack.enter_context(futures.ThreadPoolExecutor(1))
                for _update in updates
            ]
            for chunk in chunks:
                self._count(chunk)
                if len(pending) == _AHEAD:
                    _wait(pending.popleft())
                pending.append(
                    [
                        executor.submit(update, chunk)
                        for executor, update in zip(
                            executors, updates, strict=True
                        )
                    ]
                )
                yield chunk
            while pending:
                _wait(pending.popleft())

    def _count(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._bitstream.size:
            raise exceptions.BitstreamRefused.for_all(
                f'bitstream {self._bitstream} has more than the '
                f'{self._bitstream.size} bytes that Glance says'
            )

    def end(self) -> str:
        """Finish: verify the size, the hash and the signature.

        :returns: the sha256 of all bytes in hexadecimal
        :raises BitstreamRefused: the bytes are not Glance's, or not the signed
            ones.
        """
        if self._size != self._bitstream.size:
            raise exceptions.BitstreamRefused.for_all(
                f'bitstream {self._bitstream} is truncated: {self._size} of '
                f'{self._bitstream.size} bytes came'
            )
        if not hmac.compare_digest(
            (self._glances or self._sha256).hexdigest(),
            str(self._bitstream.hash_value),
        ):
            raise exceptions.BitstreamRefused.for_all(
                f'bitstream {self._bitstream} is corrupt: its '
                f'{self._bitstream.hash_algorithm} is not the one that '
                'Glance says'
            )
        if self._verifier is not None:
            try:
                self._verifier.verify()
            except cryptography.exceptions.InvalidSignature as error:
                raise exceptions.BitstreamRefused.for_all(
                    f'the signature of bitstream {self._bitstream} does not '
                    'match its bytes'
                ) from error
        return self._sha256.hexdigest()


def verify(
    bitstream: fpga_bitstream.Bitstream,
    verifier: signing.Verifier | None,
    chunks: Iterable[bytes],
    write: Callable[[Iterable[bytes]], object],
) -> str:
    """Write the bytes of a bitstream, and verify them meanwhile.

    :param write: writes all chunks, before anybody knows whether they are good
    :returns: the sha256 of all bytes in hexadecimal
    :raises BitstreamRefused: as for :class:`Verification` and its methods
    """
    verification = Verification(bitstream, verifier)
    write(verification.passing(chunks))
    return verification.end()


def _wait(pending: Iterable[Any]) -> None:
    for future in pending:
        future.result()
