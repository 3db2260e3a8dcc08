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


import testtools

from nova_accel.model import arq_types
from nova_accel.model import host_binding

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
ARQ = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8b01'
BAD = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8b02'
THIRD = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8b03'
HANDLE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8c01'
PROVIDER = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8d01'


def listed(
    *arqs: dict[str, object],
    role: str | None = 'active',
    attempt: int | None = 7,
) -> host_binding.Binding:
    return host_binding.from_dict(
        {
            'instance_uuid': INSTANCE,
            'role': role,
            'attempt': attempt,
            'arqs': list(arqs),
        }
    )


def wire_arq(
    uuid: str = ARQ, state: str = 'Bound', handle: str | None = HANDLE
) -> dict[str, object]:
    return {
        'uuid': uuid,
        'state': state,
        'device_profile_name': 'fpga',
        'device_profile_group_id': 0,
        'group': {'resources:FPGA': '1'},
        'device_rp_uuid': PROVIDER,
        'attach_handle': {
            'uuid': handle,
            'type': handle and 'PCI',
            'info': handle
            and {
                'domain': '0000',
                'bus': '81',
                'device': '00',
                'function': '1',
            },
        },
    }


class TestUnjournaled(testtools.TestCase):
    def test_what_the_journal_lacks(self) -> None:
        active = listed(wire_arq(ARQ))
        port = listed(wire_arq(BAD), role='port')
        unadopted = listed(wire_arq(THIRD), role=None, attempt=None)
        self.assertEqual(
            (port, unadopted),
            host_binding.unjournaled(
                [active, port, unadopted], {(INSTANCE, arq_types.Role.ACTIVE)}
            ),
        )


class TestBinding(testtools.TestCase):
    def test_what_is_held(self) -> None:
        self.assertTrue(listed(wire_arq(state='Provisioning')).is_whole)
        found = listed(wire_arq())
        self.assertEqual(
            (INSTANCE, arq_types.Role.ACTIVE, 7, (ARQ,)),
            (found.instance_uuid, found.role, found.attempt, found.arq_uuids),
        )
        self.assertEqual(
            ['0000:81:00.1'],
            [str(request.handle.address) for request in found.arqs],
        )
        self.assertTrue(found.is_whole)

    def test_what_is_not_adopted(self) -> None:
        found = listed(wire_arq(), role=None, attempt=None)
        self.assertIsNone(found.role)
        self.assertIsNone(found.attempt)

    def test_half_a_set(self) -> None:
        for bad in (
            wire_arq(BAD, 'BindFailed', None),
            wire_arq(BAD, handle=None),
            wire_arq(BAD, 'Unbound'),
        ):
            found = listed(wire_arq(), bad)
            self.assertEqual((ARQ, BAD), found.arq_uuids)
            self.assertEqual([ARQ], [request.uuid for request in found.arqs])
            self.assertFalse(found.is_whole)

    def test_what_is_malformed_is_named(self) -> None:
        good = {
            'instance_uuid': INSTANCE,
            'role': 'active',
            'attempt': 7,
            'arqs': [wire_arq()],
        }
        for spoilt, fault in (
            ({'attempt': -1}, 'bindings[0].attempt is -1'),
            ({'role': 'king'}, "bindings[0].role is 'king'"),
            ({'arqs': [{}]}, 'bindings[0].arqs[0].attach_handle is missing'),
            (
                {'arqs': [{**wire_arq(), 'group': []}]},
                'bindings[0].arqs[0].group is [], not an object',
            ),
        ):
            error = self.assertRaises(
                ValueError,
                host_binding.listing,
                {'bindings': [{**good, **spoilt}]},
            )
            self.assertIn(fault, str(error))
