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

"""What the OpenAPI document says of a call, and whether its answer is so."""

import functools
import re
from typing import Any

import jsonschema
import webob

from nova_accel.api import routes
from nova_accel.api.http import route
from openapi import document

_DOCUMENT = document.document()

_BASE = '/accelerator/v2'

#: Path, method, what is known of it.
OPERATIONS = [
    (path, method, operation)
    for path, methods in routes.API.items()
    for method, operation in methods.items()
]


def template(path: str) -> str | None:
    """The path of the document that a path of a request is one of."""
    path = path.partition('?')[0]
    for known in routes.API:
        if re.fullmatch(re.sub('{[^}]*}', '[^/]+', known), path):
            return known
    return None


def operation(method: str, path: str) -> tuple[str, str, route.Route]:
    known = template(path)
    assert known is not None, path
    return known, method, routes.API[known][method]


def check(method: str, path: str, answer: webob.Response) -> None:
    """Whether the document has such an answer, if it has such a call.

    :raises jsonschema.ValidationError: the answer is another one
    :raises AssertionError: there is no such status
    """
    known = template(path)
    if known is None or method not in routes.API[known]:
        return
    status = str(answer.status_int)
    if status[0] != '2':
        status = 'default'
    responses = _DOCUMENT['paths'][_BASE + known][method.lower()]['responses']
    assert status in responses, f'{method} {path}: {status}'
    if 'content' not in responses[status]:
        assert not answer.body, f'{method} {path}: {answer.text}'
    else:
        validator(known, method.lower(), status).validate(answer.json)


@functools.cache
def validator(path: str, method: str, status: str) -> Any:
    schema = _DOCUMENT['paths'][_BASE + path][method]['responses'][status][
        'content'
    ]['application/json']['schema']
    # What it refers to, in the place where it looks for that.
    return jsonschema.Draft202012Validator(
        {**schema, 'components': _DOCUMENT['components']}
    )
