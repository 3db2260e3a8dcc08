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

"""Servers that change between Cyborg's flavor key and ours, in use."""

import io
import json
import types

import fixtures
from nova import context as nova_context
from nova import objects
from nova.tests.functional.api import client as api_client

from functional import test_live_migration
from nova_accel.cmd import server
from nova_accel.model.profiles import device_profile

NATIVE = device_profile.FLAVOR_KEY
COMPAT = device_profile.CYBORG_FLAVOR_KEY


class FlavorKeyTestCase(test_live_migration.LiveMigrationTestCase):
    def setUp(self):
        super().setUp()
        self.flags(cyborg_compatible=True, group='nova_accel')
        # The tests' own databases are set up.
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.cmd.cells.connect', lambda: None)
        )

    def boot_with(self, key):
        self.flavor_key = key
        flavor = self.create_accel_flavor('vgpus', name=f'with {key}')
        self.server = self.boot(flavor, host='host1')
        self.before = self.guest_devices(self.server)
        return self.server['id']

    def change(self, command, *uuids, status=0):
        """:returns: uuid -> result"""
        out = io.StringIO()
        app = types.SimpleNamespace(
            stdout=out,
            stderr=io.StringIO(),
            options=types.SimpleNamespace(debug=True),
        )
        program = command(app, None)
        arguments = program.get_parser('server').parse_args(
            [*uuids, '-f', 'json']
        )
        self.assertEqual(status, program.run(arguments))
        return {
            row['Server']: row['Result'] for row in json.loads(out.getvalue())
        }

    def to_native(self, **kwargs):
        (result,) = self.change(
            server.ToNative, self.server['id'], **kwargs
        ).values()
        return result

    def to_compat(self, **kwargs):
        (result,) = self.change(
            server.ToCompat, self.server['id'], **kwargs
        ).values()
        return result

    def keys(self):
        """The keys of both of Nova's copies of the server's flavor."""
        context = nova_context.get_admin_context()
        spec = objects.RequestSpec.get_by_instance_uuid(
            context, self.server['id']
        )
        specs = self.api.get_server(self.server['id'])['flavor']['extra_specs']
        return [
            [key for key in (NATIVE, COMPAT) if key in found]
            for found in (specs, spec.flavor.extra_specs)
        ]

    def act(self, name, value=None, status='ACTIVE'):
        self.admin_api.post_server_action(self.server['id'], {name: value})
        self.server = self._wait_for_server_parameter(
            self.server, {'status': status, 'OS-EXT-STS:task_state': None}
        )


class TestToNative(FlavorKeyTestCase):
    def setUp(self):
        super().setUp()
        self.boot_with(COMPAT)

    def test_what_nova_forbids_is_possible_then(self):
        error = self.assertRaises(
            api_client.OpenStackApiException, self.act, 'suspend'
        )
        self.assertEqual(400, error.response.status_code)
        arqs = self.arqs(self.server)
        self.assertEqual('changed', self.to_native())
        self.assertEqual([[NATIVE], [NATIVE]], self.keys())
        self.assertEqual(arqs, self.arqs(self.server))
        self.assert_guest(self.server, 'host1', self.before)

        self._reboot_server(self.server, hard=True)
        self.assert_guest(self.server, 'host1', self.before)
        self.act('suspend', status='SUSPENDED')
        self.act('resume')
        self.assert_guest(self.server, 'host1', self.before)
        self.live_migrate(self.server)
        found = self.guest_devices(self.server)
        self.assert_guest(self.server, 'host2', found)
        self.flavor_key = NATIVE
        self.resize(self.server, self.both)
        self.confirm(self.server, 'host2')
        self.assert_guest(
            self.server, 'host1', self.guest_devices(self.server)
        )
        self.delete(self.server)

    def test_it_is_shelved_and_comes_back(self):
        self.to_native()
        self.act('shelve', status='SHELVED_OFFLOADED')
        self.act('unshelve')
        self.assertEqual(2, len(self.guest_devices(self.server)))
        self.assertEqual([[NATIVE], [NATIVE]], self.keys())
        self.delete(self.server)

    def test_again(self):
        self.to_native()
        self.assertEqual(f'has {NATIVE} already', self.to_native())

    def test_the_request_spec_alone_is_left(self):
        """As after a command that was killed in between."""
        self.to_native()
        context = nova_context.get_admin_context()
        spec = objects.RequestSpec.get_by_instance_uuid(
            context, self.server['id']
        )
        flavor = spec.flavor.obj_clone()
        flavor.extra_specs = {COMPAT: 'vgpus'}
        spec.flavor = flavor
        spec.save()
        self.assertEqual([[NATIVE], [COMPAT]], self.keys())
        self.assertEqual('changed', self.to_native())
        self.assertEqual([[NATIVE], [NATIVE]], self.keys())

    def test_a_server_at_which_nova_works(self):
        context = nova_context.get_admin_context()
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            context, self.server['id']
        )
        with nova_context.target_cell(context, mapping.cell_mapping) as cell:
            instance = objects.Instance.get_by_uuid(cell, self.server['id'])
            instance.task_state = 'rebooting'
            instance.save()
            self.assertIn('(rebooting)', self.to_native(status=1))
            instance.task_state = None
            instance.save()
            migration = objects.Migration(
                cell,
                uuid=self.server['id'],
                instance_uuid=self.server['id'],
                status='pre-migrating',
                migration_type='migration',
                source_compute='host1',
            )
            migration.create()
            self.assertIn('(a migration)', self.to_native(status=1))
            self.assertEqual([[COMPAT], [COMPAT]], self.keys())
            migration.status = 'error'
            migration.save()
        self.assertEqual('changed', self.to_native())

    def test_others_are_changed_though_one_cannot_be(self):
        unknown = '2e3b1c4d-0000-4000-8000-000000000001'
        plain = self._create_server(flavor_id=self.plain, networks='none')
        self.assertEqual(
            {
                unknown: f'not changed: Nova has no server {unknown}',
                plain['id']: (
                    f'not changed: its flavor has neither {NATIVE} nor '
                    f'{COMPAT}: it asks for no accelerators'
                ),
                self.server['id']: 'changed',
            },
            self.change(
                server.ToNative,
                unknown,
                plain['id'],
                self.server['id'],
                status=1,
            ),
        )


class TestToCompat(FlavorKeyTestCase):
    def setUp(self):
        super().setUp()
        self.boot_with(NATIVE)

    def test_nova_acts_on_it_then(self):
        self.assertEqual('changed', self.to_compat())
        self.assertEqual([[COMPAT], [COMPAT]], self.keys())
        error = self.assertRaises(
            api_client.OpenStackApiException, self.act, 'suspend'
        )
        self.assertEqual(400, error.response.status_code)
        self._reboot_server(self.server, hard=True)
        self.assert_guest(self.server, 'host1', self.before)
        self.act('os-stop', status='SHUTOFF')
        self.act('os-start')
        self.assert_guest(self.server, 'host1', self.before)
        self.delete(self.server)

    def test_a_suspended_server_could_not_be_resumed(self):
        self.act('suspend', status='SUSPENDED')
        self.assertIn('it is suspended', self.to_compat(status=1))
        self.assertEqual([[NATIVE], [NATIVE]], self.keys())
        self.act('resume')
        self.delete(self.server)

    def test_a_resized_server(self):
        self.resize(self.server, self.both)
        self.assertIn('it is resized', self.to_compat(status=1))
        self.revert(self.server)
        self.assertEqual([[NATIVE], [NATIVE]], self.keys())
