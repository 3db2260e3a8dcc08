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

"""Bitstreams in Glance, their properties and bytes, by Nova's client.

Glance decides whether a caller may use a bitstream. So every request, also for
the bytes, has the caller's context, as Nova's requests for guests' images do.
The host's own user needs no right to projects' images.
"""

from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import time
from typing import Any

import glanceclient.exc
from keystoneauth1 import exceptions as ks_exceptions
from nova import exception as nova_exception
from nova.image import glance
from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.model.fpga import fpga_bitstream

CONF = conf.CONF
LOG = logging.getLogger(__name__)


class Glance:
    """The images that a caller may see."""

    def __init__(self) -> None:
        self._api = glance.API()

    def show(
        self, bitstream_id: str, context: Any
    ) -> fpga_bitstream.Bitstream:
        """The bitstream of an image that the caller may use.

        :raises BitstreamNotFound: there is none with this id, or the caller
            may not see it.
        :raises BitstreamRefused: it says what no bitstream may.
        :raises ServiceUnavailable: Glance gave no usable answer.
        """
        return _bitstream(self.image(bitstream_id, context))

    def image(self, image_id: str, context: Any) -> dict[str, Any]:
        """An image with all its properties, in the form of Nova's image API.

        Nova's own objects drop properties that Nova does not know.

        :raises BitstreamNotFound, BitstreamRefused, ServiceUnavailable: as
            for :meth:`show`
        """
        with _faults(f'the image {image_id}'), _unreadable(image_id):
            return self._api.get(context, image_id, show_deleted=False)

    def is_for_all(self, bitstream_id: str, context: Any) -> bool:
        """Whether the users of every project may use a bitstream.

        Nova's image API tells public images, and no community images.

        :raises BitstreamNotFound, ServiceUnavailable: as for :meth:`show`
        """
        with _faults(f'the image {bitstream_id}'):
            image = glance.GlanceClientWrapper().call(
                context, 2, 'get', args=(bitstream_id,)
            )
        return image.get('visibility') in ('public', 'community')

    def tagged(self, context: Any) -> list[fpga_bitstream.Bitstream]:
        """The bitstreams of all tagged images that the caller may use.

        Images with wrong properties are left out, because anybody can make
        them.

        :raises ServiceUnavailable: Glance gave no usable answer.
        """
        with _faults('bitstreams'):
            # glanceclient forgets the tag when Nova repeats the request after
            # a fault, so some images found may have no tag. Nova's own list
            # fails as a whole if it cannot read one image.
            images = glance.GlanceClientWrapper().call(
                context,
                2,
                'list',
                kwargs={
                    'filters': {
                        'tag': [fpga_bitstream.TAG],
                        'status': 'active',
                    }
                },
            )
        found = []
        for image in images:
            if not glance._is_image_available(context, image):
                continue
            try:
                with _unreadable(image.id):
                    shown = glance._translate_from_glance(image)
                found.append(_bitstream(shown))
            except exceptions.BitstreamRefused as error:
                LOG.info('An image is no usable bitstream: %s', error)
        return found

    def chunks(
        self, bitstream: fpga_bitstream.Bitstream, context: Any
    ) -> Iterator[bytes]:
        """The bytes of a bitstream that the caller may download.

        The bytes are not verified. With Nova's ``API.download()`` glanceclient
        would compute Glance's hash, so that it would be computed twice. With
        signatures it would take the bytes before their size is known.

        :raises BitstreamNotFound: it has no data, is gone, or the caller may
            not download it.
        :raises ServiceUnavailable: Glance gives no bytes, stops too early, or
            takes too long.
        """
        timeout_s = CONF.nova_accel.bitstream_fetch_timeout_s
        deadline = time.monotonic() + timeout_s
        with _faults(f'the data of bitstream {bitstream}'):
            data = glance.GlanceClientWrapper().call(
                context,
                2,
                'data',
                args=(bitstream.id,),
                kwargs={'do_checksum': False},
            )
            if data is None or getattr(data, 'wrapped', data) is None:
                raise exceptions.BitstreamNotFound.for_all(
                    f'bitstream {bitstream} has no data'
                )
            for chunk in data:
                if time.monotonic() > deadline:
                    raise exceptions.ServiceUnavailable(
                        f'Glance has not given bitstream {bitstream} within '
                        f'{timeout_s} seconds (bitstream_fetch_timeout_s)'
                    )
                yield chunk


def _bitstream(image: Mapping[str, Any]) -> fpga_bitstream.Bitstream:
    """:raises BitstreamRefused: it says what no bitstream may."""
    return fpga_bitstream.from_image(image, CONF.nova_accel.bitstream_projects)


@contextlib.contextmanager
def _unreadable(image_id: str) -> Iterator[None]:
    """Refuse an image whose properties Nova cannot parse.

    Nova takes two properties for JSON, and anyone may write them.
    """
    try:
        yield
    except (TypeError, ValueError, RecursionError) as error:
        raise exceptions.BitstreamRefused(
            f'bitstream {image_id}: Nova cannot read its image '
            f'({type(error).__name__}); the properties block_device_mapping '
            'and mappings have to be JSON, a bitstream needs neither'
        ) from error


@contextlib.contextmanager
def _faults(what: str) -> Iterator[None]:
    try:
        yield
    except (
        nova_exception.ImageNotFound,
        nova_exception.ImageNotAuthorized,
        nova_exception.ImageBadRequest,
        glanceclient.exc.HTTPNotFound,
        glanceclient.exc.HTTPForbidden,
    ) as error:
        raise exceptions.BitstreamNotFound.for_all(
            f'Glance does not have {what}, or not for this caller'
        ) from error
    # A connection that breaks in the middle raises an OSError of requests.
    except (
        nova_exception.NovaException,
        glanceclient.exc.BaseException,
        glanceclient.exc.ClientException,
        ks_exceptions.ClientException,
        OSError,
    ) as error:
        LOG.warning(
            'Glance gave no usable answer for %(what)s: %(error)s',
            {'what': what, 'error': error},
        )
        raise exceptions.ServiceUnavailable(
            f'Glance gave no usable answer for {what}: {type(error).__name__}'
        ) from error
