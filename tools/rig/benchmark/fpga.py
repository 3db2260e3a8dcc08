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

"""The benchmark of bitstreams, ``tools/bench fpga``."""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Iterator
import hashlib
import logging
import os
import pathlib
import re
import statistics
import time
from typing import Any

import fixtures
from keystoneauth1 import token_endpoint
from nova import context as nova_context

from nova_accel import conf
from nova_accel.bitstreams import bitstream_cache
from nova_accel.bitstreams import bitstream_images
from nova_accel.bitstreams import store
from nova_accel.model.fpga import fpga_bitstream
from rig.loopback import fpga_cloud
from rig.stubs import glance_process

CONF = conf.CONF

_MIB = 1024 * 1024

#: The device profiles: an FPGA as it is, and an FPGA with a bitstream.
_AS_IT_IS, _PROGRAMMED = 'as-it-is', 'programmed'


class _CountingGlance(bitstream_images.Glance):
    """The client of the image API, which counts the downloads."""

    def __init__(self) -> None:
        super().__init__()
        self.downloads = 0

    def chunks(
        self, bitstream: fpga_bitstream.Bitstream, context: Any
    ) -> Iterator[bytes]:
        self.downloads += 1
        return super().chunks(bitstream, context)


class Bitstreams(fixtures.Fixture):
    """An image API on loopback, and an empty cache of bitstreams.

    :ivar glance: the image API
    :ivar store: the bitstreams of a host
    """

    def __init__(self, max_bytes: int) -> None:
        """:param max_bytes: the size of the cache"""
        super().__init__()
        self._max_bytes = max_bytes

    def _setUp(self) -> None:
        self.glance = self.useFixture(glance_process.GlanceProcess())
        CONF.set_override('api_servers', [self.glance.url], 'glance')
        self.addCleanup(CONF.clear_override, 'api_servers', 'glance')
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.client.accelerator_api.auth_from_conf',
                lambda: token_endpoint.Token(self.glance.url, 'token'),
            )
        )
        self.context = nova_context.RequestContext(
            auth_token='token', is_admin=True, overwrite=False
        )
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self._client = _CountingGlance()
        self.store = store.Store(
            self._client,
            bitstream_cache.Cache(directory, self._max_bytes),
        )

    def fetch(self, image_id: str) -> bool:
        """Find a bitstream, download it unless it is here, and verify it.

        :returns: whether it was downloaded
        """
        before = self._client.downloads
        bitstream = self._client.show(image_id, self.context)
        with self.store.fetched(bitstream, self.context):
            return self._client.downloads > before


def verification(size_mb: int, times: int) -> dict[str, Any]:
    """Throughput of fetch and verification, over that of the hashes alone.

    The two alternate, so that both see the same machine.

    :returns: ``verify_ratio``, and the two throughputs in MiB per second
    """
    raw_s, fetch_s = [], []
    # Each bitstream makes room for the next, as in the long run.
    with Bitstreams(size_mb * _MIB) as found:
        for _time in range(times):
            # The bitstream is new each time, or it would be in the cache.
            data = os.urandom(_MIB) * size_mb
            image_id = found.glance.add(data)
            raw_s.append(_hashed_s(data))
            begin = time.perf_counter()
            is_downloaded = found.fetch(image_id)
            fetch_s.append(time.perf_counter() - begin)
            assert is_downloaded
    return {
        'bitstream_mb': size_mb,
        'hashes_mb_per_s': round(size_mb / statistics.median(raw_s), 1),
        'fetch_and_verify_mb_per_s': round(
            size_mb / statistics.median(fetch_s), 1
        ),
        'verify_ratio': round(
            statistics.median(
                raw / fetch for raw, fetch in zip(raw_s, fetch_s, strict=True)
            ),
            3,
        ),
    }


def _hashed_s(data: bytes) -> float:
    """The seconds of sha256 and sha512, in the pieces that Glance sends."""
    begin = time.perf_counter()
    hashes = hashlib.sha256(), hashlib.sha512()
    for start in range(0, len(data), _MIB):
        chunk = data[start : start + _MIB]
        for hash_ in hashes:
            hash_.update(chunk)
    for hash_ in hashes:
        hash_.digest()
    return time.perf_counter() - begin


class _BuildTimes(logging.Handler):
    """The times that nova-compute took to build servers, from its log."""

    _TEXT = re.compile('Took ([0-9.]+) seconds to build instance')

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.seconds: list[float] = []

    def emit(self, record: logging.LogRecord) -> None:
        found = self._TEXT.search(record.getMessage())
        if found:
            self.seconds.append(float(found[1]))


class BootCloud(fpga_cloud.FpgaCloud):
    """One host with FPGAs."""

    ADMIN_API = True

    def runTest(self) -> None:
        """Not run: the benchmark only needs what setUp() makes."""

    def start(self) -> None:
        self.start_accelerated_compute('compute1')
        [region, *_others] = self.regions('compute1')
        self.create_fpga_profile(_AS_IT_IS, region)
        self.create_fpga_profile(
            _PROGRAMMED,
            region,
            bitstream_id=self.upload(region, os.urandom(_MIB)),
        )
        self._flavors: dict[str | None, Any] = {
            profile: self.create_accel_flavor(profile)
            for profile in (_AS_IT_IS, _PROGRAMMED)
        }
        self._flavors[None] = self._create_flavor()
        self._times = _BuildTimes()
        logger = logging.getLogger('nova.compute.manager')
        logger.addHandler(self._times)
        self.addCleanup(logger.removeHandler, self._times)

    def build(self, profile: str | None) -> tuple[float, float]:
        """Build a server, and delete it.

        :param profile: the device profile of its flavor, None for none
        :returns: the seconds that nova-compute says it took, and those from
            the request until the server is ACTIVE
        :raises RuntimeError: it is in ERROR.
        """
        begin = time.perf_counter()
        server = self.api.post_server(
            {
                'server': self._build_server(
                    flavor_id=self._flavors[profile], networks='none'
                )
            }
        )
        while (found := self.api.get_server(server['id']))[
            'status'
        ] == 'BUILD':
            time.sleep(0.05)
        seconds = time.perf_counter() - begin
        if found['status'] != 'ACTIVE':
            raise RuntimeError(f'{found["status"]}: {found.get("fault")}')
        self._delete_server(found)
        return self._times.seconds[-1], seconds


def boots(
    cloud: BootCloud, image_s: float, program_s: float
) -> dict[str, Any]:
    """The build times of servers, with and without programming an FPGA.

    :param cloud: a cloud that is set up
    :param image_s: how long the download of an image takes
    :param program_s: how long an FPGA is programmed
    """
    cloud.start()
    # Nova and the API take longer for the first server.
    cloud.build(_AS_IT_IS)
    cloud.useFixture(fpga_cloud.ImageDownload(image_s))
    cloud.cards.duration_s = program_s
    plain_s, _active_s = cloud.build(None)
    build_s, active_s = cloud.build(_PROGRAMMED)
    programmings = len(cloud.cards.programmed)
    downloaded = cloud.downloaded_bytes
    second_s, _active_s = cloud.build(_PROGRAMMED)
    return {
        'image_s': image_s,
        'program_s': program_s,
        'build_without_s': round(plain_s, 2),
        'build_s': round(build_s, 2),
        'request_to_active_s': round(active_s, 2),
        'programmings': programmings,
        'second_boot_s': round(second_s, 2),
        'second_boot_bytes': cloud.downloaded_bytes - downloaded,
        'second_boot_programmings': len(cloud.cards.programmed) - programmings,
    }
