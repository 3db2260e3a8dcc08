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

from nova_accel import conf
from nova_accel.model import naming
from unit.api import base

#: List -> the name that it has in the body.
_LISTS = {
    'device_profiles': 'device_profiles',
    'devices': 'devices',
    'deployables': 'deployables',
    'accelerator_requests': 'arqs',
    'programmings': 'programmings',
}


class PagingTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        report = base.report()
        [device] = report['devices']
        report['devices'] = [
            _numbered(report['node_uuid'], device, number)
            for number in range(3)
        ]
        self.ok('PUT', f'/hosts/{base.HOSTNAME}', report, roles=base.SERVICE)
        for name in ('profile', 'b', 'a'):
            self.create_profile(name)
            self.create_arq()
        for number in range(3):
            self.ok(
                'PUT',
                f'/hosts/{base.HOSTNAME}/programmings/'
                f'{base.numbered_uuid(100 + number)}',
                base.RECORD,
                roles=base.SERVICE,
            )

    def pages(
        self, path: str, query: str, version: str = '2.4'
    ) -> list[list[Any]]:
        """All pages, as a client finds them that follows the links."""
        name, pages = _LISTS[path], []
        url = f'/{path}?{query}'
        while url:
            body = self.ok('GET', url, version=version)
            pages.append(body[name])
            [link] = body.get(f'{name}_links', [{'rel': 'next', 'href': ''}])
            self.assertEqual('next', link['rel'])
            url = link['href'].removeprefix('http://HOST/accelerator/v2')
        return pages

    def test_all_lists(self) -> None:
        for path, name in _LISTS.items():
            expected = self.ok('GET', f'/{path}', version='2.4')[name]
            self.assertEqual(3, len(expected))
            pages = self.pages(path, 'limit=2')
            self.assertEqual([2, 1], [len(page) for page in pages])
            self.assertEqual(
                expected, [each for page in pages for each in page]
            )

    def test_sorted(self) -> None:
        for path, name in _LISTS.items():
            expected = sorted(
                each['uuid']
                for each in self.ok('GET', f'/{path}', version='2.4')[name]
            )
            for direction in ('asc', 'desc'):
                self.assertEqual(
                    expected,
                    [
                        each['uuid']
                        for page in self.pages(
                            path, f'limit=1&sort=uuid:{direction}'
                        )
                        for each in page
                    ],
                )
                expected.reverse()

    def test_a_page_of_what_is_filtered(self) -> None:
        pages = self.pages('device_profiles', 'name=a,b&limit=1&sort=name')
        self.assertEqual(
            [['a'], ['b'], []],
            [[each['name'] for each in page] for page in pages],
        )

    def test_bad_arguments(self) -> None:
        for path in _LISTS:
            for query in (
                'limit=0',
                'limit=x',
                f'marker={base.NOBODY}',
                'marker=x',
                'sort=nope',
                'sort=uuid:up',
                'sort=',
            ):
                culprit = query.partition('=')[0]
                self.assertIn(
                    culprit,
                    self.refused(
                        400, 'GET', f'/{path}?{query}', version='2.4'
                    ).lower(),
                )

    def test_a_whole_list_has_an_end(self) -> None:
        self.assertEqual(10000, conf.CONF.nova_accel.max_unpaged)
        self.addCleanup(conf.CONF.clear_override, 'max_unpaged', 'nova_accel')
        for path, name in _LISTS.items():
            if path == 'programmings':
                continue
            conf.CONF.set_override('max_unpaged', 3, 'nova_accel')
            self.assertEqual(
                [name], [*self.ok('GET', f'/{path}', version='2.3')]
            )
            conf.CONF.set_override('max_unpaged', 2, 'nova_accel')
            self.assertIn(
                'more than 2: filter them, or ask for pages',
                self.refused(400, 'GET', f'/{path}'),
            )
            self.assertEqual(2, len(self.pages(path, 'limit=2')))
        # Those of one deployable are few.
        self.assertIn(
            'more than 2: ask for those of one deployable',
            self.refused(400, 'GET', '/attributes'),
        )

    def test_from_2_4_on(self) -> None:
        for path, name in _LISTS.items():
            if path == 'programmings':
                continue
            for argument in ('limit', 'marker', 'sort'):
                self.assertEqual(
                    f'Unknown argument: "{argument}"',
                    self.refused(
                        400, 'GET', f'/{path}?{argument}=1', version='2.3'
                    ),
                )
            self.assertEqual(
                [name], [*self.ok('GET', f'/{path}', version='2.3')]
            )


def _numbered(
    node_uuid: str, device: dict[str, Any], number: int
) -> dict[str, Any]:
    """A device like this one, of the same compute node."""
    [deployable] = device['deployables']
    name = f'{device["name"]}_{number}'
    return {
        **device,
        'uuid': naming.derived_uuid(node_uuid, name),
        'name': name,
        'deployables': [
            {
                **deployable,
                'uuid': naming.derived_uuid(
                    node_uuid, name, 'deployable', deployable['name']
                ),
                'attach_handles': [],
            }
        ],
    }
