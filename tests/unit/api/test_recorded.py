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

"""Calls of a Cyborg 17, replayed: status and answer must be the same.

``recorded.json`` has them verbatim, in an order that makes sense as one
conversation. Uuids, dates and what is in ``_DIFFERENCES`` may differ.
"""

from collections.abc import Iterator
import json
import pathlib
import re
from typing import Any

import webob

from nova_accel.api import app
from nova_accel.api.http import microversion
from unit.api import base

_RECORDED = pathlib.Path(__file__).with_name('recorded.json')

_UUID = re.compile(r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')
_DATE = re.compile(r'\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(?:[.]\d+)?\+00:00')

_NO_DOCUMENT = {
    'why': 'Cyborg let the error document of its framework through',
    'compare': False,
}
_NO_READER = {
    'why': 'a reader may not see hardware (CVE-2026-40213)',
    'status': 403,
    'compare': False,
}
_NO_FILTERS = {
    'why': 'Cyborg tells what its framework would filter by',
    'compare': False,
}
_NO_SERVICE = {
    'why': 'we let the role service do without a service token',
    'roles': 'admin,member,reader',
}

#: Where Cyborg tells its newest microversion, and ours.
_NEWEST = '2.0, 2.3]', f'2.0, {microversion.VERSIONS[-1]}]'

#: Name of the call -> why, and what to expect or to do instead.
_DIFFERENCES: dict[str, dict[str, Any]] = {
    'root': {
        'why': 'it says who we are',
        'answer': {
            'name': 'OpenStack Accelerator API (nova_accel)',
            'description': (
                'Lifecycle management of hardware accelerators in '
                'Nova, compatible with the v2 API of Cyborg.'
            ),
        },
    },
    'device_list_reader': _NO_READER,
    'device_get_reader': _NO_READER,
    'device_list_filters': _NO_FILTERS,
    'deployable_list_filters': _NO_FILTERS,
    'deployable_list_reader': _NO_READER,
    'attribute_list_reader': _NO_READER,
    'device_profile_create_dup_409': _NO_DOCUMENT,
    'arq_bind_unknown_arq': _NO_DOCUMENT,
    'arq_bind_unknown_rp': _NO_DOCUMENT,
    'arq_create_reader_policy': {
        'why': 'a reader may not create (CVE-2026-40213)',
        'status': 403,
        'compare': False,
    },
    'arq_bind_no_service_token_403': _NO_SERVICE,
    'arq_delete_bound_no_token_403': _NO_SERVICE,
    'arq_delete_instance_no_token_403': _NO_SERVICE,
    'arq_get_after_unknown_rp': {
        'why': 'a refused binding changes nothing, Cyborg leaves BindStarted',
        'answer': {
            'state': 'Initial',
            'hostname': None,
            'updated_at': None,
            'device_rp_uuid': None,
            'instance_uuid': None,
        },
    },
    'arq_list_instance_unresolved_423': {
        'why': 'so the instance has no ARQ that is not resolved',
        'status': 200,
        'answer': {'arqs': []},
        'compare': 'answer',
    },
}

#: In all answers: what is not there is one of the calls above, or hardware.
_READERS_ARQ = '8dd1495f-f6f1-40a1-b58b-63158c2cebd1'
_BOARD = {
    'vendor': 'abcd',
    'model': 'PAC_ARRIA10',
    'vendor_board_info': 'INTEL',
    'std_board_info': json.dumps(
        {
            'product_id': '09c4',
            'address': '0000:0c:00.0',
            'numa_node': 0,
            'driver': 'fake',
        }
    ),
}
_DEPLOYABLE = {'name': 'region0', 'num_accelerators': 1}
_HANDLE = {
    'attach_handle_type': 'PCI',
    'attach_handle_info': {
        'domain': '0000',
        'bus': '0c',
        'device': '00',
        'function': '0',
    },
}


class RecordedTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        report = base.report(functions=1)
        [device] = report['devices']
        device |= {'vendor_id': _BOARD['vendor'], 'attributes': {}}
        device['deployables'][0]['traits'] = ['CUSTOM_FAKE_DEVICE']
        self.ok('PUT', f'/hosts/{base.HOSTNAME}', report, roles=base.SERVICE)
        self.versions = app.versions_factory({})
        #: A uuid of the recording -> the one that it is here.
        self.uuids: dict[str, str] = {}

    def test_replays(self) -> None:
        problems = {}
        calls = json.loads(_RECORDED.read_text().replace(*_NEWEST))
        for call in calls:
            difference = _DIFFERENCES.get(call['name'], {})
            found = list(
                self._replay(
                    {
                        **call,
                        **{
                            key: difference[key]
                            for key in ('status', 'roles')
                            if key in difference
                        },
                    },
                    difference,
                )
            )
            if found:
                problems[call['name']] = found
        self.assertEqual({}, problems)
        self.assertGreater(len(calls), 100)
        self.assertLessEqual(
            set(_DIFFERENCES), {call['name'] for call in calls}
        )

    def _replay(
        self, call: dict[str, Any], difference: dict[str, Any]
    ) -> Iterator[str]:
        answer = self._send(call)
        if answer.status_int != call['status']:
            yield f'{call["status"]} is {answer.status_int}: {answer.text}'
            return
        expected = _as_here(call['answer'])
        if difference.get('compare') == 'answer':
            expected = difference['answer']
        elif 'answer' in difference:
            expected = {**expected, **difference['answer']}
        if difference.get('compare') is not False:
            yield from self._compare(
                '', expected, answer.json if answer.body else None
            )

    def _send(self, call: dict[str, Any]) -> webob.Response:
        body = call['body']
        text = self._translated(
            body if isinstance(body, str) else json.dumps(body)
        )
        method, path = call['call'].split()
        path = self._translated(path)
        if path in ('/', '/v2', '/v2/'):
            return webob.Request.blank(
                path, base_url='http://HOST/accelerator'
            ).get_response(self.versions)
        roles = tuple(call['roles'].split(','))
        return self.call(
            method,
            path.removeprefix('/v2'),
            roles=roles,
            raw=None if body is None else text.encode(),
            project=base.PROJECT if 'admin' in roles else base.OTHER_PROJECT,
            token='no_' not in call['name'] and 'admin' in roles,
            version=call['version'] or None,
        )

    def _translated(self, text: str) -> str:
        return _UUID.sub(
            lambda match: self.uuids.setdefault(match[0], match[0]), text
        )

    def _compare(
        self, place: str, expected: Any, actual: Any
    ) -> Iterator[str]:
        """What is not the same, by its place in the answer."""
        if isinstance(expected, str) and isinstance(actual, str):
            expected = self._here(place, expected, actual)
        if (
            isinstance(expected, dict)
            and isinstance(actual, dict)
            and expected.keys() == actual.keys()
        ):
            for key in expected:
                yield from self._compare(
                    f'{place}/{key}', expected[key], actual[key]
                )
        elif (
            isinstance(expected, list)
            and isinstance(actual, list)
            and len(expected) == len(actual)
        ):
            for index, pair in enumerate(zip(expected, actual, strict=True)):
                yield from self._compare(f'{place}/{index}', *pair)
        elif expected != actual:
            yield f'{place}: {expected!r} is {actual!r}'

    def _here(self, place: str, expected: str, actual: str) -> Any:
        """What was recorded, as it must be here."""
        if place.endswith('error_message'):
            return _message(self._translated(expected), actual)
        if (
            _UUID.fullmatch(expected)
            and _UUID.fullmatch(actual)
            and expected not in self.uuids
        ):
            self.uuids[expected] = actual
        dates = _DATE.fullmatch(expected), _DATE.fullmatch(actual)
        if all(dates) and dates[0][1] == dates[1][1]:
            return actual
        return self._translated(expected)


def _message(expected: str, actual: str) -> Any:
    """Ours may say more after Cyborg's text: who is the culprit."""
    theirs, ours = json.loads(expected), json.loads(actual)
    if theirs is None:
        return expected
    text = theirs.get('faultstring', '').replace('cyborg:', 'nova_accel:')
    if ours.get('faultstring', '').startswith(text):
        ours.pop('faultstring', None)
        theirs.pop('faultstring', None)
    return actual if ours == theirs else expected


def _as_here(answer: Any) -> Any:
    """The recorded answer without that which cannot be here."""
    if isinstance(answer, list):
        return [
            _as_here(item)
            for item in answer
            if not (
                isinstance(item, dict) and item.get('uuid') == _READERS_ARQ
            )
        ]
    if not isinstance(answer, dict):
        return answer
    if answer.get('attach_handle_type') == 'TEST_PCI':
        answer = {**answer, **_HANDLE}
    if 'max_version' in answer:
        answer = {**answer, 'max_version': microversion.VERSIONS[-1]}
    if 'attributes_list' in answer:
        answer = {**answer, **_DEPLOYABLE}
    if 'std_board_info' in answer:
        answer = {**answer, **_BOARD}
    return {key: _as_here(value) for key, value in answer.items()}
