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

from hypothesis import given
from hypothesis import strategies as st
import testtools

from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import binding_repairs
from nova_accel.model import finding
from nova_accel.model import guest_findings
from nova_accel.model import host_binding
from nova_accel.model import nova_server
from nova_accel.model import pci_address

HERE = 'compute-1'
SERVER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
MDEV = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'
CARD = pci_address.PciAddress.parse('0000:81:00.0')
AUDIO = pci_address.PciAddress.parse('0000:81:00.1')

RUNS = nova_server.Server(host=HERE, vm_state='active')

_Kind = finding.Kind


def an_arq(uuid: str, handle: attach_handle.AttachHandle) -> arq_types.Arq:
    return arq_types.Arq(
        uuid, arq_types.State.BOUND, 'gpu', 0, {}, 'rp', handle
    )


ARQS = (
    an_arq('1', attach_handle.AttachHandle(MDEV, CARD, 'nvidia-11')),
    an_arq(
        '2',
        attach_handle.AttachHandle('card', CARD, further_functions=(AUDIO,)),
    ),
)

DEVICES = frozenset({MDEV, str(CARD), str(AUDIO)})


def binding(
    role: arq_types.Role | None = arq_types.Role.ACTIVE,
) -> host_binding.Binding:
    return host_binding.Binding(SERVER, role, 1, ('1', '2'), ARQS)


def a_host(
    server: nova_server.Server | None = RUNS,
    role: arq_types.Role | None = arq_types.Role.ACTIVE,
    is_journaled: bool = True,
    has_guest: bool = True,
) -> binding_repairs.HostBindings:
    bindings = [binding(role)]
    return binding_repairs.HostBindings(
        name=HERE,
        held=bindings if is_journaled else [],
        journaled=(),
        listed=[] if is_journaled else bindings,
        servers={} if server is None else {SERVER: server},
        guests={SERVER} if has_guest else (),
    )


def guests(
    is_there: bool = True,
    is_running: bool = True,
    devices: frozenset[str] = DEVICES,
) -> guest_findings.SeenGuests:
    return guest_findings.SeenGuests(
        {SERVER, 'other'} if is_running else {'other'},
        {'other': frozenset(), **({SERVER: devices} if is_there else {})},
    )


GONE = guests(is_there=False, is_running=False)
STOPPED = guests(is_running=False)


class TestFind(testtools.TestCase):
    def find(
        self,
        host: binding_repairs.HostBindings,
        found: guest_findings.SeenGuests,
    ) -> list[tuple[str, str | None]]:
        result = list(guest_findings.find(host, found))
        for each in result:
            self.assertEqual(
                (SERVER, False), (each.instance_uuid, each.is_repaired)
            )
        return [(each.kind, each.device) for each in result]

    def test_all_is_well(self) -> None:
        self.assertEqual([], self.find(a_host(), guests()))

    def test_a_guest_that_is_gone(self) -> None:
        for vm_state in ('active', 'paused', 'rescued'):
            server = dataclasses.replace(RUNS, vm_state=vm_state)
            self.assertEqual(
                [(_Kind.GUEST_GONE, None)],
                self.find(a_host(server, has_guest=False), GONE),
            )

    def test_a_guest_that_does_not_run(self) -> None:
        self.assertEqual(
            [(_Kind.GUEST_STOPPED, None)], self.find(a_host(), STOPPED)
        )

    def test_devices_that_a_guest_lacks(self) -> None:
        self.assertEqual(
            [(_Kind.NOT_IN_GUEST, MDEV), (_Kind.NOT_IN_GUEST, str(AUDIO))],
            self.find(a_host(), guests(devices=frozenset({str(CARD)}))),
        )

    def test_a_guest_whose_server_is_not_here(self) -> None:
        for server in (None, nova_server.Server('elsewhere', 'active')):
            for is_journaled in (True, False):
                for found in (guests(), STOPPED):
                    self.assertEqual(
                        [(_Kind.GUEST_WITHOUT_SERVER, None)],
                        self.find(
                            a_host(server, is_journaled=is_journaled), found
                        ),
                    )

    def test_the_words_say_where_the_server_is(self) -> None:
        (found,) = guest_findings.find(
            a_host(nova_server.Server('elsewhere', 'active')), guests()
        )
        self.assertIn('on host elsewhere', found.words)

    def test_a_guest_that_has_gone_meanwhile(self) -> None:
        self.assertEqual([], self.find(a_host(None), GONE))

    def test_what_is_not_the_guests_own(self) -> None:
        for role in (
            arq_types.Role.OLD,
            arq_types.Role.INCOMING,
            arq_types.Role.PORT,
        ):
            self.assertEqual([], self.find(a_host(role=role), GONE))

    @given(
        st.builds(
            nova_server.Server,
            host=st.sampled_from((HERE, 'elsewhere', None)),
            vm_state=st.sampled_from(
                ('active', 'stopped', 'suspended', 'building', 'error')
            ),
            task_state=st.sampled_from((None, 'rebooting')),
            is_migrating=st.booleans(),
        ),
        st.sampled_from((GONE, STOPPED, guests(devices=frozenset()))),
    )
    def test_whatever_an_operation_may_explain(
        self, server: nova_server.Server, found: guest_findings.SeenGuests
    ) -> None:
        """Only a server that is here, idle and running by Nova lacks any."""
        is_told = server == RUNS
        kinds = {kind for kind, _device in self.find(a_host(server), found)}
        self.assertEqual(is_told, bool(kinds - {_Kind.GUEST_WITHOUT_SERVER}))
        if server.is_migrating or server.is_busy:
            self.assertEqual(set(), kinds)
