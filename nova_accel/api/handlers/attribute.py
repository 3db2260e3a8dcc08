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


"""``/attributes``: keys and values of deployables."""

from typing import Any

import webob

from nova_accel.api.http import paging
from nova_accel.api.http import representation
from nova_accel.api.http import request
from nova_accel.db import attribute as attribute_db


def list_attributes(req: webob.Request) -> webob.Response:
    request.authorize(req)
    arguments = request.query(req)
    deployable = None
    if 'deployable_id' in arguments:
        deployable = request.number_or_uuid(
            'deployable_id', arguments['deployable_id']
        )
    limit = paging.limit_of_whole()
    rows = attribute_db.get_all(deployable, arguments.get('key'), limit)
    paging.check_length(rows, 'ask for those of one deployable')
    return webob.Response(
        json_body={
            'attributes': [_to_json(req, attribute) for attribute in rows]
        }
    )


def get_attribute(req: webob.Request) -> webob.Response:
    request.authorize(req)
    return webob.Response(
        json_body=_to_json(
            req, attribute_db.get(request.path_uuid(req, 'uuid'))
        )
    )


def create_attribute(req: webob.Request) -> webob.Response:
    request.authorize(req)
    body = request.json_body(req)
    created = attribute_db.create(
        request.number_or_uuid('deployable_id', body['deployable_id']),
        body['key'],
        body['value'],
    )
    return webob.Response(status=201, json_body=_to_json(req, created))


def delete_attribute(req: webob.Request) -> webob.Response:
    request.authorize(req)
    attribute_db.delete(request.path_uuid(req, 'uuid'))
    return webob.Response(status=204, content_type=None)


def _to_json(
    req: webob.Request, attribute: attribute_db.AttributeRow
) -> dict[str, Any]:
    return {
        'uuid': attribute['uuid'],
        'key': attribute['key'],
        'deployable_id': attribute['deployable_id'],
        'value': attribute['value'],
        'links': representation.link(req, 'attributes', attribute['uuid']),
        **representation.times(attribute),
    }
