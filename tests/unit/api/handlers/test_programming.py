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

from typing import Any

from unit.api import base
from unit.api import programming


class HistoryTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.report_host()
        for number in range(3):
            self.note(number)

    def note(self, number: int, **fields: Any) -> None:
        self.ok(
            'PUT',
            f'/hosts/{base.HOSTNAME}/programmings/'
            f'{base.numbered_uuid(100 + number)}',
            {
                **base.RECORD,
                **fields,
                'started_at': f'2026-11-21T12:00:0{number}+00:00',
            },
            roles=base.SERVICE,
        )

    def get(self, query: str = '', **kwargs: Any) -> Any:
        return self.ok(
            'GET',
            f'/programmings{query}',
            version='2.4',
            roles=base.ADMIN,
            **kwargs,
        )

    def test_who_what_when_how_long_and_how_it_ended(self) -> None:
        self.note(3, finished_at=None, failure=None)
        self.note(4, failure=None)
        succeeded, running, failed, *_more = self.get()['programmings']
        self.assertEqual(
            {
                **base.RECORD,
                'uuid': base.numbered_uuid(102),
                'hostname': base.HOSTNAME,
                'state': 'failed',
                'duration_s': 6,
                'started_at': '2026-11-21T12:00:02+00:00',
            },
            failed,
        )
        self.assertEqual(
            [('running', None, None, None), ('succeeded', None, 4, True)],
            [
                (
                    each['state'],
                    each['failure'],
                    each['duration_s'],
                    each['finished_at'] and True,
                )
                for each in (running, succeeded)
            ],
        )

    def test_in_pages(self) -> None:
        found: list[str] = []
        path = '?limit=2'
        while path:
            page = self.get(path)
            found += [each['uuid'] for each in page['programmings']]
            [link] = page.get('programmings_links', [{'href': ''}])
            path = link['href'].removeprefix(
                'http://HOST/accelerator/v2/programmings'
            )
        self.assertEqual(
            [base.numbered_uuid(number) for number in (102, 101, 100)], found
        )

    def test_filters(self) -> None:
        for query, amount in (
            (f'hostname={base.HOSTNAME}', 3),
            ('hostname=compute-2', 0),
            (f'deployable_uuid={programming.DEPLOYABLE}', 3),
            (f'deployable_uuid={base.NOBODY}', 0),
            (f'instance_uuid={base.INSTANCE}', 3),
            (f'project_id={base.PROJECT}', 3),
            (f'bitstream_id={base.NOBODY}&limit=9999', 3),
        ):
            self.assertEqual(
                amount, len(self.get(f'?{query}')['programmings']), query
            )
        for query in (
            'limit=0',
            'limit=x',
            'limit=-1',
            'user=a',
            f'marker={base.NOBODY}',
        ):
            self.refused(400, 'GET', f'/programmings?{query}', version='2.4')

    def test_from_2_5_on(self) -> None:
        self.refused(406, 'GET', '/programmings', version='2.3')
        self.refused(
            403, 'GET', '/programmings', version='2.4', roles=base.MEMBER
        )
