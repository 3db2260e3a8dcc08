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

"""The images of Nova's GlanceFixture as an image API, to list and show."""

from typing import Any

from nova.tests import fixtures as nova_fixtures
import webob
import webob.dec

_FILTERS = ('id', 'name', 'status', 'visibility')


class Glance:
    """The WSGI application, mounted at ``url``: image API v2, read only."""

    def __init__(self, url: str, images: nova_fixtures.GlanceFixture) -> None:
        self._url = url
        self._images = images

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        path = request.path_info.strip('/')
        images = {image['id']: _view(image)
                  for image in self._images.detail(None)}
        if request.method != 'GET':
            return webob.Response(status=405)
        if path in ('', 'versions'):
            return webob.Response(status=300 if not path else 200, json={
                'versions': [{
                    'id': 'v2.9', 'status': 'CURRENT', 'links': [{
                        'rel': 'self', 'href': f'{self._url}/v2/'}]}]})
        if path == 'v2/images':
            wanted = {key: value for key, value in request.GET.items()
                      if key in _FILTERS}
            return webob.Response(json={'images': [
                image for image in images.values()
                if all(image[key] == value
                       for key, value in wanted.items())]})
        kind, _slash, image_id = path.rpartition('/')
        if kind == 'v2/images' and image_id in images:
            return webob.Response(json=images[image_id])
        return webob.Response(status=404)


def _view(image: dict[str, Any]) -> dict[str, Any]:
    """The wire's flat form of an image as Nova holds it."""
    view = {key: image[key] for key in (
        'id', 'name', 'status', 'container_format', 'disk_format', 'size',
        'min_ram', 'min_disk', 'protected', 'visibility', 'tags')
        if key in image}
    return {**image.get('properties', {}), **view,
            'created_at': f'{image["created_at"]:%Y-%m-%dT%H:%M:%SZ}',
            'updated_at': f'{image["updated_at"]:%Y-%m-%dT%H:%M:%SZ}'}
