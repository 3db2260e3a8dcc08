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

from typing import Any

from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import adoption
from nova_accel.db import client_arqs
from nova_accel.db import device_profile
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios


class BindingTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(2, 1), functions=3)
        self.host.report()
        self.make_profile()

    def again(
        self, request: host_arqs.AcquireRequest, **fields: Any
    ) -> host_arqs.AcquireRequest:
        return host_arqs.AcquireRequest(**{**vars(request), **fields})


class TestAcquire(BindingTestCase):
    scenarios = database.SCENARIOS

    def test_bound_arq(self) -> None:
        request = self.request(image_uuid='b' * 36)
        [found] = host_arqs.acquire(request)
        handle = self.host.devices()[0].deployables[0].handles[0]
        for name, value in {
            'state': 'Bound',
            'device_profile_name': 'fpga',
            'device_profile_group_id': 0,
            'group': base.FPGA,
            'hostname': 'compute-1',
            'role': 'active',
            'device_rp_uuid': self.host.rp_uuid(),
            'instance_uuid': request.instance_uuid,
            'project_id': base.PROJECT,
            'attach_handle_uuid': handle.uuid,
            'attach_handle_type': 'PCI',
            'attach_handle_info': handle.info,
            'updated_at': None,
        }.items():
            self.assertEqual(value, found[name], name)
        self.assertEqual([found], host_arqs.get(*request.key))
        self.assertEqual({handle.uuid: found['uuid']}, self.taken())

    def test_groups_are_matched_to_providers(self) -> None:
        self.make_profile(
            base.FPGA | {'trait:CUSTOM_REGION1': 'required'},
            {'resources:CUSTOM_QAT': '2'},
            base.FPGA,
            name='mixed',
        )
        found = host_arqs.acquire(
            self.request(
                self.host.allocated(bus=1),
                self.host.allocated_functions(2),
                self.host.allocated(region=1),
                device_profile_name='mixed',
            )
        )
        qat = self.host.allocated_functions(2).rp_uuid
        self.assertEqual(
            [
                (0, self.host.rp_uuid(0, 1)),
                (1, qat),
                (1, qat),
                (2, self.host.rp_uuid(1)),
            ],
            [
                (arq['device_profile_group_id'], arq['device_rp_uuid'])
                for arq in found
            ],
        )
        self.assertEqual(4, len({arq['attach_handle_uuid'] for arq in found}))
        self.assert_consistent()

    def test_parts_of_a_group(self) -> None:
        """What one provider did not have, two have given."""
        self.make_profile(
            {'resources:CUSTOM_QAT': '1'},
            {'resources:FPGA': '2'},
            name='divided',
        )
        found = host_arqs.acquire(
            self.request(
                self.host.allocated(region=1),
                self.host.allocated_functions(1),
                self.host.allocated(bus=1),
                device_profile_name='divided',
            )
        )
        self.assertEqual(
            {
                (0, self.host.allocated_functions(1).rp_uuid),
                (1, self.host.rp_uuid(0, 1)),
                (1, self.host.rp_uuid(1)),
            },
            {
                (arq['device_profile_group_id'], arq['device_rp_uuid'])
                for arq in found
            },
        )
        self.assertEqual(3, len(found))
        self.assert_consistent()

    def test_the_first_profile_that_matches(self) -> None:
        self.make_profile({'resources:FPGA': '2'}, name='two')
        self.make_profile(base.QAT, name='qat')
        self.make_profile(base.FPGA, name='also')
        for names, chosen, why in (
            ('fpga,also', 'fpga', ''),
            (
                'two, nothing,fpga',
                'fpga',
                'not two: no host had it with all else that the server '
                'needs; not nothing: there is none; ',
            ),
            (
                'qat,two,also',
                'also',
                'not qat: all 8 are in use; not two: no host had it with all '
                'else that the server needs; ',
            ),
        ):
            request = self.request(
                device_profile_name=names,
                obstacles={
                    'qat': 'all 8 are in use',
                    'nothing': 'there is none',
                },
            )
            [arq] = host_arqs.acquire(request)
            self.assertEqual(chosen, arq['device_profile_name'])
            self.assertEqual(
                f'{why}no larger free set was broken; others fitted: 0',
                arq['chosen_because'],
            )
            self.assertEqual([arq], host_arqs.acquire(request))
            self.assertEqual(
                [arq], host_arqs.acquire(self.again(request, attempt=2))
            )
            host_arqs.release(*request.key, 2)
        self.assert_consistent()

    def test_a_profile_that_matches_and_is_not_free(self) -> None:
        near = base.QAT | {'accel:numa_affinity': 'required'}
        self.make_profile(base.QAT, near, name='near')
        self.make_profile({'resources:CUSTOM_QAT': '2'}, name='any')
        found = host_arqs.acquire(
            self.request(
                self.host.allocated_functions(2),
                device_profile_name='near,any',
                numa_nodes=frozenset({9}),
            )
        )
        self.assertEqual(
            ['any'] * 2, [arq['device_profile_name'] for arq in found]
        )
        self.assertEqual(2, len({arq['attach_handle_uuid'] for arq in found}))
        self.assert_consistent()

    def test_none_of_several_profiles(self) -> None:
        self.make_profile({'resources:FPGA': '2'}, name='two')
        before = self.everything()
        for names, fault, text in (
            ('nope,nothing', exceptions.NotFound, 'name=nope, nothing'),
            ('two,nope', exceptions.NoAssignment, 'do not match'),
            ('two,', exceptions.InvalidDeviceProfile, 'a name is missing'),
        ):
            error = self.assertRaises(
                fault,
                host_arqs.acquire,
                self.request(device_profile_name=names),
            )
            self.assertIn(text, str(error))
        self.assertEqual(before, self.everything())

    def test_a_guest_that_migrates_live_keeps_its_profile(self) -> None:
        self.make_profile(base.FPGA, name='also')
        other = reports.SimulatedHost('compute-2')
        other.report()
        request = self.request(device_profile_name='also')
        host_arqs.acquire(request)
        [arq] = host_arqs.acquire(
            self.again(
                request,
                hostname='compute-2',
                role='incoming',
                device_profile_name='fpga,also',
                allocations=(other.allocated(),),
            )
        )
        self.assertEqual('also', arq['device_profile_name'])

    def test_refusals_leave_nothing(self) -> None:
        other = reports.SimulatedHost('compute-2')
        other.report()
        host_arqs.acquire(self.request(self.host.allocated(bus=1)))
        before = self.everything()
        for request, fault, text in (
            (
                self.request(device_profile_name='nope'),
                exceptions.NotFound,
                'name=nope',
            ),
            (
                self.request(other.allocated()),
                exceptions.NotFound,
                other.rp_uuid(),
            ),
            (
                self.request(hostname='compute-9'),
                exceptions.NotFound,
                'compute-9',
            ),
            (
                self.request(
                    self.host.allocated(), self.host.allocated(region=1)
                ),
                exceptions.NoAssignment,
                self.host.rp_uuid(),
            ),
            (
                self.request(self.host.allocated(bus=1)),
                exceptions.AcceleratorsBusy,
                self.host.rp_uuid(1),
            ),
        ):
            error = self.assertRaises(fault, host_arqs.acquire, request)
            self.assertIn(text, str(error))
            self.assertEqual(before, self.everything())

    def test_same_attempt_again(self) -> None:
        request = self.request()
        found = host_arqs.acquire(request)
        before = self.everything()
        self.assertEqual(found, host_arqs.acquire(request))
        self.assertEqual(before, self.everything())

    def test_groups_of_no_profile(self) -> None:
        trait = {'trait:CUSTOM_REGION1': 'required'}
        request = self.request(
            self.host.allocated(),
            self.host.allocated(region=1),
            device_profile_name='',
            groups=({**base.FPGA, **trait}, base.FPGA),
        )
        found = host_arqs.acquire(request)
        self.assertEqual(
            [
                ('', 0, {**base.FPGA, **trait}, self.host.rp_uuid(0, 1)),
                ('', 1, base.FPGA, self.host.rp_uuid()),
            ],
            [
                (
                    arq['device_profile_name'],
                    arq['device_profile_group_id'],
                    arq['group'],
                    arq['device_rp_uuid'],
                )
                for arq in found
            ],
        )
        self.assertEqual(found, host_arqs.acquire(request))
        self.assertEqual(
            found, host_arqs.acquire(self.again(request, attempt=2))
        )
        other = self.again(request, groups=(base.FPGA, base.FPGA), attempt=2)
        self.assertRaises(exceptions.StaleAttempt, host_arqs.acquire, other)
        anew = host_arqs.acquire(self.again(other, attempt=3))
        self.assertEqual([base.FPGA] * 2, [arq['group'] for arq in anew])
        self.assert_consistent()

    def test_newer_attempt_keeps_the_arqs(self) -> None:
        request = self.request()
        found = host_arqs.acquire(request)
        newer = self.again(request, attempt=2)
        self.assertEqual(found, host_arqs.acquire(newer))
        self.assertRaises(exceptions.StaleAttempt, host_arqs.acquire, request)
        self.assertRaises(
            exceptions.StaleAttempt, host_arqs.release, *request.key, attempt=1
        )

    def test_newer_attempt_keeps_the_arqs_of_a_deleted_profile(self) -> None:
        request = self.request()
        found = host_arqs.acquire(request)
        # By hand: the API deletes no profile that is in use.
        with self.database.engine.begin() as connection:
            connection.execute(sa.delete(schema.DEVICE_PROFILES))
        self.assertEqual(
            found, host_arqs.acquire(self.again(request, attempt=2))
        )

    def test_newer_attempt_that_differs(self) -> None:
        self.make_profile(name='other')
        request = self.request()
        asked: list[dict[str, Any]] = [
            {},
            {'device_profile_name': 'other'},
            {
                'device_profile_name': 'other',
                'allocations': (self.host.allocated(bus=1),),
            },
        ]
        for attempt, fields in enumerate(asked):
            found = host_arqs.acquire(
                self.again(request, attempt=attempt, **fields)
            )
            self.assertEqual(
                [arq['uuid'] for arq in found],
                [arq['uuid'] for arq in self.rows(schema.ARQS)],
            )
            self.assert_consistent()
        self.assertEqual(self.host.rp_uuid(1), found[0]['device_rp_uuid'])

    def test_newer_attempt_keeps_the_arqs_of_an_edited_profile(self) -> None:
        request = self.request()
        found = host_arqs.acquire(request)
        uuid = device_profile.get('fpga')['uuid']
        for attempt, group in enumerate(
            (base.QAT, base.FPGA | {'accel:function_name': 'gzip'}), 2
        ):
            device_profile.update(uuid, [group])
            self.assertEqual(
                found, host_arqs.acquire(self.again(request, attempt=attempt))
            )
        # Who is new gets what it says now.
        host_arqs.release(*request.key, attempt)
        [arq] = host_arqs.acquire(self.again(request, attempt=9))
        self.assertEqual(group, arq['group'])

    def test_newer_attempt_with_another_profile_of_the_same(self) -> None:
        self.make_profile(name='other')
        request = self.request()
        [before] = host_arqs.acquire(request)
        [found] = host_arqs.acquire(
            self.again(request, attempt=2, device_profile_name='other')
        )
        self.assertEqual('other', found['device_profile_name'])
        self.assertNotEqual(before['uuid'], found['uuid'])
        self.assert_consistent()

    def test_newer_attempt_without_any_allocation(self) -> None:
        request = self.request()
        host_arqs.acquire(request)
        host_arqs.release(*request.key, 1)
        self.assertRaises(
            exceptions.NoAssignment,
            host_arqs.acquire,
            self.again(request, attempt=2, allocations=()),
        )

    def test_newer_attempt_that_fails_keeps_what_was_held(self) -> None:
        host_arqs.acquire(self.request(self.host.allocated(bus=1)))
        request = self.request()
        host_arqs.acquire(request)
        before = self.everything()
        self.assertRaises(
            exceptions.AcceleratorsBusy,
            host_arqs.acquire,
            self.again(
                request, attempt=2, allocations=(self.host.allocated(bus=1),)
            ),
        )
        self.assertEqual(before, self.everything())

    def test_roles_are_apart(self) -> None:
        old = self.request(role=arq_types.Role.OLD)
        active = self.again(
            old, role='active', allocations=(self.host.allocated(bus=1),)
        )
        [of_old] = host_arqs.acquire(old)
        [of_active] = host_arqs.acquire(active)
        host_arqs.release(*old.key, attempt=1)
        self.assertEqual([], host_arqs.get(*old.key))
        self.assertEqual([of_active], host_arqs.get(*active.key))
        self.assertNotEqual(of_old['uuid'], of_active['uuid'])


class TestPorts(BindingTestCase):
    """What ports hold is not the flavor's, before and after it is adopted."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.make_profile({'resources:CUSTOM_QAT': '1'}, name='qat')
        self.flavors = self.request(
            self.host.allocated_functions(3), device_profile_name='qat-2'
        )
        self.make_profile({'resources:CUSTOM_QAT': '2'}, name='qat-2')
        [port] = client_arqs.create('qat', base.PROJECT)
        self.port = port['uuid']
        client_arqs.bind(
            {
                self.port: self.place(
                    self.host.allocated_functions(1).rp_uuid,
                    self.flavors.instance_uuid,
                )
            }
        )
        self.key = *self.flavors.key[:2], arq_types.Role.PORT

    def adopt(self) -> None:
        adoption.adopt(self.key, 1, [self.port])

    def test_before_it_is_adopted(self) -> None:
        self.assertEqual(2, len(host_arqs.acquire(self.flavors)))
        self.adopt()
        self.assert_consistent()
        self.assertEqual(3, len(self.taken()))

    def test_after_it_is_adopted(self) -> None:
        self.adopt()
        found = host_arqs.acquire(self.flavors)
        self.assertEqual(2, len(found))
        self.assertEqual(
            found, host_arqs.acquire(self.again(self.flavors, attempt=2))
        )

    def test_the_same_profile(self) -> None:
        self.adopt()
        self.assertEqual(
            1,
            len(
                host_arqs.acquire(
                    self.again(
                        self.flavors,
                        device_profile_name='qat',
                        allocations=(self.host.allocated_functions(2),),
                    )
                )
            ),
        )

    def test_of_another_instance_or_host(self) -> None:
        """It is no part of the allocation."""
        self.adopt()
        other = self.again(
            self.flavors,
            instance_uuid=uuidutils.generate_uuid(),
            allocations=(self.host.allocated_functions(2),),
        )
        self.assertEqual(2, len(host_arqs.acquire(other)))

    def test_they_are_given_back_apart(self) -> None:
        self.adopt()
        host_arqs.acquire(self.flavors)
        host_arqs.release(*self.key, attempt=1)
        self.assertEqual(2, len(self.taken()))
        host_arqs.release(*self.flavors.key, attempt=1)
        self.assertEqual({}, self.taken())


class TestRelease(BindingTestCase):
    scenarios = database.SCENARIOS

    def test_all_is_free_again(self) -> None:
        request = self.request()
        host_arqs.acquire(request)
        host_arqs.release(*request.key, attempt=1)
        self.assertEqual([], host_arqs.get(*request.key))
        self.assertEqual([], self.rows(schema.ARQS))
        self.assertEqual({}, self.taken())
        host_arqs.acquire(self.request())

    def test_again(self) -> None:
        request = self.request()
        host_arqs.acquire(request)
        for _again in range(2):
            host_arqs.release(*request.key, attempt=1)
        self.assertEqual({}, self.taken())

    def test_others_are_left_alone(self) -> None:
        request = self.request()
        other = self.request(self.host.allocated(bus=1))
        host_arqs.acquire(request)
        found = host_arqs.acquire(other)
        host_arqs.release(*request.key, attempt=1)
        self.assertEqual(found, host_arqs.get(*other.key))


class TestOfHost(BindingTestCase):
    scenarios = database.SCENARIOS

    def test_all_that_a_host_has(self) -> None:
        self.make_noise(reports.SimulatedHost('compute-2'))
        request = self.request(attempt=3)
        held = host_arqs.acquire(request)
        [uuid] = self.make_arqs(1)
        place = self.place(self.host.rp_uuid(1))
        client_arqs.bind({uuid: place})
        unadopted = client_arqs.get(uuid)
        self.make_arqs(1)
        self.assertEqual(
            [
                {
                    'instance_uuid': request.instance_uuid,
                    'role': 'active',
                    'attempt': 3,
                    'arqs': held,
                },
                {
                    'instance_uuid': place['instance_uuid'],
                    'role': None,
                    'attempt': None,
                    'arqs': [unadopted],
                },
            ],
            host_arqs.get_of_host(self.host.hostname),
        )
        host_arqs.release(*request.key, 3)
        host_arqs.delete_unadopted(
            place['instance_uuid'], self.host.hostname, [uuid]
        )
        self.assertEqual([], host_arqs.get_of_host(self.host.hostname))
        self.assertEqual([], host_arqs.get_of_host('compute-9'))
        self.assertEqual(1, len(host_arqs.get_of_host('compute-2')))

    def test_what_no_attempt_is_known_of(self) -> None:
        host_arqs.acquire(self.request(attempt=3))
        with engine.writer() as connection:
            connection.execute(sa.delete(schema.BINDINGS))
        [found] = host_arqs.get_of_host(self.host.hostname)
        self.assertEqual(0, found['attempt'])

    def test_all_that_some_hosts_have(self) -> None:
        other, another = (
            reports.SimulatedHost(f'compute-{number}', (1,))
            for number in (2, 3)
        )
        self.make_noise(other)
        self.make_noise(another)
        request = self.request()
        held = host_arqs.acquire(request)
        [noise] = client_arqs.get_all(hostname=other.hostname)
        self.assertEqual([], host_arqs.get_of_hosts([]))
        self.assertEqual(
            [
                {
                    'hostname': self.host.hostname,
                    'role': 'active',
                    'instance_uuid': request.instance_uuid,
                    'arqs': held,
                },
                {
                    'hostname': other.hostname,
                    'role': None,
                    'instance_uuid': noise['instance_uuid'],
                    'arqs': [noise],
                },
            ],
            sorted(
                host_arqs.get_of_hosts([other.hostname, self.host.hostname]),
                key=lambda each: each['hostname'],
            ),
        )

    def test_only_what_is_named_and_not_adopted_is_deleted(self) -> None:
        adopted, other = self.make_arqs(2)
        place = self.place()
        client_arqs.bind({adopted: place})
        key = place['instance_uuid'], self.host.hostname
        adoption.adopt((*key, 'active'), 1, [adopted])
        client_arqs.bind(
            {other: {**place, 'device_rp_uuid': self.host.rp_uuid(1)}}
        )
        before = self.everything()
        for instance_uuid, hostname, uuids in (
            (*key, [adopted]),
            (*key, [uuidutils.generate_uuid()]),
            (key[0], 'compute-2', [other]),
            (uuidutils.generate_uuid(), key[1], [other]),
        ):
            host_arqs.delete_unadopted(instance_uuid, hostname, uuids)
        self.assertEqual(before, self.everything())
        host_arqs.delete_unadopted(*key, [adopted, other])
        self.assertEqual(
            [adopted], [arq['uuid'] for arq in client_arqs.get_all()]
        )
        self.assert_consistent()
