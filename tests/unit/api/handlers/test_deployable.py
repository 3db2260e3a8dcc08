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

import json
from typing import Any

from nova_accel import exceptions
from unit.api import base
from unit.api import programming

_PATH = f'/deployables/{programming.DEPLOYABLE}'


def patch(
    image: Any = programming.BITSTREAM, **more: Any
) -> list[dict[str, Any]]:
    return [
        {
            'op': 'replace',
            'path': '/bitstream_id',
            'value': [{'image_uuid': image}],
            **more,
        }
    ]


class DeployableTest(programming.ProgrammingTestCase):
    def test_list_and_show(self) -> None:
        self.occupy(base.INSTANCE)
        for version, more in (
            ('2.3', {}),
            (
                '2.4',
                {
                    'hostname': base.HOSTNAME,
                    'region': 'region0',
                    'device_uuid': base.DEVICE,
                    'num_accelerators_in_use': 1,
                },
            ),
        ):
            shown = self.ok('GET', _PATH, version=version)
            self.assertEqual(
                {'deployables': [shown]},
                self.ok(
                    'GET', '/deployables', version=version, roles=base.ADMIN
                ),
            )
            self.assertIsNotNone(shown.pop('created_at'))
            self.assertIsInstance(shown.pop('device_id'), int)
            self.assertEqual(
                [
                    {'traits1': base.TRAITS[0]},
                    {'traits2': base.TRAITS[1]},
                    {'traits3': base.TRAITS[2]},
                    {'rc': 'FPGA'},
                ],
                json.loads(shown.pop('attributes_list')),
            )
            self.assertEqual(
                {
                    'uuid': programming.DEPLOYABLE,
                    'parent_id': None,
                    'root_id': None,
                    'name': 'region0',
                    'num_accelerators': 4,
                    'rp_uuid': base.RP,
                    'driver_name': 'fake',
                    'bitstream_id': None,
                    'updated_at': None,
                    'links': [
                        {
                            'href': f'http://HOST/accelerator/v2{_PATH}',
                            'rel': 'self',
                        },
                        {
                            'href': f'http://HOST/accelerator{_PATH}',
                            'rel': 'bookmark',
                        },
                    ],
                    **more,
                },
                shown,
            )

    def test_filters(self) -> None:
        for query, amount in (
            (f'hostname={base.HOSTNAME}', 1),
            ('hostname=compute-2', 0),
            (f'device_uuid={base.DEVICE}', 1),
            (f'bitstream_id={programming.BITSTREAM}', 0),
        ):
            self.assertEqual(
                amount,
                len(self.ok('GET', f'/deployables?{query}')['deployables']),
                query,
            )
        self.refused(400, 'GET', '/deployables?driver=fake')

    def test_cyborgs_filter(self) -> None:
        for value, amount in (('region0', 1), ('region1', 0)):
            self.assertEqual(
                amount,
                len(
                    self.ok(
                        'GET',
                        '/deployables?filters.field=name&filters.value='
                        + value,
                    )['deployables']
                ),
            )
        for query, culprit in (
            ('filters.field=board&filters.value=x', "'board'"),
            ('filters.field=name', 'filters.value'),
            ('filters.value=x', 'filters.field'),
        ):
            self.assertIn(
                culprit, self.refused(400, 'GET', f'/deployables?{query}')
            )

    def test_unknown(self) -> None:
        for call in (
            ('GET', f'/deployables/{base.NOBODY}'),
            ('PATCH', f'/deployables/{base.NOBODY}/program', patch()),
        ):
            self.assertEqual(
                f'Deployable not found with uuid={base.NOBODY}',
                self.refused(404, *call),
            )
        self.refused(400, 'GET', '/deployables/x')

    def test_program(self) -> None:
        before = self.ok('GET', _PATH)
        self.assertEqual(
            {**before, 'bitstream_id': programming.BITSTREAM},
            self.ok('PATCH', f'{_PATH}/program', patch()),
        )
        self.assert_asked(None)
        self.assertEqual(
            'Access was denied to the following resource: '
            'nova_accel:deployable:program, which needs the role admin',
            self.refused(
                403, 'PATCH', f'{_PATH}/program', patch(), roles=base.MEMBER
            ),
        )
        self.host.fault = exceptions.Conflict('a guest has it')
        self.assertEqual(
            'a guest has it',
            self.refused(409, 'PATCH', f'{_PATH}/program', patch()),
        )

    def test_where_it_is_is_not_for_the_owner_of_the_server(self) -> None:
        self.occupy(base.INSTANCE)
        [arq] = self.ok('GET', '/accelerator_requests')['arqs']
        shown = self.ok(
            'PATCH',
            f'/deployables/{arq["uuid"]}/program',
            patch(),
            roles=base.MEMBER,
            version='2.4',
        )
        self.assertEqual(
            (programming.DEPLOYABLE, 'region0', programming.BITSTREAM),
            (shown['uuid'], shown['region'], shown['bitstream_id']),
        )
        self.assertEqual(
            {None},
            {
                shown[name]
                for name in (
                    'hostname',
                    'device_uuid',
                    'device_id',
                    'rp_uuid',
                    'driver_name',
                )
            },
        )

    def test_program_as_clients_ask_for_it(self) -> None:
        for path in ('program', f'program/{programming.DEPLOYABLE}'):
            for place in ('/bitstream_id', '/program'):
                self.ok('PATCH', f'{_PATH}/{path}', patch(path=place))
                self.assertEqual(programming.DEPLOYABLE, self.asked()[0])
        self.assertEqual(
            404,
            self.call(
                'PATCH', f'{_PATH}/program/{base.NOBODY}', patch()
            ).status_int,
        )
        self.refused(400, 'PATCH', f'{_PATH}/program/x', patch())

    def test_a_body_that_is_not_cyborg_s(self) -> None:
        for body in (
            [],
            {},
            patch() * 2,
            patch(op='add'),
            patch(path='/x'),
            patch(value=[]),
            patch(value=[{}]),
            patch(1),
        ):
            self.refused(400, 'PATCH', f'{_PATH}/program', body)
        self.assertEqual(
            'Expected a uuid but received xyz.',
            self.refused(400, 'PATCH', f'{_PATH}/program', patch('xyz')),
        )
        self.assertEqual([], self.host.asked)
