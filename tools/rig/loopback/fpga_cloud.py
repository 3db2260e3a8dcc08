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

"""A cloud whose FPGAs are programmed with bitstreams of its Glance."""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import io
import threading
from typing import Any
from typing import BinaryIO

import fixtures

from nova_accel.testing import fake_fpga
from nova_accel.virt import rpc_agent
from rig.loopback import cloud
from rig.stubs import bitstreams


class FpgaCloud(cloud.Cloud):
    """The base class of tests of programming.

    :ivar cards: the fixture that programs the FPGAs, with their contents
    :ivar downloaded: the ids of the images that were downloaded from Glance
    :ivar downloaded_bytes: how many bytes were downloaded
    """

    def setUp(self) -> None:
        super().setUp()
        self.cards = self.useFixture(fake_fpga.Programming())
        start = rpc_agent.RpcAgent.start

        def start_until_it_may_end(agent: rpc_agent.RpcAgent) -> None:
            start(agent)
            # It runs before the agent is stopped, which waits for running
            # programmings.
            self.addCleanup(self.cards.let_end)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.rpc_agent.RpcAgent.start',
                start_until_it_may_end,
            )
        )
        self.downloaded: list[str] = []
        self.downloaded_bytes = 0
        download = self.glance.download

        def note(context: Any, image_id: str, data: BinaryIO) -> None:
            download(context, image_id, data)
            self.downloaded.append(image_id)
            self.downloaded_bytes += data.tell()

        self.useFixture(
            fixtures.MockPatchObject(self.glance, 'download', note)
        )

    def regions(self, host: str) -> list[str]:
        """The region traits of a host, one for each region."""
        return [
            trait
            for provider in self.accelerator_providers(host)
            if 'FPGA' in provider['inventory']
            for trait in provider['traits']
            if '_REGION_' in trait
        ]

    def upload(self, region: str, data: bytes, **properties: str) -> str:
        """Put a bitstream for a type of region into Glance.

        :param region: the trait
        :param properties: further properties of the image
        :returns: its id
        """
        region_uuid = region.partition('_REGION_')[2].replace('_', '-')
        image = bitstreams.image(
            data, region_uuid=region_uuid.lower(), **properties
        )
        self.glance.create(None, image, io.BytesIO(data))
        return str(image['id'])

    def create_fpga_profile(
        self, name: str, region: str, **wanted: str
    ) -> None:
        """Make a profile with a region of a type.

        :param wanted: the wanted contents: ``bitstream_id`` and so on
        """
        self.create_profile(name, [self.fpga_group(region, **wanted)])

    @staticmethod
    def fpga_group(region: str, **wanted: str) -> dict[str, str]:
        """The group of such a profile."""
        return {
            'resources:FPGA': '1',
            f'trait:{region}': 'required',
            **{f'accel:{key}': value for key, value in wanted.items()},
        }


class ImageDownload(fixtures.Fixture):
    """Makes the download of a server's image take some time.

    :ivar begun: is set when a download has begun
    :ivar may_end: downloads go on until it is set
    """

    def __init__(self, duration_s: float = 0) -> None:
        """:param duration_s: the least time that each download takes"""
        super().__init__()
        self._duration_s = duration_s

    def _setUp(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.may_end.set()
        is_over = threading.Event()
        # No thread may be left that waits.
        self.addCleanup(is_over.set)
        self.addCleanup(self.may_end.set)

        def create_image(*args: Any, **kwargs: Any) -> Any:
            self.begun.set()
            is_over.wait(self._duration_s)
            self.may_end.wait()
            return cloud.create_image(*args, **kwargs)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.virt.libvirt.LibvirtDriver._create_image', create_image
            )
        )
