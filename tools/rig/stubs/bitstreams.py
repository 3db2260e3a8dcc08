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

"""Bitstreams in Glance, for tests."""

import datetime
import hashlib
import io
from typing import Any
from typing import BinaryIO
import uuid

from nova import exception as nova_exception

from nova_accel.model.fpga import fpga_bitstream


def image(
    data: bytes,
    name: str = 'bitstream',
    hash_algorithm: str = 'sha512',
    **properties: str,
) -> dict[str, Any]:
    """An image as Nova shows it, and as its GlanceFixture accepts it.

    :param properties: of the image; underscores stay as they are
    """
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return {
        'id': str(uuid.uuid4()),
        'name': name,
        'status': 'active',
        'visibility': 'public',
        'is_public': True,
        'size': len(data),
        'container_format': 'bare',
        'disk_format': 'raw',
        'min_ram': 0,
        'min_disk': 0,
        'protected': False,
        'tags': [fpga_bitstream.TAG],
        'os_hash_algo': hash_algorithm,
        'os_hash_value': hashlib.new(hash_algorithm, data).hexdigest(),
        'created_at': now,
        'updated_at': now,
        'properties': properties,
    }


class Images:
    """Images with their data, by a part of the methods of GlanceFixture."""

    def __init__(self) -> None:
        self._images: dict[str, tuple[dict[str, Any], bytes]] = {}
        #: The ids of the images whose data was fetched, in that order.
        self.fetched: list[str] = []

    def create(
        self,
        _context: Any,
        metadata: dict[str, Any],
        data: BinaryIO | None = None,
    ) -> dict[str, Any]:
        content = b'' if data is None else data.read()
        self._images[metadata['id']] = metadata, content
        return metadata

    def add(self, data: bytes, **image_arguments: Any) -> str:
        """Add a bitstream, see :func:`image`.

        :returns: its id
        """
        return str(
            self.create(
                None, image(data, **image_arguments), io.BytesIO(data)
            )['id']
        )

    def detail(self, _context: Any, **_query: Any) -> list[dict[str, Any]]:
        return [metadata for metadata, _data in self._images.values()]

    def show(self, _context: Any, image_id: str) -> dict[str, Any]:
        """:raises ImageNotFound: there is no such image."""
        if image_id not in self._images:
            raise nova_exception.ImageNotFound(image_id=image_id)
        return self._images[image_id][0]

    def download(self, _context: Any, image_id: str, data: BinaryIO) -> None:
        self.fetched.append(image_id)
        data.write(self._images[image_id][1])
