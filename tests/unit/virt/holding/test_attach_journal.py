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

import dataclasses
import json
import pathlib
import shutil

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import host_binding
from nova_accel.model import pci_address
from nova_accel.virt.holding import attach_journal

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
OTHER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a02'


def an_entry(
    step=attach_journal.AttachStep.HELD, role=arq_types.Role.ACTIVE, attempt=1
):
    return attach_journal.AttachEntry(
        INSTANCE,
        role,
        attempt,
        step,
        (
            arq_types.Arq(
                uuid='f4ad4b4e-4aeb-4a6a-8a2f-7f0f5a4e2b61',
                state=arq_types.State.BOUND,
                device_profile_name='gpu',
                device_profile_group_id=0,
                group={'resources:VGPU': '1'},
                device_rp_uuid='0e8c2b0e-6a67-4f0b-a7ac-0b0a5a3f1d11',
                handle=attach_handle.AttachHandle(
                    'b9d6d3b8-27a8-4bd9-96a1-f2a37a1f4c55',
                    pci_address.PciAddress(0, 0x81, 0, 0),
                    'nvidia-11',
                ),
            ),
        ),
    )


class TestOfBinding(testtools.TestCase):
    def test_what_a_host_adopted(self):
        entry = an_entry()
        binding = host_binding.Binding(
            INSTANCE, entry.role, entry.attempt, ('arq',), entry.arqs
        )
        self.assertEqual(entry, attach_journal.of_binding(binding))
        for missing in ('role', 'attempt'):
            error = self.assertRaises(
                exceptions.Conflict,
                attach_journal.of_binding,
                dataclasses.replace(binding, **{missing: None}),
            )
            self.assertIn('is not adopted', str(error))


class TestJournal(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.directory = (
            pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'journal'
        )
        self.journal = attach_journal.AttachJournal(self.directory)

    def reopened(self):
        """The journal as the next nova-compute finds it."""
        return attach_journal.AttachJournal(self.directory)

    def test_what_is_written_is_there_after_a_restart(self):
        self.journal.write(an_entry())
        self.assertEqual(
            an_entry(), self.reopened().read(INSTANCE, arq_types.Role.ACTIVE)
        )
        self.assertEqual([an_entry()], self.reopened().entries())

    def test_roles_are_apart(self):
        self.journal.write(an_entry())
        old = an_entry(role=arq_types.Role.OLD, attempt=7)
        self.journal.write(old)
        self.journal.remove(an_entry())
        self.assertIsNone(
            self.reopened().read(INSTANCE, arq_types.Role.ACTIVE)
        )
        self.assertEqual(
            old, self.reopened().read(INSTANCE, arq_types.Role.OLD)
        )

    def test_where_it_was_before_is_kept(self):
        moved = dataclasses.replace(
            an_entry(role=arq_types.Role.OLD), moved_from=arq_types.Role.ACTIVE
        )
        self.journal.write(moved)
        self.assertEqual([moved], self.reopened().entries())

    def test_all_that_it_knows_anything_of(self):
        self.assertEqual(set(), self.journal.keys())
        self.journal.write(
            dataclasses.replace(
                an_entry(attach_journal.AttachStep.RELEASING),
                moved_from=arq_types.Role.INCOMING,
            )
        )
        # A damaged entry says nothing: the API is asked.
        for name in (f'{INSTANCE}.old', f'{INSTANCE}.frob', 'x'):
            (self.directory / f'{name}.json').write_text('{"attem')
        self.assertEqual(
            {
                (INSTANCE, arq_types.Role.ACTIVE),
                (INSTANCE, arq_types.Role.INCOMING),
            },
            self.reopened().keys(),
        )

    def test_an_attempt_is_later_than_all_of_the_instance(self):
        self.assertEqual(1, self.journal.next_attempt(INSTANCE))
        self.journal.write(an_entry(role=arq_types.Role.OLD, attempt=7))
        self.journal.write(an_entry(attempt=3))
        self.assertEqual(8, self.journal.next_attempt(INSTANCE))
        self.assertEqual(1, self.journal.next_attempt('another'))

    def test_a_later_write_replaces(self):
        self.journal.write(an_entry(attach_journal.AttachStep.ACQUIRING))
        self.journal.write(an_entry(attach_journal.AttachStep.HELD, attempt=2))
        for journal_ in (self.journal, self.reopened()):
            self.assertEqual([an_entry(attempt=2)], journal_.entries())

    def test_removing_what_is_gone_is_fine(self):
        self.journal.remove(an_entry())
        self.assertEqual([], self.reopened().entries())

    def test_nobody_else_may_read_it(self):
        self.journal.write(an_entry())
        self.assertEqual(0o700, self.directory.stat().st_mode & 0o777)
        for path in self.directory.iterdir():
            self.assertEqual(0o600, path.stat().st_mode & 0o777)

    def test_a_write_cut_short_leaves_the_entry_before_it(self):
        self.journal.write(an_entry())
        (self.directory / 'x.new').write_text('{"attem')
        self.assertEqual([an_entry()], self.reopened().entries())

    def test_a_disk_that_refuses(self):
        shutil.rmtree(self.directory)
        for change in (self.journal.write, self.journal.remove):
            error = self.assertRaises(exceptions.DiskError, change, an_entry())
            self.assertIn(INSTANCE, str(error))
        self.assertEqual([], self.journal.entries())

    def test_what_is_damaged(self):
        self.journal.write(an_entry())
        self.assertEqual([], self.journal.damaged())
        for name in (f'{INSTANCE}.old', 'other'):
            (self.directory / f'{name}.json').write_text('{"attem')
        found = dict(self.reopened().damaged())
        self.assertEqual({INSTANCE, None}, set(found))
        self.assertIn(f'{INSTANCE}.old.json', found[INSTANCE])
        self.assertIn('asks the accelerator API', found[None])
        self.assertEqual(
            {arq_types.Role.OLD}, set(self.reopened().damaged_of(INSTANCE))
        )
        self.assertEqual({}, self.reopened().damaged_of('other'))

    def test_what_has_nothing_to_tell_is_put_aside(self):
        path = self.directory / f'{INSTANCE}.old.json'
        path.write_text('{"attem')
        journal = self.reopened()
        journal.put_aside(INSTANCE, arq_types.Role.OLD)
        self.assertIsNone(journal.read(INSTANCE, arq_types.Role.OLD))
        self.assertEqual([], self.reopened().damaged())
        self.assertEqual(
            '{"attem', path.with_name(f'{path.name}.damaged').read_text()
        )

    def assert_refused(self, journal, role, fault):
        error = self.assertRaises(
            exceptions.DeviceError, journal.read, INSTANCE, role
        )
        self.assertIn(fault, str(error))

    def test_a_file_under_another_name(self):
        """It is restored as another server's, or for another role."""
        self.journal.write(an_entry())
        good = self.directory / f'{INSTANCE}.active.json'
        for name in (f'{OTHER}.active', f'{INSTANCE}.old'):
            shutil.copy(good, self.directory / f'{name}.json')
        journal = self.reopened()
        self.assertEqual([an_entry()], journal.entries())
        self.assertEqual({OTHER, INSTANCE}, {u for u, _w in journal.damaged()})
        self.assert_refused(
            journal,
            arq_types.Role.OLD,
            f'by its content it is {INSTANCE}.active',
        )

    def test_what_no_host_has_written(self):
        good = an_entry().to_dict()
        (arq,) = good['arqs']
        for spoilt, fault in (
            ({'arqs': []}, 'arqs is empty, and the step is held'),
            ({'step': 'acquiring'}, 'arqs is not empty'),
            ({'moved_from': 'active'}, 'moved_from is the role active'),
            ({'arqs': [arq, arq]}, 'arqs has a device twice'),
            ({'arqs': [{**arq, 'group': None}]}, 'arqs[0].group is None'),
            ({'arqs': [{**arq, 'device_rp_uuid': []}]}, 'device_rp_uuid is'),
            ({'instance_uuid': [INSTANCE]}, 'instance_uuid is'),
            ({'attempt': None}, 'attempt is None'),
            ({'attempt': -1}, 'attempt is -1'),
            ({'attempt': 2**70}, 'attempt is'),
            ({'role': []}, 'role is []'),
            ({'moved_from': 'king'}, "moved_from is 'king'"),
        ):
            (self.directory / f'{INSTANCE}.active.json').write_text(
                json.dumps({**good, **spoilt})
            )
            self.assert_refused(self.reopened(), arq_types.Role.ACTIVE, fault)

    def test_two_that_claim_one_device(self):
        """No one can tell which of them is wrong."""
        one = an_entry()
        other = dataclasses.replace(one, instance_uuid=OTHER)
        for entry in (one, other):
            self.journal.write(entry)
        journal = self.reopened()
        self.assertEqual([], journal.entries())
        self.assert_refused(
            journal,
            arq_types.Role.ACTIVE,
            f'so does the entry of instance {OTHER} (active)',
        )

    def test_another_handle_at_the_same_address(self):
        one, other = (
            dataclasses.replace(
                an_entry(),
                instance_uuid=instance,
                arqs=(
                    dataclasses.replace(
                        an_entry().arqs[0],
                        handle=attach_handle.AttachHandle(
                            handle, pci_address.PciAddress(0, 0x81, 0, 0)
                        ),
                    ),
                ),
            )
            for instance, handle in ((INSTANCE, OTHER), (OTHER, INSTANCE))
        )
        self.assertEqual(
            {(INSTANCE, one.role), (OTHER, other.role)},
            set(attach_journal.disputed([one, other])),
        )

    def test_a_move_that_is_not_finished_is_no_dispute(self):
        left = an_entry()
        moved = dataclasses.replace(
            left,
            role=arq_types.Role.OLD,
            attempt=2,
            moved_from=arq_types.Role.ACTIVE,
        )
        self.assertEqual({}, attach_journal.disputed([left, moved]))
        for told in (
            dataclasses.replace(moved, moved_from=None),
            dataclasses.replace(moved, attempt=left.attempt),
        ):
            self.assertEqual(
                {(INSTANCE, left.role), (INSTANCE, moved.role)},
                set(attach_journal.disputed([left, told])),
            )

    def test_a_damaged_file_is_named_and_does_not_stop_the_others(self):
        self.journal.write(an_entry())
        path = self.directory / f'{INSTANCE}.old.json'
        for content in (
            '{"attem',
            '[]',
            '{}',
            json.dumps({**an_entry().to_dict(), 'step': 'dreaming'}),
        ):
            path.write_text(content)
            reopened = self.reopened()
            self.assertEqual([an_entry()], reopened.entries())
            error = self.assertRaises(
                exceptions.DeviceError,
                reopened.read,
                INSTANCE,
                arq_types.Role.OLD,
            )
            self.assertIn(str(path), str(error))
