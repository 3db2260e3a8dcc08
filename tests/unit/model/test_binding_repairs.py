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


from collections.abc import Collection
from collections.abc import Mapping
import dataclasses

import testtools

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import binding_repairs
from nova_accel.model import host_binding
from nova_accel.model import nova_server
from nova_accel.model import pci_address

HERE, THERE = 'here', 'there'
ACTIVE, OLD, INCOMING = (
    arq_types.Role.ACTIVE,
    arq_types.Role.OLD,
    arq_types.Role.INCOMING,
)
SERVER = 'server'
STAYS = nova_server.Server(HERE)
GONE_AWAY = nova_server.Server(THERE)
Step = binding_repairs.RepairStep


def held(
    role: arq_types.Role | None = ACTIVE,
    instance: str = SERVER,
    whole: bool = True,
) -> host_binding.Binding:
    uuid = f'arq of {instance}, {role}'
    request = arq_types.Arq(
        uuid,
        arq_types.State.BOUND,
        'fpga',
        0,
        {},
        'rp',
        attach_handle.AttachHandle(
            f'handle of {uuid}', pci_address.PciAddress(0, 0x81, 0, 0)
        ),
    )
    return host_binding.Binding(
        instance,
        role,
        None if role is None else 1,
        (uuid,) if whole else (uuid, 'failed'),
        (request,),
    )


def host(
    in_journal: Collection[host_binding.Binding] = (),
    in_api: Collection[host_binding.Binding] | None = None,
    servers: Mapping[str, nova_server.Server] | None = None,
    guests: Collection[str] = (),
) -> binding_repairs.HostBindings:
    """A host whose API has what its journal has, unless said otherwise."""
    return binding_repairs.HostBindings(
        name=HERE,
        held=in_journal,
        journaled={
            (each.instance_uuid, each.role)
            for each in in_journal
            if each.role is not None
        },
        listed=in_journal if in_api is None else in_api,
        servers=servers or {},
        guests=guests,
    )


def steps(
    found: binding_repairs.HostBindings,
) -> list[tuple[Step, arq_types.Role | None]]:
    return [(repair.step, repair.binding.role) for repair in found.repairs()]


class TestWhyUnneeded(testtools.TestCase):
    def test_who_needs_it(self) -> None:
        migrating = nova_server.Server(THERE, is_migrating=True)
        for server, unneeded in (
            (None, {ACTIVE, OLD, INCOMING, None}),
            (STAYS, {OLD}),
            (GONE_AWAY, {ACTIVE, OLD, INCOMING, None}),
            (nova_server.Server(None), {ACTIVE, OLD, INCOMING, None}),
            (migrating, set()),
            (dataclasses.replace(migrating, host=HERE), set()),
            # What was for a migration does not wait for the task's end.
            (
                nova_server.Server(THERE, task_state='migrating'),
                {OLD, INCOMING},
            ),
            # Nova ends the migration of a revert before its source acts.
            (
                nova_server.Server(THERE, task_state='resize_reverting'),
                {INCOMING},
            ),
            (nova_server.Server(None, 'building'), {OLD, INCOMING}),
        ):
            self.assertEqual(
                unneeded,
                {
                    role
                    for role in (ACTIVE, OLD, INCOMING, None)
                    if binding_repairs.why_unneeded(role, server, HERE)
                },
                server,
            )

    def test_says_where_the_instance_is(self) -> None:
        self.assertIn(
            THERE, binding_repairs.why_unneeded(ACTIVE, GONE_AWAY, HERE) or ''
        )
        self.assertIn(
            'on no host',
            binding_repairs.why_unneeded(
                ACTIVE, nova_server.Server(None), HERE
            )
            or '',
        )


class TestWhatTheJournalHas(testtools.TestCase):
    def test_nothing_is_wrong(self) -> None:
        migrating = nova_server.Server(HERE, is_migrating=True)
        for role, server in (
            (ACTIVE, STAYS),
            (OLD, migrating),
            (INCOMING, migrating),
        ):
            self.assertEqual(
                [], steps(host([held(role)], servers={SERVER: server}))
            )

    def test_what_unneeded_is_released(self) -> None:
        for role in arq_types.Role:
            for servers in ({}, {SERVER: GONE_AWAY}):
                self.assertEqual(
                    [(Step.RELEASE, role)],
                    steps(host([held(role)], servers=servers)),
                )

    def test_the_api_does_not_matter_for_that(self) -> None:
        self.assertEqual(
            [(Step.RELEASE, ACTIVE)], steps(host([held()], in_api=[]))
        )

    def test_a_guest_keeps_what_it_may_have(self) -> None:
        for role, expected in (
            (ACTIVE, []),
            (INCOMING, []),
            (OLD, [(Step.RELEASE, OLD)]),
        ):
            self.assertEqual(
                expected, steps(host([held(role)], guests={SERVER}))
            )

    def test_a_revert_that_was_not_finished(self) -> None:
        resized = dataclasses.replace(STAYS, is_resized=True)
        for server, step in ((STAYS, Step.ACTIVATE), (resized, Step.RELEASE)):
            self.assertEqual(
                [(step, OLD)],
                steps(host([held(OLD)], servers={SERVER: server})),
            )

    def test_a_live_migration_that_was_not_finished(self) -> None:
        self.assertEqual(
            [(Step.ACTIVATE, INCOMING)],
            steps(
                host(
                    [held(INCOMING)], servers={SERVER: STAYS}, guests={SERVER}
                )
            ),
        )

    def test_a_second_set_of_a_guest_here(self) -> None:
        """One that came live has what was acquired last."""
        for role, attempt, step in (
            (OLD, 0, Step.RELEASE),
            (OLD, 2, Step.RELEASE),
            (INCOMING, 0, Step.RELEASE),
            (INCOMING, 2, Step.ACTIVATE),
        ):
            second = dataclasses.replace(held(role), attempt=attempt)
            self.assertEqual(
                [(step, role)],
                steps(
                    host(
                        [held(), second],
                        servers={SERVER: STAYS},
                        guests={SERVER},
                    )
                ),
            )

    def test_the_guest_has_what_was_acquired_last(self) -> None:
        for of_active, of_incoming, step in (
            (2, 3, Step.ACTIVATE),
            (3, 2, Step.RELEASE),
            (2, 2, Step.RELEASE),
        ):
            active, incoming = (
                dataclasses.replace(held(role), attempt=attempt)
                for role, attempt in (
                    (ACTIVE, of_active),
                    (INCOMING, of_incoming),
                )
            )
            self.assertEqual(
                [(step, INCOMING)],
                steps(
                    host(
                        [active, incoming],
                        servers={SERVER: STAYS},
                        guests={SERVER},
                    )
                ),
            )

    def test_what_the_api_has_lost(self) -> None:
        self.assertEqual(
            [(Step.TELL, ACTIVE)],
            steps(host([held()], in_api=[], servers={SERVER: STAYS})),
        )
        busy = dataclasses.replace(STAYS, task_state='rebuilding')
        self.assertEqual(
            [], steps(host([held()], in_api=[], servers={SERVER: busy}))
        )

    def test_what_the_api_has_lost_of_a_guest_that_nova_has_lost(self) -> None:
        self.assertEqual([], steps(host([held()], in_api=[], guests={SERVER})))

    def test_a_role_that_the_api_does_not_know_yet(self) -> None:
        moved = dataclasses.replace(
            host(
                [held(OLD)],
                in_api=[dataclasses.replace(held(OLD), role=ACTIVE)],
                servers={SERVER: nova_server.Server(HERE, is_migrating=True)},
            ),
            journaled={(SERVER, OLD), (SERVER, ACTIVE)},
        )
        self.assertEqual([], steps(moved))


class TestWhatOnlyTheApiHas(testtools.TestCase):
    def test_what_unneeded_is_taken_back(self) -> None:
        for role in arq_types.Role:
            self.assertEqual(
                [(Step.TAKE_BACK, role)], steps(host(in_api=[held(role)]))
            )

    def test_a_guest_keeps_what_it_may_have(self) -> None:
        self.assertEqual([], steps(host(in_api=[held()], guests={SERVER})))

    def test_a_guest_of_an_instance_that_is_elsewhere(self) -> None:
        self.assertEqual(
            [],
            steps(
                host(
                    in_api=[held()],
                    servers={SERVER: GONE_AWAY},
                    guests={SERVER},
                )
            ),
        )

    def test_what_is_needed_is_recovered(self) -> None:
        for guests in ((), {SERVER}):
            self.assertEqual(
                [(Step.RECOVER, ACTIVE)],
                steps(
                    host(
                        in_api=[held()], servers={SERVER: STAYS}, guests=guests
                    )
                ),
            )
        waits = nova_server.Server(THERE, is_migrating=True)
        self.assertEqual(
            [(Step.RECOVER, OLD)],
            steps(host(in_api=[held(OLD)], servers={SERVER: waits})),
        )

    def test_what_is_under_way_is_left(self) -> None:
        for server in (
            nova_server.Server(HERE, task_state='spawning'),
            nova_server.Server(HERE, 'building'),
            nova_server.Server(HERE, is_migrating=True),
            nova_server.Server(THERE, is_migrating=True),
        ):
            self.assertEqual(
                [],
                steps(host(in_api=[held()], servers={SERVER: server})),
                server,
            )

    def test_what_is_journaled_though_not_complete(self) -> None:
        acquiring = dataclasses.replace(
            host(in_api=[held()], servers={SERVER: STAYS}),
            journaled={(SERVER, ACTIVE)},
        )
        self.assertEqual([], steps(acquiring))

    def test_half_a_set_gives_no_guest_its_devices(self) -> None:
        half = held(whole=False)
        for guests, expected in (
            ((), [(Step.TAKE_BACK, ACTIVE)]),
            ({SERVER}, []),
        ):
            self.assertEqual(
                expected,
                steps(
                    host(in_api=[half], servers={SERVER: STAYS}, guests=guests)
                ),
            )


class TestWhatNovaHasBound(testtools.TestCase):
    def test_what_nobody_came_for_is_deleted(self) -> None:
        for whole in (True, False):
            for servers in ({}, {SERVER: GONE_AWAY}):
                self.assertEqual(
                    [(Step.DELETE, None)],
                    steps(
                        host(in_api=[held(None, whole=whole)], servers=servers)
                    ),
                )

    def test_what_somebody_may_come_for_is_left(self) -> None:
        for server in (
            nova_server.Server(None, 'building'),
            nova_server.Server(None, 'shelved_offloaded', 'unshelving'),
            # The ARQs of a port stay so.
            STAYS,
        ):
            self.assertEqual(
                [],
                steps(host(in_api=[held(None)], servers={SERVER: server})),
                server,
            )

    def test_until_when_they_are_looked_at(self) -> None:
        for server, role, waits in (
            (None, None, True),
            (nova_server.Server(None, 'building'), None, True),
            (nova_server.Server(HERE, task_state='spawning'), None, True),
            (STAYS, None, False),
            (nova_server.Server(HERE, 'building'), ACTIVE, False),
        ):
            self.assertEqual(
                waits,
                host(
                    in_api=[held(role)],
                    servers={} if server is None else {SERVER: server},
                ).awaits_adoption,
                (server, role),
            )


class TestOrphans(testtools.TestCase):
    def test_those_that_nobody_has(self) -> None:
        self.assertEqual(
            ['c'], binding_repairs.orphans(['a', 'b', 'c'], {'a'}, {'b', 'd'})
        )


class TestRemedy(testtools.TestCase):
    def test_a_host_that_reports_helps_itself(self) -> None:
        self.assertIn('the host will', binding_repairs.remedy(False))
        self.assertIn('host forget', binding_repairs.remedy(True))
