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

"""An image API that lists and serves the images of Nova's GlanceFixture."""

from collections.abc import Iterable
import io
from typing import Any

from nova.tests import fixtures as nova_fixtures
import webob
import webob.dec

_FILTERS = ('id', 'name', 'status', 'visibility')

#: The own fields of an image. All other keys are properties.
_OWN = (
    'id',
    'name',
    'status',
    'container_format',
    'disk_format',
    'size',
    'min_ram',
    'min_disk',
    'protected',
    'visibility',
    'tags',
    'owner',
    'os_hash_algo',
    'os_hash_value',
)

_SCHEMA = {
    'name': 'image',
    'additionalProperties': {'type': 'string'},
    'properties': {
        name: {}
        for name in (*_OWN, 'created_at', 'updated_at', 'file', 'schema')
    },
}

_CHUNK = 1024 * 1024


class Glance:
    """The WSGI application, mounted at ``url``: image API v2, read only."""

    def __init__(self, url: str, images: nova_fixtures.GlanceFixture) -> None:
        self._url = url
        self._images = images

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        path = request.path_info.strip('/')
        images = {
            image['id']: _view(image) for image in self._images.detail(None)
        }
        if request.method != 'GET':
            return webob.Response(status=405)
        if path in ('', 'versions'):
            return self._versions(300 if not path else 200)
        if path == 'v2/images':
            return _listed(request, images.values())
        if path == 'v2/schemas/image':
            return webob.Response(json=_SCHEMA)
        kind, _slash, image_id = path.removesuffix('/file').rpartition('/')
        if kind != 'v2/images' or image_id not in images:
            return webob.Response(status=404)
        if path.endswith('/file'):
            return self._data(image_id)
        return webob.Response(json=images[image_id])

    def _versions(self, status: int) -> webob.Response:
        return webob.Response(
            status=status,
            json={
                'versions': [
                    {
                        'id': 'v2.9',
                        'status': 'CURRENT',
                        'links': [{'rel': 'self', 'href': f'{self._url}/v2/'}],
                    }
                ]
            },
        )

    def _data(self, image_id: str) -> webob.Response:
        buffer = io.BytesIO()
        self._images.download(None, image_id, data=buffer)
        view = buffer.getbuffer()
        if not view:
            return webob.Response(status=204)
        return webob.Response(
            content_type='application/octet-stream',
            content_length=len(view),
            app_iter=(
                bytes(view[begin : begin + _CHUNK])
                for begin in range(0, len(view), _CHUNK)
            ),
        )


def _listed(
    request: webob.Request, images: Iterable[dict[str, Any]]
) -> webob.Response:
    """The images that match the filters of the request."""
    wanted = {
        key: value for key, value in request.GET.items() if key in _FILTERS
    }
    tags = set(request.GET.getall('tag'))
    return webob.Response(
        json={
            'images': [
                image
                for image in images
                if tags.issubset(image.get('tags', ()))
                and all(
                    image.get(key) == value for key, value in wanted.items()
                )
            ]
        }
    )


def _view(image: dict[str, Any]) -> dict[str, Any]:
    """The API's flat form of an image that Nova holds."""
    view = {key: image[key] for key in _OWN if key in image}
    return {
        **image.get('properties', {}),
        **view,
        'file': f'/v2/images/{image["id"]}/file',
        'schema': '/v2/schemas/image',
        'created_at': f'{image["created_at"]:%Y-%m-%dT%H:%M:%SZ}',
        'updated_at': f'{image["updated_at"]:%Y-%m-%dT%H:%M:%SZ}',
    }
