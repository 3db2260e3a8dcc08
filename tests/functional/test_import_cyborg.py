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

"""A cloud whose servers have got their devices from Cyborg."""

import json
import shutil
import time

import fixtures
from nova import context as nova_context
from nova import objects
import sqlalchemy as sa

from functional import base
from functional import import_command
from nova_accel.cmd import own_providers
from nova_accel.db import imports
from nova_accel.db.rows import host_rows
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.profiles import device_profile
from nova_accel.testing import devices
from rig.cyborg import made_up

HOST = 'host1'

_QAT_BUS = 0x83

#: How many functions of the card Cyborg has offered.
_FUNCTIONS = 4


class ImportCyborgTestCase(
    import_command.ImportCommand, base.AcceleratorTestCase
):
    """Two servers have two functions of a QAT card.

    They were made with our own driver. Then everything became as Cyborg would
    have made it: its providers, with the allocations, and its database. Nova's
    own driver runs the host.
    """

    flavor_key = device_profile.CYBORG_FLAVOR_KEY

    def setUp(self):
        super().setUp()
        self.create_profile('qat', [base.QAT])
        self.flavor = self.create_accel_flavor('qat')
        self.servers = [self.boot(self.flavor) for _number in range(2)]
        self.devices = {
            server['id']: self.guest_devices(server) for server in self.servers
        }
        self.node_uuid = self.compute_rp_uuids[HOST]
        self.set_driver('libvirt.LibvirtDriver')
        self.be_cyborgs()
        # It remembers our providers, which are gone now.
        self.restart_compute_service(HOST)

    def set_driver(self, name):
        self.flags(compute_driver=name)
        self.restart_compute_service(HOST)

    def be_cyborgs(self):
        cyborg = made_up.MadeUpCyborg()
        profile = cyborg.profile('qat', base.QAT)
        card = cyborg.device(
            HOST,
            _QAT_BUS,
            type='QAT',
            vendor='0x8086',
            std_board_info='{"product_id": "0x37c8"}',
        )
        arqs = {
            json.dumps(arq['attach_handle_info'], sort_keys=True): arq
            for server in self.servers
            for arq in self.arqs(server)
        }
        self.providers = []
        for number, info in enumerate(self.functions(arqs)):
            rp_uuid = cyborg.uuid()
            name = f'{HOST}_qat_{number}'
            self.make_provider(rp_uuid, name)
            [handle] = cyborg.deployable(
                card, 'CUSTOM_QAT', info, rp_uuid=rp_uuid, name=name
            )
            if info in arqs:
                instance_uuid = arqs[info]['instance_uuid']
                cyborg.arq(profile, handle, instance_uuid, hostname=HOST)
                self.allocate(instance_uuid, rp_uuid)
        self.tables.replace(cyborg.snapshot())
        with engine.writer() as connection:
            host_rows.delete(connection, HOST)
        shutil.rmtree(self.state_path / 'nova_accel')
        own_providers.remove(self.node_uuid)

    def functions(self, taken):
        """Those that servers have, and some that are free."""
        with engine.reader() as connection:
            infos = [
                json.dumps(info, sort_keys=True)
                for info in connection.scalars(
                    sa.select(schema.ATTACH_HANDLES.c.info)
                )
                if int(info['bus'], 16) == _QAT_BUS
            ]
        free = sorted(set(infos) - taken.keys())
        return sorted(taken) + free[: _FUNCTIONS - len(taken)]

    def make_provider(self, rp_uuid, name):
        self.placement.post(
            '/resource_providers',
            {
                'uuid': rp_uuid,
                'name': name,
                'parent_provider_uuid': self.node_uuid,
            },
            version='1.20',
        )
        self.placement.put(
            f'/resource_providers/{rp_uuid}/inventories',
            {
                'resource_provider_generation': 0,
                'inventories': {'CUSTOM_QAT': {'total': 1, 'max_unit': 1}},
            },
        )
        self.providers.append(rp_uuid)

    def allocate(self, consumer, rp_uuid):
        """Let the one unit that a server has be of this provider."""
        body = self.placement.get(
            f'/allocations/{consumer}', version='1.28'
        ).body
        allocations = {
            uuid: {'resources': of_provider['resources']}
            for uuid, of_provider in body['allocations'].items()
            if 'CUSTOM_QAT' not in of_provider['resources']
        }
        allocations[rp_uuid] = {'resources': {'CUSTOM_QAT': 1}}
        answer = self.placement.put(
            f'/allocations/{consumer}',
            {**body, 'allocations': allocations},
            version='1.28',
        )
        self.assertEqual(204, answer.status)

    def switch(self, status=0):
        self.set_driver('nova_accel.LibvirtDriver')
        self.settle(HOST)
        return self.run_step('--host', HOST, status=status)

    def go_back(self, status=0):
        self.set_driver('libvirt.LibvirtDriver')
        self.flags(host_silence_s=1, group='nova_accel')
        time.sleep(2.1)
        return self.run_step('--undo', '--host', HOST, status=status)

    def in_placement(self):
        """Inventories of Cyborg's providers, and all servers' allocations."""
        return {
            **{
                rp_uuid: self.placement.get(
                    f'/resource_providers/{rp_uuid}/inventories'
                ).body.get('inventories')
                for rp_uuid in self.providers
            },
            **{
                server['id']: {
                    uuid: of_provider['resources']
                    for uuid, of_provider in self.placement.get(
                        f'/allocations/{server["id"]}'
                    )
                    .body['allocations']
                    .items()
                }
                for server in self.servers
            },
        }

    def ours(self):
        with engine.reader() as connection:
            return {
                table.name: sorted(
                    map(str, connection.execute(sa.select(table)))
                )
                for table in (
                    schema.ARQS,
                    schema.DEVICES,
                    schema.DEPLOYABLES,
                    schema.ATTACH_HANDLES,
                )
            }

    def assert_guests_have_their_devices(self):
        for server in self.servers:
            self.assertEqual(
                self.devices[server['id']], self.guest_devices(server)
            )


class TestImport(ImportCyborgTestCase):
    def test_a_dry_run_changes_nothing(self):
        before = self.ours()
        printed = self.run_step('--dry-run')
        self.assertEqual(before, self.ours())
        self.assertEqual({}, imports.get_hosts())
        self.assertEqual(self.run_step(), printed)
        self.assertNotEqual(before, self.ours())

    def test_what_is_printed(self):
        directory = self.useFixture(fixtures.TempDir()).path
        printed = self.run_step('--device-specs', directory)
        self.assertIn(
            f'imported; devices: 1, attach handles: {_FUNCTIONS}, ARQs: 2',
            {each['result'] for each in printed['results']},
        )
        lines = printed['device_specs'][HOST]
        self.assertEqual(
            [{'driver': 'qat'}] * _FUNCTIONS,
            [{'driver': json.loads(line)['driver']} for line in lines],
        )
        with open(f'{directory}/{HOST}.conf', encoding='utf-8') as file:
            self.assertEqual(
                ['[nova_accel]', *(f'device_spec = {line}' for line in lines)],
                file.read().splitlines(),
            )

    def test_nova_goes_on_with_a_host_that_is_not_switched(self):
        self.run_step()
        first, second = self.servers
        self._reboot_server(first, hard=True)
        self.assert_guests_have_their_devices()
        self._delete_server(second)
        self.assertEqual([], self.arqs(second))
        self.assertEqual(1, len(self.arqs(first)))
        # It cannot get a new one.
        self.boot(self.flavor, expected_state='ERROR')
        before = self.ours()
        self.run_step()
        self.assertEqual(before, self.ours())

    def test_a_host_that_has_not_reported(self):
        self.assertIn(
            'is not imported', self.run_step('--host', HOST, status=2)
        )
        self.run_step()
        before = self.in_placement()
        self.assertIn(
            'has not reported', self.run_step('--host', HOST, status=2)
        )
        self.assertEqual(before, self.in_placement())

    def test_what_cannot_be_done(self):
        for arguments, words in (
            (['--undo'], '--undo needs --host'),
            (['--finish', '--host', HOST], 'for all hosts'),
            (['--dry-run', '--host', HOST], 'for all hosts'),
            (['--host', 'host9'], 'node host9'),
        ):
            self.assertIn(words, self.run_step(*arguments, status=2))

    def test_a_busy_server(self):
        server = self.servers[0]
        self.set_task_state(server, 'rebooting')
        printed = self.run_step(status=1)
        [refusal] = [
            each for each in printed['results'] if not each['is_done']
        ]
        self.assertIn(server['id'], refusal['result'])
        self.assertEqual({}, imports.get_hosts())
        self.set_task_state(server, None)
        self.run_step()

    def set_task_state(self, server, task_state):
        instance = objects.Instance.get_by_uuid(
            nova_context.get_admin_context(), server['id']
        )
        instance.task_state = task_state
        instance.save()


class TestSwitch(ImportCyborgTestCase):
    def setUp(self):
        super().setUp()
        self.theirs = self.in_placement()
        self.rows = self.tables.rows()
        self.run_step()

    def assert_switched(self):
        found = self.in_placement()
        for rp_uuid in self.providers:
            self.assertEqual({}, found[rp_uuid])
        [ours] = {
            provider['uuid']
            for provider in self.accelerator_providers(HOST)
            if 'CUSTOM_QAT' in provider['inventory']
        }
        for server in self.servers:
            self.assertEqual(
                {'CUSTOM_QAT': 1}, found[server['id']].get(ours), found
            )
            self.assertEqual(
                {ours}, {arq['device_rp_uuid'] for arq in self.arqs(server)}
            )
        self.assert_guests_have_their_devices()

    def assert_as_before(self):
        self.assertEqual(self.theirs, self.in_placement())
        self.assertEqual(self.rows, self.tables.rows())
        self.assertEqual({}, imports.get_hosts())
        self.assertEqual([], self.accelerator_providers(HOST))
        self.assert_guests_have_their_devices()

    def test_there_and_back(self):
        self.switch()
        self.assert_switched()
        before = self.in_placement()
        self.run_step('--host', HOST)
        self.assertEqual(before, self.in_placement())
        self.go_back()
        self.assert_as_before()
        self.run_step('--undo', '--host', HOST)
        self.assert_as_before()

    def test_servers_of_all_units(self):
        """All units that are free can be given away, and none twice."""
        self.switch()
        # Our lines match more functions than Cyborg's agent did.
        functions = sum(
            provider['inventory'].get('CUSTOM_QAT', 0)
            for provider in self.accelerator_providers(HOST)
        )
        new = [
            self.boot(self.flavor)
            for _number in range(functions - len(self.servers))
        ]
        self.boot(self.flavor, expected_state='ERROR')
        given = [
            device
            for server in (*self.servers, *new)
            for device in self.guest_devices(server)
        ]
        self.assertLessEqual(_FUNCTIONS, functions)
        self.assertEqual(functions, len(set(given)))
        refusal = self.go_back(status=2)
        for server in new:
            self.assertIn(server['id'], refusal)

    def test_killed_at_any_call_to_placement(self):
        self.set_driver('nova_accel.LibvirtDriver')
        self.settle(HOST)
        self.assertLess(2, self.kill_and_repeat('--host', HOST))
        self.assert_switched()
        self.set_driver('libvirt.LibvirtDriver')
        self.flags(host_silence_s=1, group='nova_accel')
        time.sleep(2.1)
        self.assertLess(2, self.kill_and_repeat('--undo', '--host', HOST))
        self.assert_as_before()

    def test_cyborg_is_told_of_a_server_that_was_deleted(self):
        self.switch()
        gone = self.servers.pop()
        self._delete_server(gone)
        self.go_back()
        self.assertEqual(
            1, len(self.tables.rows()['extended_accelerator_requests'])
        )
        self.assertEqual(
            {
                rp_uuid: inventory
                for rp_uuid, inventory in self.theirs.items()
                if rp_uuid != gone['id']
            },
            self.in_placement(),
        )

    def test_a_unit_that_the_host_does_not_report(self):
        spec = [devices.GPU_SPEC]
        self.flags(device_spec=spec, group='nova_accel')
        printed = self.switch(status=1)
        for server in self.servers:
            self.assertIn(
                f'server {server["id"]}',
                [each['what'] for each in printed['results']],
            )
        self.assertEqual(self.theirs, self.in_placement())

    def test_an_allocation_without_an_arq(self):
        self.switch()
        stranger = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
        rp_uuid = self.providers[-1]
        generation = self.placement.get(f'/resource_providers/{rp_uuid}').body[
            'generation'
        ]
        self.placement.put(
            f'/resource_providers/{rp_uuid}/inventories',
            {
                'resource_provider_generation': generation,
                'inventories': {'CUSTOM_QAT': {'total': 1}},
            },
        )
        self.placement.put(
            f'/allocations/{stranger}',
            {
                'allocations': {rp_uuid: {'resources': {'CUSTOM_QAT': 1}}},
                'project_id': 'project',
                'user_id': 'user',
                'consumer_generation': None,
            },
            version='1.28',
        )
        printed = self.run_step('--host', HOST, status=1)
        self.assertEqual(
            [f'consumer {stranger}'],
            [each['what'] for each in printed['results']],
        )
        self.assertIn(HOST, self.run_step('--finish', status=2))

    def test_the_end(self):
        self.assertIn(HOST, self.run_step('--finish', status=2))
        self.switch()
        printed = self.run_step('--finish')
        self.assertIn('SIGHUP', printed['results'][-1]['result'])
        for rp_uuid in self.providers:
            self.assertEqual(
                404,
                self.placement.get(f'/resource_providers/{rp_uuid}').status,
            )
        self.run_step('--finish')
        self.assertIn('no way back', self.go_back(status=2))
