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

"""A move from Cyborg by the command itself, of all that two hosts have.

Nova's own driver and client have made the servers. Then Cyborg's database has
what they have, and ours nothing.
"""

import contextlib
import json
import shutil
import time

import fixtures
import sqlalchemy as sa
import tenacity

from functional import import_command
from functional import taken_over
from nova_accel.db import imports
from nova_accel.db.rows import host_rows
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.virt.publishing import publication
from rig.cyborg import made_up

_ARQS = schema.ARQS
_HANDLES = schema.ATTACH_HANDLES
_PROFILES = schema.DEVICE_PROFILES


class MovedTestCase(
    import_command.ImportCommand, taken_over.TakenOverTestCase
):
    def setUp(self):
        super().setUp()
        self.need_mdevs_of_cyborg()
        self.flags(instances=-1, cores=-1, ram=-1, group='quota')

    def be_cyborgs(self):
        """Cyborg's database gets what ours has, and ours loses it."""
        cyborg = made_up.MadeUpCyborg()
        uuids = {}
        with engine.writer() as connection:
            profiles = {
                row.name: cyborg.profile(row.name, *row.groups)
                for row in connection.execute(sa.select(_PROFILES))
            }
            for providers in self.cyborgs.values():
                for provider in providers:
                    uuids |= self._add_provider(
                        connection, cyborg, provider, profiles
                    )
            for host in self.both_hosts:
                host_rows.delete(connection, host)
            connection.execute(sa.delete(_PROFILES))
        found = cyborg.snapshot()
        self.tables.replace(
            found._replace(
                handles=tuple(
                    handle._replace(uuid=uuids[handle.id])
                    for handle in found.handles
                )
            )
        )
        self.flags(cyborg_compatible=True, group='nova_accel')

    @staticmethod
    def _add_provider(connection, cyborg, provider, profiles):
        """:returns: the id of each attach handle -> its uuid"""
        handles = connection.execute(
            sa.select(_HANDLES)
            .join(schema.DEPLOYABLES)
            .where(schema.DEPLOYABLES.c.rp_uuid == provider.uuid)
            .order_by(_HANDLES.c.uuid)
        ).all()
        device = cyborg.device(
            provider.hostname, int(provider.address.split(':')[1], 16)
        )
        ids = cyborg.deployable(
            device,
            provider.resource_class,
            *(json.dumps(handle.info) for handle in handles),
            attach_type=handles[0].type,
            rp_uuid=provider.uuid,
            name=provider.name,
        )
        for number, handle in zip(ids, handles, strict=True):
            for arq in connection.execute(
                sa.select(_ARQS).where(_ARQS.c.uuid == handle.arq_uuid)
            ):
                cyborg.arq(
                    profiles[arq.device_profile_name],
                    number,
                    arq.instance_uuid,
                    uuid=arq.uuid,
                    project_id=arq.project_id,
                    device_profile_group_id=arq.device_profile_group_id,
                    hostname=arq.hostname,
                )
        return dict(zip(ids, [handle.uuid for handle in handles], strict=True))

    def boot_all(self, host):
        """Two servers with functions, and two that have a whole card."""
        return [
            self.boot_with_units(host, 'CUSTOM_QAT', 2),
            self.boot_with_units(host, 'FPGA'),
            self.boot_with_units(host, 'VGPU', 8),
            self.boot_with_units(host, 'VGPU', 8),
        ]

    def assert_they_have(self, before, *servers):
        """The same devices as before, and no one else has them."""
        self.assertEqual(
            {server['id']: before[server['id']] for server in servers},
            self.devices_of(*servers),
        )
        for host in self.both_hosts:
            self.assert_none_twice(host)

    def hard_reboot(self, *servers):
        for server in servers:
            self._reboot_server(server, hard=True)


class TestMove(MovedTestCase):
    def test_one_host_after_the_other(self):
        here, there = map(self.boot_all, self.both_hosts)
        before = self.devices_of(*here, *there)
        self.be_cyborgs()
        self.run_step()
        self.assert_nothing_is_wrong()
        self.hard_reboot(here[0], there[2])
        self.assert_they_have(before, *here, *there)

        self.switch('host1')
        self.assert_nothing_is_wrong()
        self.run_step('--host', 'host1')
        self.assert_nothing_is_wrong()
        self.assert_placement_agrees('host1')
        for server in here:
            self.assert_taken_over(server, before[server['id']])
        self.hard_reboot(*here, *there)
        self.assert_they_have(before, *here, *there)
        self.assert_nothing_is_wrong()

        more = self.boot_what_is_left('host1', QAT=6)
        self.assert_they_have(before, *here, *there)
        self._delete_server(here.pop())
        self._delete_server(there.pop())
        self.settle('host1')
        self._run_periodics()
        self.assert_nothing_is_wrong()
        more += [self.boot_with_units('host1', 'VGPU', 8)]
        self.assert_no_unit_left('host1', 'VGPU')

        # Nova has left the mediated devices of a server that it has deleted.
        self.switch('host2')
        self.run_step('--host', 'host2')
        self.assert_placement_agrees('host2')
        self.assert_nothing_is_wrong()
        more += self.boot_what_is_left('host2', QAT=6, VGPU=8)
        self.assert_they_have(before, *here, *there)

        printed = self.run_step('--finish')
        # Until Nova forgets Cyborg's providers, it cannot delete a server.
        early = here.pop()
        self.api.delete_server(early['id'])
        self._wait_for_state_change(early, 'ERROR')
        for host in self.both_hosts:
            self.assertIn(
                f'host {host}', [each['what'] for each in printed['results']]
            )
            # What SIGHUP calls.
            self.computes[host].manager.reset()
        self.delete_again(early)
        self.assert_nothing_is_wrong()
        self.hard_reboot(*here, *there)
        self.assert_they_have(before, *here, *there)
        self.delete(*here, *there, *more)
        for host in self.both_hosts:
            self.assertFalse(self.mdevs(host))
        self.assert_nothing_is_wrong()

    def delete_again(self, server):
        """Delete a server that is in ERROR."""
        self.api.delete_server(server['id'])
        tenacity.Retrying(
            retry=tenacity.retry_if_result(
                lambda servers: server['id'] in [it['id'] for it in servers]
            ),
            wait=tenacity.wait_fixed(0.2),
            stop=tenacity.stop_after_delay(30),
        )(self.api.get_servers)

    def boot_what_is_left(self, host, QAT, VGPU=0):
        """Servers with all units that are free, and not one more."""
        more = [
            self.boot_with_units(host, 'CUSTOM_QAT', QAT),
            self.boot_with_units(host, 'FPGA'),
        ]
        if VGPU:
            more.append(self.boot_with_units(host, 'VGPU', VGPU))
        for resource_class in ('CUSTOM_QAT', 'FPGA', 'VGPU'):
            self.assert_no_unit_left(host, resource_class)
        self.assert_none_twice(host)
        self.assert_placement_agrees(host)
        self.assert_nothing_is_wrong()
        return more


class TestBack(MovedTestCase):
    def test_from_a_full_card(self):
        """A server is deleted while its host is ours; then it is Cyborg's."""
        servers = self.boot_all('host1')
        before = self.devices_of(*servers)
        self.be_cyborgs()
        theirs = self.tables.rows()
        self.run_step()
        self.switch('host1')
        self.run_step('--host', 'host1')
        self._delete_server(servers.pop())
        self.give_back('host1')
        self.assert_they_have(before, *servers)
        self.assertEqual({'host2': False}, imports.get_hosts())
        self.assert_nothing_is_wrong()
        self.assertEqual([], self.accelerator_providers('host1'))
        rows = self.tables.rows()
        for table, missing in (
            ('devices', 0),
            ('extended_accelerator_requests', 8),
        ):
            self.assertEqual(missing, len(theirs[table]) - len(rows[table]))

        # It is imported again, so that Nova's own driver can reboot servers.
        self.run_step()
        self.hard_reboot(*servers)
        self.assert_they_have(before, *servers)
        self.assert_nothing_is_wrong()
        self.switch('host1')
        self.run_step('--host', 'host1')
        self.assert_placement_agrees('host1')
        servers.append(self.boot_with_units('host1', 'VGPU', 8))
        self.assert_none_twice('host1')
        self.assert_no_unit_left('host1', 'VGPU')
        self.delete(*servers)
        self.assertFalse(self.mdevs('host1'))
        self.assert_nothing_is_wrong()

    def give_back(self, host):
        """As the manual has it."""
        self.flags(compute_driver='libvirt.LibvirtDriver')
        self.flags(host_silence_s=1, group='nova_accel')
        self.restart_compute_service(host)
        time.sleep(2.1)
        self.run_step('--undo', '--host', host)
        shutil.rmtree(self.state_path / 'nova_accel')
        self.flags(host_silence_s=180, group='nova_accel')


class TestTooEarly(MovedTestCase):
    def test_placement_does_not_know_our_providers_yet(self):
        """Nova tells it of them up to a minute after the host's report."""
        servers = [
            self.boot_with_units('host1', 'FPGA'),
            self.boot_with_units('host1', 'CUSTOM_QAT'),
        ]
        before = self.devices_of(*servers)
        self.be_cyborgs()
        self.run_step()
        self.flags(compute_driver='nova_accel.LibvirtDriver')
        with self.nothing_found(), self.api_away():
            self.restart_compute_service('host1')
        self.settle('host1')
        self.assertEqual([], self.accelerator_providers('host1'))
        printed = self.run_step('--host', 'host1', status=1)
        left = {each['what']: each['result'] for each in printed['results']}
        for server in servers:
            self.assertIn('does not exist', left[f'server {server["id"]}'])
        self._run_periodics()
        self.run_step('--host', 'host1')
        self.assert_placement_agrees('host1')
        for server in servers:
            self.assert_taken_over(server, before[server['id']])
        self.delete(*servers)

    @contextlib.contextmanager
    def nothing_found(self):
        """No device is found while the body runs."""
        real = publication.Publisher.refresh
        found = False

        def refresh(publisher):
            if found:
                real(publisher)

        # The steps of a cycle are read once.
        self.useFixture(
            fixtures.MonkeyPatch(
                f'{publication.__name__}.Publisher.refresh', refresh
            )
        )
        yield
        found = True
