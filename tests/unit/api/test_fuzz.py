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

"""Whatever a client sends, the fault is the client's."""

from collections.abc import Iterator
import copy
import re
from typing import Any
from urllib import parse

import hypothesis
from hypothesis import strategies as st

from nova_accel.api.http import request
from openapi import document
from unit import message_bus
from unit import nova_servers
from unit.api import base
from unit.api import described

_TEXTS = st.text(st.characters())

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | _TEXTS
    | st.sampled_from(
        [
            base.NOBODY,
            base.RP,
            2**63,
            -1,
            1e308,
            '0',
            'FPGA',
            'Bound',
            '\0',
            'a' * 256,
            [],
            {},
        ]
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_TEXTS, inner, max_size=4)
    ),
    max_leaves=8,
)

_METHODS = ('GET', 'PUT', 'DELETE', 'PATCH', 'POST', 'HEAD')

_BINDING = f'/hosts/{base.HOSTNAME}/instances/{base.INSTANCE}/active'

#: Good requests, that each example spoils in one place.
_REQUESTS: tuple[tuple[str, str, Any], ...] = (
    (
        'POST',
        '/device_profiles',
        [
            {
                'name': 'a',
                'groups': [base.GROUP],
                'description': 'b',
                'uuid': base.NOBODY,
            }
        ],
    ),
    (
        'POST',
        '/accelerator_requests',
        {'device_profile_name': 'profile', 'image_uuid': base.NOBODY},
    ),
    (
        'PATCH',
        '/accelerator_requests',
        {base.NOBODY: base.patch(project_id='p')},
    ),
    (
        'PUT',
        f'/device_profiles/{base.NOBODY}',
        {'name': 'a', 'groups': [base.GROUP], 'description': 'b'},
    ),
    (
        'POST',
        '/device_profiles/profile/room',
        {'count': 2, 'servers': {base.INSTANCE: 1}},
    ),
    (
        'POST',
        '/attributes',
        {'attribute': {'deployable_id': 1, 'key': 'a', 'value': 'b'}},
    ),
    (
        'POST',
        '/attributes',
        {'deployable_id': base.NOBODY, 'key': 'a', 'value': 'b'},
    ),
    (
        'PATCH',
        f'/accelerator_requests/{base.NOBODY}',
        {base.NOBODY: base.patch()},
    ),
    ('PUT', f'/hosts/{base.HOSTNAME}', base.report(2)),
    (
        'PUT',
        f'/hosts/{base.HOSTNAME}/cleaning',
        {
            'revision': 1,
            'cleaned': [base.numbered_uuid(16)],
            'failed': {base.numbered_uuid(17): 'why'},
        },
    ),
    ('PUT', f'/hosts/{base.HOSTNAME}/programmings/{base.NOBODY}', base.RECORD),
    (
        'PATCH',
        f'/deployables/{base.NOBODY}/program',
        [
            {
                'op': 'replace',
                'path': '/bitstream_id',
                'value': [{'image_uuid': base.NOBODY}],
            }
        ],
    ),
    (
        'PATCH',
        f'/deployables/{base.NOBODY}/program/{base.NOBODY}',
        [
            {
                'op': 'replace',
                'path': '/bitstream_id',
                'value': [{'image_uuid': base.NOBODY}],
            }
        ],
    ),
    (
        'POST',
        '/vendordata',
        {'project-id': 'p', 'instance-id': base.NOBODY, 'metadata': {}},
    ),
    ('POST', f'/fpga/{base.NOBODY}', {'glance_bitstream_uuid': base.NOBODY}),
    (
        'POST',
        f'/bitstreams/{base.NOBODY}/prefetch',
        {'hostnames': ['compute-2']},
    ),
    (
        'PUT',
        _BINDING,
        {
            'attempt': 1,
            'project_id': 'p',
            'device_profile_name': 'profile',
            'image_uuid': base.NOBODY,
            'providers': {
                base.RP: {'allocated': {'FPGA': 1}, 'traits': base.TRAITS}
            },
        },
    ),
    (
        'PUT',
        f'{_BINDING}/arqs',
        {
            'attempt': 1,
            'arqs': [base.NOBODY],
            'names': {
                base.NOBODY: {
                    'device_profile_name': 'profile',
                    'device_profile_group_id': 0,
                }
            },
            'leaving': [base.INSTANCE],
        },
    ),
    (
        'PUT',
        f'{_BINDING}/additions',
        {
            'attempt': 1,
            'project_id': 'p',
            'arqs': [base.WANTED],
            'kept': [],
        },
    ),
    (
        'POST',
        f'/servers/{base.INSTANCE}/accelerators/replace',
        {'arq': base.NOBODY},
    ),
    (
        'PUT',
        f'/servers/{base.INSTANCE}/accelerators',
        {'device_profile': 'profile'},
    ),
    ('PUT', f'/hosts/{base.HOSTNAME}/provisioning', {'arqs': [base.NOBODY]}),
    (
        'PUT',
        f'/hosts/{base.HOSTNAME}/drain',
        {'reason': 'fans', 'until': '2026-11-24T06:00:00Z'},
    ),
)

#: What a path or a query of the document is filled with, besides any text.
_PIECES = (
    base.HOSTNAME,
    base.INSTANCE,
    base.NOBODY,
    base.RP,
    base.DEVICE,
    base.DEPLOYABLE,
    'active',
    'old',
    'profile',
    'resolved',
    'FPGA',
    '0x8086',
    '1',
    '-1',
    '',
    ',',
)

_PATHS = (
    '/attributes/{}',
    '/attributes?deployable_id={}',
    '/attributes?key={}',
    '/deployables/{}',
    '/deployables?hostname={}',
    '/programmings?{}={}',
    '/programmings?limit={}',
    '/programmings?marker={}',
    '/device_profiles/{}/availability',
    '/device_profiles/{}/room',
    '/device_profiles/{}/explain',
    '/programmings?project_id={}',
    '/devices?sort={}',
    '/deployables?marker={}',
    '/device_profiles?limit=1&sort={}:{}',
    '/accelerator_requests?sort=state&marker={}',
    '/accelerator_requests?state={}',
    '/fpga/{}',
    '/hosts/h/programmings/{}',
    '/devices/{}',
    '/deployables/{}/program/{}',
    '/devices/{}/disable',
    '/devices?type={}',
    '/devices?vendor={}',
    '/devices?hostname={}',
    '/device_profiles/{}',
    '/accelerator_requests/{}',
    '/hosts/{}',
    '/hosts/{}/drain',
    '/servers/{}/accelerators',
    '/hosts/h/instances/{}/active',
    '/hosts/{}/instances/{}/{}',
    '/device_profiles?name={}',
    '/device_profiles?value={}',
    '/accelerator_requests?instance={}',
    '/accelerator_requests?{}={}',
    '/accelerator_requests?arqs={}',
    f'{_BINDING}?attempt={{}}',
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in a JSON value."""
    if isinstance(value, (dict, list)):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in list(keys):
            yield value, key
            yield from _places(value[key])


@st.composite
def _spoilt(draw: st.DrawFn) -> tuple[str, str, Any]:
    method, path, body = copy.deepcopy(draw(st.sampled_from(_REQUESTS)))
    _spoil(draw, body)
    return method, path, body


def _spoil(draw: st.DrawFn, body: Any) -> None:
    """Change one place of a body, if it has any."""
    places = list(_places(body))
    if not places:
        return
    container, key = draw(st.sampled_from(places))
    value = draw(_VALUES)
    if isinstance(container, dict) and draw(st.booleans()):
        container[draw(_TEXTS)] = container.pop(key)
    else:
        container[key] = value


def _good_bodies() -> dict[tuple[str, str], Any]:
    """(method, path of the document) -> a body that is accepted there."""
    return {
        (method, described.template(path)): body
        for method, path, body in _REQUESTS
    }


_PIECE = (
    st.sampled_from(_PIECES).map(str.encode)
    | st.binary(min_size=1)
    | _TEXTS.map(lambda text: text.encode(errors='surrogatepass'))
)


@st.composite
def _calls(draw: st.DrawFn) -> tuple[str, str, Any]:
    """A call of one operation of the document, right or wrong anywhere."""
    path, method, operation = draw(st.sampled_from(described.OPERATIONS))
    filled = re.sub(
        '{[^}]*}', lambda _item: parse.quote_from_bytes(draw(_PIECE)), path
    )
    arguments = draw(
        st.lists(
            st.tuples(st.sampled_from([*operation.query, 'unknown']), _PIECE),
            max_size=3,
        )
    )
    if arguments:
        filled += '?' + '&'.join(
            f'{name}={parse.quote_from_bytes(piece)}'
            for name, piece in arguments
        )
    body = None
    if operation.body is not None:
        body = copy.deepcopy(_good_bodies()[method, path])
        for _change in range(draw(st.integers(0, 2))):
            _spoil(draw, body)
    return method, filled, body


class FuzzTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        # Hosts that are in no cell.
        bus = self.useFixture(message_bus.MessageBus())
        nova = self.useFixture(nova_servers.NovaServers(bus))
        nova.add(base.INSTANCE, base.PROJECT, base.HOSTNAME)
        self.create_profile()
        self.report_host()

    def send(self, method: str, path: str, body: Any = None) -> None:
        answer = self.call(
            method,
            path,
            body,
            token=True,
            version='latest',
            roles=base.ADMIN + base.SERVICE,
        )
        self.assertLess(answer.status_int, 500, self.log.output)

    @hypothesis.given(st.sampled_from(_REQUESTS), _VALUES)
    def test_any_body(self, good: tuple[str, str, Any], body: Any) -> None:
        self.send(*good[:2], body)

    @hypothesis.given(_spoilt())
    def test_nearly_right_body(self, good: tuple[str, str, Any]) -> None:
        self.send(*good)

    @hypothesis.given(
        st.sampled_from(_METHODS),
        st.sampled_from(_PATHS),
        st.binary(min_size=1)
        | _TEXTS.map(lambda text: text.encode(errors='surrogatepass')),
    )
    def test_any_path(self, method: str, path: str, piece: bytes) -> None:
        self.send(method, path.replace('{}', parse.quote_from_bytes(piece)))

    # Five times as many as others: 10,000 with the long profile.
    @hypothesis.settings(
        max_examples=5 * hypothesis.settings.default.max_examples
    )
    @hypothesis.given(_calls())
    def test_any_operation(self, call: tuple[str, str, Any]) -> None:
        self.send(*call)

    def test_each_body_of_the_document_is_tried(self) -> None:
        for method, path, body in _REQUESTS:
            _path, _method, operation = described.operation(method, path)
            request.check(body, document.request_body(operation))
        self.assertEqual(
            {
                (method, path)
                for path, method, operation in described.OPERATIONS
                if operation.body is not None
            },
            _good_bodies().keys(),
        )
