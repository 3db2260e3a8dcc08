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

from osc_lib import exceptions

from nova_accel.model.fleet import drain_plan as model
from nova_accel.osc import drain_cloud
from nova_accel.osc import nova_calls
from unit.osc import draining

_GOLD = drain_cloud.Holding(frozenset({'PCI'}), frozenset({'gold'}))


class TestAccelerators(draining.DrainTestCase):
    def test_the_drain(self) -> None:
        self.assertIsNone(self.cloud.drain())
        begun = self.cloud.begin('fans', '2120-01-01T00:00:00+00:00')
        self.assertEqual('compute-1', begun['hostname'])
        self.assertEqual(begun, self.cloud.drain())

    def test_an_unknown_host(self) -> None:
        cloud = drain_cloud.DrainCloud(
            self.nova.adapter, self.api.adapter, 'no/body'
        )
        self.assertRaises(exceptions.CommandError, cloud.begin, 'fans', None)

    def test_holdings(self) -> None:
        self.assertEqual({}, self.cloud.holdings())
        servers = [self.boot('one'), self.boot('two')]
        self.assertEqual(
            {server.uuid: _GOLD for server in servers}, self.cloud.holdings()
        )
        servers[0].leave()
        self.assertEqual([servers[1].uuid], [*self.cloud.holdings()])

    def test_holdings_of_several_pages(self) -> None:
        for number in range(4):
            self.boot(f'server{number}')
        whole = self.cloud.holdings()
        real = self.api.adapter.request

        def request(path: str, method: str, **arguments: object) -> object:
            params = {**arguments.pop('params', {}), 'limit': 1}  # type: ignore[dict-item]
            return real(path, method, params=params, **arguments)

        self.api.adapter.request = request
        self.assertEqual(whole, self.cloud.holdings())

    def test_room(self) -> None:
        self.assertIsNone(self.cloud.no_room('gold'))
        self.fill_others()
        self.assertIn('profile gold', self.cloud.no_room('gold') or '')
        # A migration will show it.
        self.assertIsNone(self.cloud.no_room('unknown'))
        self.api.refuse = True
        self.assertIsNone(self.cloud.no_room('gold'))


class TestServers(draining.DrainTestCase):
    def test_server(self) -> None:
        found = self.boot('a\nb', extra_specs={'accel:device_profile': 'x'})
        self.assertEqual(
            model.DrainedServer(
                found.uuid,
                'a b',
                'ACTIVE',
                None,
                True,
                False,
                True,
                alternatives=('x',),
            ),
            self.cloud.server(found.uuid, _GOLD),
        )
        self.assertIsNone(self.cloud.server('unknown', _GOLD))

    def test_only_mediated_devices_are_known_to_go_live(self) -> None:
        found = self.boot('server')
        for kinds, expected in (
            ({'MDEV'}, True),
            ({'MDEV', 'PCI'}, False),
            ({'PCI'}, False),
        ):
            server = self.cloud.server(
                found.uuid, _GOLD._replace(kinds=frozenset(kinds))
            )
            assert server is not None
            self.assertIs(expected, server.is_mediated)

    def test_its_resize(self) -> None:
        found = self.boot('s', status='VERIFY_RESIZE', host='compute-2')
        self.cloud.begin('fans', None)
        after, before = (
            f'{year}-01-01T00:00:00.000000' for year in (2120, 2020)
        )
        for expected, *migrations in (
            (model.Resize.NONE,),
            (model.Resize.NONE, ('live-migration', after)),
            (model.Resize.OURS, ('migration', after)),
            (model.Resize.OTHERS, ('migration', before)),
            (model.Resize.OTHERS, ('resize', after)),
            (model.Resize.ENDING, ('migration', after, 'confirming')),
            (
                model.Resize.OTHERS,
                ('migration', after),
                ('resize', after),
            ),
        ):
            found.migrations.clear()
            for migration in migrations:
                found.add_migration(*migration)
            server = self.cloud.server(found.uuid, _GOLD)
            assert server is not None
            self.assertIs(expected, server.resize)

    def test_a_refusal_has_novas_words(self) -> None:
        found = self.boot('server', refuses={'migrate': 'it is locked'})
        error = self.assertRaises(
            nova_calls.Refused, self.cloud.act, found.uuid, model.Way.COLD
        )
        self.assertEqual('it is locked', str(error))


class TestWhyFailed(draining.DrainTestCase):
    def why(self, why: str | None) -> str:
        found = self.boot('server')
        found.actions += [('reboot', None), ('migrate', why), ('stop', None)]
        return self.cloud.why_failed(found.uuid)

    def test_the_word_of_a_host(self) -> None:
        self.assertEqual('no disk', self.why('no disk'))

    def test_the_word_of_nova_conductor(self) -> None:
        self.assertEqual('No valid host was found.', self.why(None))

    def test_no_word(self) -> None:
        found = self.boot('server')
        self.assertIn('does not say', self.cloud.why_failed(found.uuid))
        self.assertIn('does not say', self.cloud.why_failed('unknown'))
