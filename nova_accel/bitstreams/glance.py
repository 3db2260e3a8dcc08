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

"""What Glance says of bitstreams, and their bytes, by Nova's own client.

Whether a caller may use a bitstream is Glance's to say, so it is asked with
the caller's context; the bytes are for the host, which fetches them with its
own credentials.
"""

from collections.abc import Iterator
import contextlib
import functools
from typing import Any

import glanceclient.exc
from keystoneauth1 import exceptions as ks_exceptions
from nova import exception as nova_exception
from nova.image import glance
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.client import service_user
from nova_accel.model import bitstream as bitstream_model

LOG = logging.getLogger(__name__)


class Glance:
    """Images, as those may see them who ask."""

    def __init__(self) -> None:
        self._api = glance.API()

    def show(self, bitstream_id: str,
             context: Any) -> bitstream_model.Bitstream:
        """An image that the caller may use.

        :raises BitstreamNotFound: there is none with this id, or the caller
            may not see it.
        :raises ServiceUnavailable: Glance gave no usable answer.
        """
        return bitstream_model.from_image(self.image(bitstream_id, context))

    def image(self, image_id: str, context: Any) -> dict[str, Any]:
        """An image, with all of its properties, as Nova's API shows it.

        Nova's own objects drop properties that Nova does not know.

        :raises BitstreamNotFound, ServiceUnavailable: as for :meth:`show`
        """
        with _faults(f'the image {image_id}'):
            return self._api.get(context, image_id, show_deleted=False)

    def tagged(self, context: Any) -> list[bitstream_model.Bitstream]:
        """All images tagged as bitstreams that the caller may use.

        :raises ServiceUnavailable: Glance gave no usable answer.
        """
        with _faults('bitstreams'):
            # glanceclient forgets the tag when Nova has it ask once more
            # after a fault: what is found may have none.
            images = self._api.get_all(
                context, filters={'tag': [bitstream_model.TAG],
                                  'status': 'active'})
        return [bitstream_model.from_image(image) for image in images]

    def chunks(self,
               bitstream: bitstream_model.Bitstream) -> Iterator[bytes]:
        """The bytes of a bitstream, fetched with the host's credentials.

        Nothing of them is verified. Nova's ``API.download()`` would have
        glanceclient compute Glance's hash, which is then computed twice, and
        with signatures take the bytes before their size is known.

        :raises BitstreamNotFound: it has no data, or is gone.
        :raises ServiceUnavailable: they end too early, or Glance gives none.
        """
        with _faults(f'the data of bitstream {bitstream}',
                     'the user of [nova_accel_client]'):
            data = glance.GlanceClientWrapper().call(
                self._context, 2, 'data', args=(bitstream.id,),
                kwargs={'do_checksum': False})
            if data is None or getattr(data, 'wrapped', data) is None:
                raise exceptions.BitstreamNotFound(
                    f'bitstream {bitstream} has no data')
            yield from data

    @functools.cached_property
    def _context(self) -> Any:
        """:raises ConfigurationError: the host has no credentials."""
        return service_user.context()


@contextlib.contextmanager
def _faults(what: str, whom: str = 'this caller') -> Iterator[None]:
    try:
        yield
    except (nova_exception.ImageNotFound, nova_exception.ImageNotAuthorized,
            nova_exception.ImageBadRequest,
            glanceclient.exc.HTTPNotFound,
            glanceclient.exc.HTTPForbidden) as error:
        raise exceptions.BitstreamNotFound(
            f'Glance does not have {what}, or not for {whom}') from error
    # A connection that breaks in the middle is one of requests' OSErrors.
    except (nova_exception.NovaException, glanceclient.exc.BaseException,
            glanceclient.exc.ClientException,
            ks_exceptions.ClientException, OSError) as error:
        LOG.warning('Glance gave no usable answer for %(what)s: %(error)s',
                    {'what': what, 'error': error})
        raise exceptions.ServiceUnavailable(
            f'Glance gave no usable answer for {what}: '
            f'{type(error).__name__}') from error
