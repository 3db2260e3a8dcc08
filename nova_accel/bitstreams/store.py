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

"""The bitstreams of a host: from a request to a verified file."""

import collections
from collections.abc import Iterator
import contextlib
import functools
import hashlib
import pathlib
import time
from typing import Any

from oslo_concurrency import lockutils
from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.bitstreams import bitstream_cache
from nova_accel.bitstreams import bitstream_check
from nova_accel.bitstreams import bitstream_images
from nova_accel.bitstreams import signing
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import bitstream_choice
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.state import durable_file

CONF = conf.CONF
LOG = logging.getLogger(__name__)

_MIB = 1024 * 1024


def from_conf() -> 'Store':
    """The bitstreams of this host, as its configuration says.

    :raises ConfigurationError: the cache's directory cannot be used.
    """
    if (
        CONF.nova_accel.bitstream_signatures == signing.SigningPolicy.REQUIRED
        and not signing.trusted_certificates()
    ):
        LOG.warning(
            'Bitstreams have to be signed, but anyone with a '
            'certificate in the key manager can sign them: '
            '[nova_accel] bitstream_trusted_certificates is empty'
        )
    return Store(
        bitstream_images.Glance(),
        bitstream_cache.Cache(
            pathlib.Path(CONF.nova_accel.bitstream_cache_directory),
            CONF.nova_accel.bitstream_cache_size_mb * _MIB,
        ),
    )


class Store:
    """Finds, fetches and keeps bitstreams.

    Called from several threads at once.
    """

    def __init__(
        self, glance: bitstream_images.Glance, cache: bitstream_cache.Cache
    ) -> None:
        self._glance = glance
        self._cache = cache

    def resolve(
        self,
        wanted: fpga_bitstream.WantedBitstream,
        device: hardware.Device,
        region: programmable.Region,
        context: Any,
    ) -> fpga_bitstream.Bitstream:
        """The bitstream that meets the request and fits.

        :param context: the caller's context; only bitstreams that the caller
            may see are found, see
            :mod:`nova_accel.model.fpga.bitstream_choice`
        :raises BitstreamNotFound: there is none, or several have the function;
            the text lists the candidates.
        :raises BitstreamRefused: the bitstream named by its id does not fit,
            or has wrong properties; the text lists all faults.
        :raises ServiceUnavailable: Glance gave no usable answer.
        """
        if wanted.bitstream_id is None:
            return bitstream_choice.only(
                wanted,
                self._glance.tagged(context),
                context.project_id,
                device,
                region,
            )
        named = self._glance.show(wanted.bitstream_id, context)
        bitstream_choice.check_fits(named, device, region)
        return named

    def resolve_for_all(
        self,
        bitstream_id: str,
        device: hardware.Device,
        region: programmable.Region,
        context: Any,
    ) -> fpga_bitstream.Bitstream:
        """A bitstream that a region may hold before a server asks for it.

        It must be the operator's, because any server may find it there. Every
        project must be allowed to use it, because no one knows whose server
        comes.

        :raises BitstreamNotFound, BitstreamRefused, ServiceUnavailable: as
            :meth:`resolve`
        """
        found = self.resolve(
            fpga_bitstream.WantedBitstream(bitstream_id),
            device,
            region,
            context,
        )
        if found.owner is not None:
            raise exceptions.BitstreamRefused(
                f'bitstream {found} is not for all projects: its image is not '
                "the operator's"
            )
        if not self._glance.is_for_all(bitstream_id, context):
            raise exceptions.BitstreamRefused(
                f'bitstream {found} is not for all projects: publish its '
                'image, or make it a community image'
            )
        return found

    def is_shell(
        self, wanted: fpga_bitstream.WantedBitstream, context: Any
    ) -> bool:
        """Whether the bitstream named by its id is a shell.

        :raises BitstreamNotFound, ServiceUnavailable: as :meth:`resolve`
        """
        if wanted.bitstream_id is None:
            return False
        named = self._glance.show(wanted.bitstream_id, context)
        return named.provides_shell_id is not None

    @contextlib.contextmanager
    def fetched(
        self, bitstream: fpga_bitstream.Bitstream, context: Any
    ) -> Iterator[bitstream_cache.Fetched]:
        """The bitstream's file, freshly verified and pinned during the body.

        It is downloaded if the cache does not have it; if several callers want
        it, only one downloads. A refused bitstream does not stay in the cache.

        :param context: the caller's context, for the download and the
            signature's certificate
        :raises BitstreamRefused: its bytes differ from Glance's hash, it is
            too large, or its signature is not accepted.
        :raises BitstreamNotFound: Glance has no data for it.
        :raises ServiceUnavailable: Glance gave no usable answer, or too late.
        :raises DeviceError: the disk refuses, or the cache is full.
        """
        with contextlib.ExitStack() as pins:
            # The lock protects fetching and verifying only.
            with lockutils.lock(f'nova_accel-bitstream-{bitstream.id}'):
                fetched = self._held(bitstream, context, pins)
            yield fetched

    @contextlib.contextmanager
    def kept(self, sha256: str) -> Iterator[bitstream_cache.Fetched | None]:
        """A file that was loaded before, pinned during the body.

        Neither Glance nor the key manager is asked, because a guest had this
        bitstream already. Its bytes are hashed again.

        :param sha256: the hash of its bytes, in hexadecimal
        :returns: None if the cache no longer has it unchanged
        :raises DeviceError: the disk refuses it.
        """
        with contextlib.ExitStack() as pins:
            entry = self._cache.pin_kept(sha256)
            if entry is None:
                yield None
            elif _sha256(entry.path) != sha256:
                LOG.warning(
                    'Bitstream %s has changed in the cache, and is removed',
                    sha256,
                )
                self._cache.release(entry, keep=False)
                yield None
            else:
                pins.callback(self._cache.release, entry)
                yield entry

    def prefetch(self, bitstream_id: str, context: Any) -> None:
        """Fetch a bitstream into the cache before it is needed.

        :raises AcceleratorError: as for :meth:`fetched`; BitstreamNotFound
            also if the caller may not see it.
        """
        with self.fetched(self._glance.show(bitstream_id, context), context):
            pass

    def _held(
        self,
        bitstream: fpga_bitstream.Bitstream,
        context: Any,
        pins: contextlib.ExitStack,
    ) -> bitstream_cache.Fetched:
        bitstream_check.check_described(
            bitstream, CONF.nova_accel.bitstream_max_size_mb * _MIB
        )
        verifier = signing.verifier(bitstream, context)
        entry = self._cache.pin(bitstream)
        if entry is not None:
            if self._is_intact(entry, bitstream, verifier):
                pins.callback(self._cache.release, entry)
                return entry
            # The first verifier has consumed the wrong bytes.
            verifier = signing.verifier(bitstream, context)
        entry = self._download(bitstream, context, verifier)
        pins.callback(self._cache.release, entry)
        return entry

    def _is_intact(
        self,
        entry: bitstream_cache.Fetched,
        bitstream: fpga_bitstream.Bitstream,
        verifier: signing.Verifier | None,
    ) -> bool:
        """Whether a pinned entry has the right bytes; else it is removed."""
        with contextlib.ExitStack() as failing:
            failing.callback(self._cache.release, entry, keep=False)
            try:
                with entry.path.open('rb') as file:
                    sha256 = bitstream_check.verify(
                        bitstream,
                        verifier,
                        iter(functools.partial(file.read, _MIB), b''),
                        # It is written already.
                        collections.deque[bytes](maxlen=0).extend,
                    )
                if sha256 != entry.sha256:
                    raise exceptions.BitstreamRefused('it has another hash')
            except (exceptions.BitstreamRefused, OSError) as error:
                LOG.warning(
                    'Bitstream %(bitstream)s has changed in the '
                    'cache, and is fetched again: %(error)s',
                    {'bitstream': bitstream, 'error': error},
                )
                return False
            failing.pop_all()
        return True

    def _download(
        self,
        bitstream: fpga_bitstream.Bitstream,
        context: Any,
        verifier: signing.Verifier | None,
    ) -> bitstream_cache.Fetched:
        """Download a bitstream into the cache; its entry is pinned."""
        begin = time.monotonic()
        LOG.info(
            'Fetching bitstream %(bitstream)s of %(size)d bytes',
            {'bitstream': bitstream, 'size': bitstream.size},
        )
        entry = self._cache.add(
            bitstream,
            lambda file: bitstream_check.verify(
                bitstream,
                verifier,
                self._glance.chunks(bitstream, context),
                functools.partial(durable_file.write_chunks, file),
            ),
        )
        LOG.info(
            'Fetched and verified bitstream %(bitstream)s in %(time).1f '
            's, its sha256 is %(sha256)s',
            {
                'bitstream': bitstream,
                'sha256': entry.sha256,
                'time': time.monotonic() - begin,
            },
        )
        return entry


def _sha256(path: pathlib.Path) -> str | None:
    """A file's sha256 in hexadecimal, None if it cannot be read."""
    try:
        with path.open('rb') as file:
            return hashlib.file_digest(file, 'sha256').hexdigest()
    except OSError:
        return None
