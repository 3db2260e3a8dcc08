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

from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.db import device_profile
from nova_accel.testing import database

load_tests = testscenarios.load_tests_apply_scenarios

GROUPS = [
    {'resources:FPGA': '2', 'trait:CUSTOM_A': 'required'},
    {'resources:FPGA': '1', 'accel:function_name': 'gzip'},
]


class TestDeviceProfile(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def test_reads_as_it_was_created(self) -> None:
        description = 'ZIP \u2192 \U0001f5dc'
        created = device_profile.create('gzip', GROUPS, description)
        self.assertEqual(GROUPS, created['groups'])
        self.assertEqual(description, created['description'])
        self.assertIsNone(created['updated_at'])
        self.assertEqual(created, device_profile.get('gzip'))
        self.assertEqual(created, device_profile.get(created['uuid']))
        self.assertEqual([created], device_profile.get_all())

    def test_uuid_of_the_caller(self) -> None:
        uuid = uuidutils.generate_uuid()
        created = device_profile.create('gzip', GROUPS, uuid=uuid)
        self.assertEqual(uuid, created['uuid'])
        error = self.assertRaises(
            exceptions.Conflict,
            device_profile.create,
            'other',
            GROUPS,
            uuid=uuid,
        )
        self.assertIn(uuid, str(error))

    def test_name_is_unique(self) -> None:
        device_profile.create('gzip', GROUPS)
        error = self.assertRaises(
            exceptions.Conflict, device_profile.create, 'gzip', GROUPS
        )
        self.assertIn('gzip', str(error))
        self.assertEqual(1, len(device_profile.get_all()))

    def test_names_differ_by_case(self) -> None:
        device_profile.create('gzip', GROUPS)
        device_profile.create('GZIP', GROUPS)
        self.assertEqual('GZIP', device_profile.get('GZIP')['name'])

    def test_simultaneous_creations(self) -> None:
        results = base.race(
            [lambda: device_profile.create('gzip', GROUPS)] * base.RACERS
        )
        faults = [
            result for result in results if isinstance(result, Exception)
        ]
        self.assertEqual(
            [exceptions.Conflict] * (base.RACERS - 1),
            [type(fault) for fault in faults],
        )

    def test_list(self) -> None:
        for name in ('c', 'a', 'b'):
            device_profile.create(name, GROUPS)
        for names, found in (
            (None, ['c', 'a', 'b']),
            ([], []),
            (['b', 'nope', 'c'], ['c', 'b']),
        ):
            self.assertEqual(
                found,
                [profile['name'] for profile in device_profile.get_all(names)],
            )

    def test_groups_as_they_are_stored(self) -> None:
        uuid = device_profile.create('gzip', GROUPS)['uuid']
        device_profile.create('same', GROUPS)
        stored = device_profile.stored_groups('gzip')
        self.assertEqual(GROUPS, json.loads(stored or ''))
        self.assertEqual(stored, device_profile.stored_groups('same'))
        device_profile.update(uuid, GROUPS[:1])
        self.assertEqual(
            GROUPS[:1], json.loads(device_profile.stored_groups('gzip') or '')
        )
        self.assertIsNone(device_profile.stored_groups('nope'))

    def test_get_missing(self) -> None:
        uuid = uuidutils.generate_uuid()
        for key, text in ((uuid, f'uuid={uuid}'), ('nope', 'name=nope')):
            error = self.assertRaises(
                exceptions.NotFound, device_profile.get, key
            )
            self.assertEqual(
                f'Device Profile not found with {text}', str(error)
            )

    def test_update(self) -> None:
        created = device_profile.create('gzip', GROUPS, 'why')
        other = device_profile.create('other', GROUPS)
        updated = device_profile.update(
            created['uuid'], GROUPS[:1], name='gzip'
        )
        self.assertIsNotNone(updated['updated_at'])
        self.assertEqual(
            {
                **created,
                'groups': GROUPS[:1],
                'description': None,
                'updated_at': updated['updated_at'],
            },
            updated,
        )
        self.assertEqual([updated, other], device_profile.get_all())

    def test_update_with_another_name(self) -> None:
        created = device_profile.create('gzip', GROUPS)
        error = self.assertRaises(
            exceptions.Conflict,
            device_profile.update,
            created['uuid'],
            GROUPS[:1],
            name='other',
        )
        self.assertIn('gzip, not other', str(error))
        self.assertEqual([created], device_profile.get_all())

    def test_update_missing(self) -> None:
        uuid = uuidutils.generate_uuid()
        error = self.assertRaises(
            exceptions.NotFound, device_profile.update, uuid, GROUPS
        )
        self.assertIn(f'uuid={uuid}', str(error))

    def test_delete(self) -> None:
        profiles = [
            device_profile.create(name, GROUPS)
            for name in ('a', 'b', 'c', 'd')
        ]
        device_profile.delete_by_uuid(profiles[0]['uuid'])
        device_profile.delete_by_names(['b', 'c'])
        self.assertEqual([profiles[3]], device_profile.get_all())

    def test_what_is_in_use_is_not_deleted(self) -> None:
        profiles = [
            device_profile.create(name, GROUPS) for name in ('used', 'other')
        ]
        made = [
            arq['uuid']
            for _time in range(4)
            for arq in client_arqs.create('used', base.PROJECT)
        ]
        for delete, wanted in (
            (device_profile.delete_by_names, ['other', 'used']),
            (device_profile.delete_by_uuid, profiles[0]['uuid']),
        ):
            error = self.assertRaises(exceptions.Conflict, delete, wanted)
            self.assertIn(
                f'used is in use by accelerator requests {made[0]},',
                str(error),
            )
            self.assertEqual(10, str(error).count('-') // 4)
            self.assertEqual(profiles, device_profile.get_all())
        client_arqs.delete_by_uuids(made)
        device_profile.delete_by_names(['other', 'used'])

    def test_delete_missing_deletes_nothing(self) -> None:
        profile = device_profile.create('gzip', GROUPS)
        error = self.assertRaises(
            exceptions.NotFound,
            device_profile.delete_by_names,
            ['gzip', 'nope'],
        )
        self.assertIn('name=nope', str(error))
        self.assertRaises(
            exceptions.NotFound,
            device_profile.delete_by_uuid,
            uuidutils.generate_uuid(),
        )
        self.assertEqual([profile], device_profile.get_all())
