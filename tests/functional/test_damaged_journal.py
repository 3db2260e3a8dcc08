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


"""A file of a host's journal parses, and is wrong. Only its server minds."""

import json
import shutil

from functional import base
from functional import one_server
from nova_accel.model import finding
from rig import compute_parts


class TestDamagedJournal(one_server.OneServerTestCase):
    """Another server of the host has accelerators, too."""

    def setUp(self):
        super().setUp()
        self.create_profile('other', [base.VGPU])
        self.vgpu = self.create_accel_flavor('other')
        self.other = self.boot(self.vgpu)
        self.others_devices = self.guest_devices(self.other)

    def entry(self, server):
        (path,) = self.state_path.glob(
            f'nova_accel/*/{server["id"]}.active.json'
        )
        return path

    def told(self):
        """The servers whose journal is said to be damaged."""
        board = compute_parts.current_state(
            self.computes[self.host].driver._accelerators
        )
        return {
            found.instance_uuid
            for found in board.findings.all()
            if found.kind is finding.Kind.JOURNAL
        }

    def assert_others_are_served(self):
        """Nova reports the host, boots, reboots and deletes."""
        self._run_periodics()
        self._reboot_server(self.other, hard=True)
        self.assertEqual(self.others_devices, self.guest_devices(self.other))
        new = self.boot(self.vgpu)
        self.assertEqual(1, len(self.guest_devices(new)))
        self._delete_server(new)
        self.assertEqual(self.devices, self.guest_devices(self.server))

    def assert_runs(self):
        """The server, again with what it had."""
        self.act('reboot', {'type': 'HARD'})
        self.wait_for_status('ACTIVE')
        self.assertEqual(self.devices, self.guest_devices(self.server))
        self.assertEqual(self.arqs_before, self.arqs(self.server))

    def test_what_parses_and_is_wrong(self):
        path = self.entry(self.server)
        good = json.loads(path.read_text())
        (first, *others) = good['arqs']
        for text in (
            json.dumps({**good, 'arqs': [{**first, 'group': None}, *others]}),
            json.dumps(
                {**good, 'arqs': [{**first, 'device_rp_uuid': []}, *others]}
            ),
            json.dumps({**good, 'attempt': None}),
            json.dumps({**good, 'instance_uuid': [good['instance_uuid']]}),
            json.dumps({**good, 'arqs': []}),
            '[' * 200_000,
        ):
            path.write_text(text)
            self.restart_compute_service(self.host)
            self._wait_for_assert(
                lambda: self.assertEqual({self.server['id']}, self.told())
            )
            self.assert_others_are_served()
            self.assert_runs()
            self.assertEqual(
                text, path.with_name(f'{path.name}.damaged').read_text()
            )
        self.delete(self.server, self.other)

    def test_while_the_api_is_away(self):
        """The server's guest is left as it is, and the others run."""
        path = self.entry(self.server)
        path.write_text('{"attem')
        with self.api_away():
            self.restart_compute_service(self.host)
            # Nova leaves a server ACTIVE whose guest still runs.
            self.act('reboot', {'type': 'HARD'})
            self.wait_for_status('ACTIVE')
            self.assertIn(
                'Reboot failed but instance is running',
                self.stdlog.logger.output,
            )
            self.assertEqual(self.devices, self.guest_devices(self.server))
            self.assertEqual('{"attem', path.read_text())
            self._reboot_server(self.other, hard=True)
        self.assert_runs()
        self.delete(self.server, self.other)

    def test_a_file_restored_under_another_name(self):
        """Neither a reboot nor a delete takes what is another server's."""
        shutil.copy(self.entry(self.other), self.entry(self.server))
        self.restart_compute_service(self.host)
        self._wait_for_assert(
            lambda: self.assertEqual({self.server['id']}, self.told())
        )
        self.assert_runs()
        self.assert_others_are_served()
        shutil.copy(self.entry(self.other), self.entry(self.server))
        self.restart_compute_service(self.host)
        self._delete_server(self.server)
        self.assertEqual(self.others_devices, self.guest_devices(self.other))
        self.assert_guest_has_its_arqs(self.other, (0, 'MDEV'))
        self._reboot_server(self.other, hard=True)
        self.assertEqual(self.others_devices, self.guest_devices(self.other))
        self.delete(self.other)
