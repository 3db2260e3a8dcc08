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


"""A file of a host's state is damaged: other servers do not notice.

Each case damages one field of one file, or has it under another name, and
restarts nova-compute. Then other servers are hard-rebooted, booted and
deleted, and in the end so is the server that the file was about.
"""

import contextlib
import json
import os
import pathlib
import shutil

import hypothesis
from hypothesis import strategies as st
from nova import conf as nova_conf
from nova.compute import vm_states
import testtools

from crash import board_cloud
from crash import damages
from crash import tenants_bitstreams
from nova_accel.model import finding
from nova_accel.model.profiles import device_profile
from nova_accel.testing import fake_fpga
from rig import compute_parts

_NATIVE = device_profile.FLAVOR_KEY

_CASES = {'quick': 30, 'full': 500}[
    os.environ.get('HYPOTHESIS_PROFILE', 'quick')
]


class DamagedJournalTestCase(testtools.TestCase):
    """A host with NVSwitches, and two servers with all kinds of devices."""

    @contextlib.contextmanager
    def case(self):
        """A cloud of its own, with a victim and another server."""
        with (
            fake_fpga.Programming(),
            board_cloud.BoardCloud() as self.cloud,
            tenants_bitstreams.TenantsBitstreams() as images,
        ):
            self.host, _other = self.cloud.hosts
            self.state = pathlib.Path(nova_conf.CONF.state_path, 'nova_accel')
            region_uuid = next(
                region.type_uuid
                for device in self.board().view.devices
                for region in device.regions
            )
            yield (
                self.boot(
                    'both',
                    **{
                        'accel:bitstream_id': images.upload(
                            region_uuid=region_uuid
                        )
                    },
                ),
                self.boot('both'),
            )

    def board(self):
        return compute_parts.current_state(self.host.driver._accelerators)

    def boot(self, profile, **asked):
        server = self.cloud.nova.boot(self.host, _NATIVE, profile, asked)
        self.assertEqual(vm_states.ACTIVE, server.vm_state)
        return server

    def files(self):
        """Those of the host that are about a server, or about none."""
        return sorted(
            path
            for path in self.state.rglob('*.json')
            if 'host2' not in str(path)
        )

    def entry(self, server, role='active'):
        return self.state / 'host1' / f'{server.uuid}.{role}.json'

    def devices(self, server):
        guests = compute_parts.reconciler(
            self.host.driver._accelerators, self.host.host
        )._guests
        return guests.devices().get(server.uuid)

    def told(self):
        return [
            found
            for found in self.board().findings.all()
            if found.kind is finding.Kind.JOURNAL
        ]

    def restart(self, *paths):
        """nova-compute starts, and tells of the damaged files."""
        self.cloud.forget_errors()
        self.host.start()
        for path in paths:
            self.assertIn(str(path), self.cloud._log.output)
            self.assertTrue(
                any(f'{path} ' in found.words for found in self.told())
            )

    def serve_others(self, victim, others):
        """What is done to them succeeds, and the victim's guest is left."""
        had = {
            server.uuid: self.devices(server) for server in (victim, *others)
        }
        for server in others:
            self.cloud.nova.hard_reboot(server)
            self.assertEqual(vm_states.ACTIVE, server.vm_state)
            self.assertTrue(self.host.runs(server))
        # A region that no one can trust is reserved.
        self.host.publish()
        new = self.boot('vgpu')
        self.assertTrue(self.host.runs(new))
        self.cloud.nova.delete(new)
        self.assertEqual(
            had,
            {
                server.uuid: self.devices(server)
                for server in (victim, *others)
            },
        )
        self.assertTrue(self.host.runs(victim))

    def end(self, victim, others):
        """The host has learnt what it needs, and nothing is left."""
        self.cloud.reconcile_placement()
        self.cloud.forget_errors()
        self.assertEqual([], self.cloud.drift())
        for server in (victim, *others):
            self.cloud.nova.hard_reboot(server)
            self.cloud.nova.delete(server)
        self.cloud.reconcile_placement()
        self.cloud.forget_errors()
        self.assertEqual([], self.cloud.leftovers())


class TestDamagedFields(DamagedJournalTestCase):
    @hypothesis.settings(
        max_examples=_CASES,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(*[st.integers(0, 9999)] * 4)
    def test_others_are_served_and_it_is_told(
        self, number, kind, place, wrong
    ):
        with self.case() as (victim, other):
            # In an order that is the same in each run.
            files = sorted(self.files(), key=lambda path: path.stat().st_ino)
            path = files[number % len(files)]
            if kind % 6 == 5:
                files.remove(path)
                source = files[place % len(files)]
                content, what = source.read_bytes(), f'a copy of {source}'
            else:
                content, what = damages.damaged(
                    path.read_text(), kind, place, wrong
                )
            hypothesis.note(f'{path}: {what}')
            path.write_bytes(content)
            self.restart(path)
            self.serve_others(victim, [other])
            self.end(victim, [other])


class TestDamagedEntries(DamagedJournalTestCase):
    def test_the_file_of_another_server(self):
        """A reboot and a delete take nothing that is the other's."""
        for act in ('hard_reboot', 'delete'):
            with self.case() as (victim, other):
                path = self.entry(victim)
                shutil.copy(self.entry(other), path)
                self.restart(path)
                had = self.devices(other)
                getattr(self.cloud.nova, act)(victim)
                self.assertEqual(had, self.devices(other))
                self.assertTrue(self.host.runs(other))
                self.cloud.forget_errors()
                self.cloud.reconcile_placement()
                self.assertEqual([], self.cloud.drift())
                self.assertEqual(act == 'hard_reboot', self.host.runs(victim))

    def test_two_entries_that_claim_one_device(self):
        with self.case() as (victim, other):
            path = self.entry(victim)
            wrong = json.loads(path.read_text())
            wrong['arqs'] = json.loads(self.entry(other).read_text())['arqs']
            path.write_text(json.dumps(wrong))
            self.restart(path, self.entry(other))
            self.serve_others(victim, [other])
            self.end(victim, [other])

    def test_while_the_api_is_away(self):
        """The guest is left as it is, and so is what it has."""
        with self.case() as (victim, other):
            path = self.entry(victim)
            value = json.loads(path.read_text())
            value['arqs'][0]['group'] = None
            path.write_text(json.dumps(value))
            self.cloud._api.refuse = True
            self.restart(path)
            had = self.devices(victim)
            for server, vm_state in (
                (victim, vm_states.ERROR),
                (other, vm_states.ACTIVE),
            ):
                self.cloud.nova.hard_reboot(server)
                self.assertEqual(vm_state, server.vm_state)
                self.assertTrue(self.host.runs(server))
            self.assertEqual(had, self.devices(victim))
            self.cloud._api.refuse = False
            self.end(victim, [other])

    def test_a_delete_while_the_api_is_away(self):
        """What it had is given back when the API has told what that is."""
        with self.case() as (victim, other):
            path = self.entry(victim)
            path.write_text('[' * 200_000)
            self.cloud._api.refuse = True
            self.restart(path)
            self.cloud.nova.delete(victim)
            self.assertEqual(vm_states.ACTIVE, other.vm_state)
            self.cloud._api.refuse = False
            self.cloud.forget_errors()
            self.host.driver._accelerators.cycle.run()
            self.cloud.reconcile_placement()
            self.assertEqual([], self.cloud.drift())
            self.assertTrue(self.host.runs(other))
