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

import datetime

import fixtures
from oslo_utils import uuidutils
import sqlalchemy as sa
import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import adoption
from nova_accel.db import client_arqs
from nova_accel.db import host_arqs
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model import arq_types
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

OTHER_PROJECT = 'c' * 32


class ArqTestCase(base.DatabaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(2, 1))
        self.host.report()
        self.make_profile()

    def bound(self) -> str:
        """The uuid of an ARQ that holds the first region."""
        [uuid] = self.make_arqs(1)
        client_arqs.bind({uuid: self.place()})
        return uuid

    def silence(self) -> None:
        """Let the host's last report be just too old."""
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.HOSTS).values(
                    reported_at=schema.now()
                    - datetime.timedelta(
                        seconds=client_arqs.CONF.nova_accel.host_silence_s + 1
                    )
                )
            )


class TestCreateAndRead(ArqTestCase):
    scenarios = database.SCENARIOS

    def test_one_for_each_unit_in_order(self) -> None:
        groups = [base.FPGA | {'resources:CUSTOM_QAT': '2'}, base.FPGA]
        self.make_profile(*groups, name='mixed')
        image_uuid = uuidutils.generate_uuid()
        created = client_arqs.create('mixed', base.PROJECT, image_uuid)
        self.assertEqual(
            [0, 0, 0, 1], [arq['device_profile_group_id'] for arq in created]
        )
        self.assertEqual(
            ['CUSTOM_QAT', 'CUSTOM_QAT', 'FPGA', 'FPGA'],
            [row['resource_class'] for row in self.rows(schema.ARQS)],
        )
        self.assertEqual(
            {image_uuid}, {row['image_uuid'] for row in self.rows(schema.ARQS)}
        )
        for name, value in {
            'state': 'Initial',
            'device_profile_name': 'mixed',
            'group': groups[0],
            'project_id': base.PROJECT,
            **dict.fromkeys(
                (
                    'hostname',
                    'device_rp_uuid',
                    'instance_uuid',
                    'role',
                    'attach_handle_type',
                    'attach_handle_uuid',
                    'attach_handle_info',
                    'updated_at',
                )
            ),
        }.items():
            self.assertEqual(value, created[0][name], name)
        self.assertEqual(created, client_arqs.get_all())
        self.assertEqual(created[3], client_arqs.get(created[3]['uuid']))

    def test_create_of_an_unknown_profile(self) -> None:
        error = self.assertRaises(
            exceptions.NotFound, client_arqs.create, 'nope', base.PROJECT
        )
        self.assertEqual('Device Profile not found with name=nope', str(error))

    def test_a_project_has_only_so_many_that_are_not_bound(self) -> None:
        client_arqs.CONF.set_override('max_unbound_arqs', 3, 'nova_accel')
        self.addCleanup(
            client_arqs.CONF.clear_override, 'max_unbound_arqs', 'nova_accel'
        )
        self.make_profile({'resources:FPGA': '2'}, name='two')
        first, *_others = self.make_arqs(2)
        before = self.everything()
        error = self.assertRaises(
            exceptions.NotAllowed, client_arqs.create, 'two', base.PROJECT
        )
        self.assertEqual(
            f'project {base.PROJECT} has 2 of at most 3 unbound accelerator '
            'requests, and asks for 2 more: delete those that no one needs',
            str(error),
        )
        self.assertEqual(before, self.everything())
        client_arqs.create('two', OTHER_PROJECT)
        # What is bound does not count.
        client_arqs.bind({first: self.place()})
        client_arqs.create('two', base.PROJECT)
        self.assertRaises(
            exceptions.NotAllowed, client_arqs.create, 'fpga', base.PROJECT
        )
        client_arqs.CONF.set_override('max_unbound_arqs', 0, 'nova_accel')
        client_arqs.create('two', base.PROJECT)

    def test_projects_are_apart(self) -> None:
        [own] = client_arqs.create('fpga', base.PROJECT)
        [other] = client_arqs.create('fpga', OTHER_PROJECT)
        self.assertEqual([own], client_arqs.get_all(project_id=base.PROJECT))
        self.assertEqual(own, client_arqs.get(own['uuid'], base.PROJECT))
        for call in (
            lambda: client_arqs.get(other['uuid'], base.PROJECT),
            lambda: client_arqs.delete_by_uuids(
                [own['uuid'], other['uuid']], base.PROJECT
            ),
        ):
            error = self.assertRaises(exceptions.NotFound, call)
            self.assertEqual(
                f'ExtArq not found with uuid={other["uuid"]}', str(error)
            )
        self.assertEqual([own, other], client_arqs.get_all())

    def test_filters(self) -> None:
        bound = self.bound()
        [initial] = self.make_arqs(1)
        instance_uuid = client_arqs.get(bound)['instance_uuid']
        for filters, found in (
            ({'instance_uuid': instance_uuid}, [bound]),
            ({'instance_uuid': uuidutils.generate_uuid()}, []),
            ({'states': [arq_types.State.INITIAL]}, [initial]),
            ({'states': arq_types.RESOLVED}, [bound]),
            ({'states': []}, []),
            ({}, [bound, initial]),
        ):
            self.assertEqual(
                found, [arq['uuid'] for arq in client_arqs.get_all(**filters)]
            )

    def test_silent_host(self) -> None:
        bound = self.bound()
        [initial] = self.make_arqs(1)
        request = self.request(self.host.allocated(bus=1))
        native = host_arqs.acquire(request)
        self.silence()
        self.assertEqual(
            ['Unknown', 'Initial', 'Unknown'],
            [arq['state'] for arq in client_arqs.get_all()],
        )
        self.assertEqual(
            2, len(client_arqs.get_all(states=[arq_types.State.UNKNOWN]))
        )
        self.assertEqual(
            [], client_arqs.get_all(states=[arq_types.State.BOUND])
        )
        self.assertEqual('Unknown', client_arqs.get(bound)['state'])
        self.assertEqual('Initial', client_arqs.get(initial)['state'])
        for uuid in (bound, native[0]['uuid']):
            [shown] = client_arqs.get_of_instance(
                client_arqs.get(uuid)['instance_uuid']
            )
            self.assertEqual(
                (uuid, 'Unknown'), (shown['uuid'], shown['state'])
            )
        # The host itself wants to know what it has.
        self.assertEqual(native, host_arqs.get(*request.key))
        self.host.report()
        self.assertEqual('Bound', client_arqs.get(bound)['state'])

    def test_forgotten(self) -> None:
        self.bound()
        old, unbound, recent = self.make_arqs(3)
        client_arqs.bind({unbound: self.place(self.host.rp_uuid(1))})
        for uuid, hours in ((old, 25), (unbound, 25), (recent, 23)):
            with engine.writer() as connection:
                connection.execute(
                    sa.update(schema.ARQS)
                    .where(schema.ARQS.c.uuid == uuid)
                    .values(
                        created_at=schema.now()
                        - datetime.timedelta(hours=hours)
                    )
                )

        def forgotten() -> list[str]:
            return [
                arq['uuid']
                for arq in client_arqs.get_forgotten(
                    datetime.timedelta(days=1)
                )
            ]

        self.assertEqual([old], forgotten())
        client_arqs.unbind([unbound])
        self.assertEqual([old], forgotten())
        handle = self.host.devices()[1].deployables[0].handles[0].uuid
        with engine.writer() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES)
                .where(schema.ATTACH_HANDLES.c.uuid == handle)
                .values(arq_uuid=recent)
            )
        self.assertEqual([old, recent], forgotten())


class TestBind(ArqTestCase):
    scenarios = database.SCENARIOS

    def test_bound(self) -> None:
        [uuid] = self.make_arqs(1)
        place = self.place()
        [bound] = client_arqs.bind({uuid: place})
        found = client_arqs.get(uuid)
        self.assertEqual(found, bound)
        handle = self.host.devices()[0].deployables[0].handles[0]
        for name, value in {
            **place,
            'state': 'Bound',
            'role': None,
            'project_id': base.PROJECT,
            'attach_handle_uuid': handle.uuid,
            'attach_handle_type': 'PCI',
            'attach_handle_info': handle.info,
        }.items():
            self.assertEqual(value, found[name], name)
        self.assertIsNotNone(found['updated_at'])

    def test_groups_that_are_joined(self) -> None:
        joined = {**base.QAT, 'accel:link': 'pcie'}
        self.make_profile(joined, joined, name='joined')
        self.host = reports.SimulatedHost(functions=2)
        self.host.report()
        rp_uuid = self.host.allocated_functions(2).rp_uuid
        arqs = client_arqs.bind(
            {
                arq['uuid']: self.place(rp_uuid, 'd' * 36)
                for arq in client_arqs.create('joined', base.PROJECT)
            }
        )
        self.assertEqual(['Bound'] * 2, [arq['state'] for arq in arqs])

    def test_its_host_is_told_until_it_has_adopted_them(self) -> None:
        before = self.host.report()
        assert before is not None
        self.assertFalse(before.has_unadopted)
        self.assertIsNone(self.host.report(before.revision))
        [uuid] = self.make_arqs(1)
        place = self.place()
        client_arqs.bind({uuid: place})
        told = self.host.report(before.revision)
        assert told is not None
        self.assertTrue(told.has_unadopted)
        self.assertIsNone(self.host.report(told.revision))
        key = place['instance_uuid'], self.host.hostname, 'active'
        adoption.adopt(key, 1, [uuid])
        after = self.host.report()
        assert after is not None
        self.assertFalse(after.has_unadopted)

    def test_project_of_the_instance(self) -> None:
        first, second = self.make_arqs(2)
        client_arqs.bind(
            {
                first: self.place() | {'project_id': OTHER_PROJECT},
                second: self.place(self.host.rp_uuid(1)),
            }
        )
        self.assertEqual(OTHER_PROJECT, client_arqs.get(first)['project_id'])
        self.assertEqual(base.PROJECT, client_arqs.get(second)['project_id'])

    def test_all_or_nothing_for_each_instance(self) -> None:
        alone, *pair = self.make_arqs(3)
        instance_uuid = uuidutils.generate_uuid()
        places = {
            uuid: self.place(instance_uuid=instance_uuid) for uuid in pair
        }
        places[alone] = self.place(self.host.rp_uuid(1))
        self.assertEqual(
            {alone: 'Bound', pair[0]: 'BindFailed', pair[1]: 'BindFailed'},
            {arq['uuid']: arq['state'] for arq in client_arqs.bind(places)},
        )
        self.assertEqual([alone], list(self.taken().values()))
        self.assertEqual(
            2, len(client_arqs.get_all(instance_uuid=instance_uuid))
        )

    def test_refusals_change_nothing(self) -> None:
        bound = self.bound()
        [failed, fresh] = self.make_arqs(2)
        client_arqs.bind({failed: self.place()})
        request = self.request(self.host.allocated(bus=1))
        [native] = host_arqs.acquire(request)
        before = self.everything()
        nobody = uuidutils.generate_uuid()
        holder = client_arqs.get(bound)['instance_uuid']
        for places, fault, text in (
            (
                {fresh: self.place(), nobody: self.place()},
                exceptions.NotFound,
                f'ExtArq not found with uuid={nobody}',
            ),
            ({fresh: self.place(nobody)}, exceptions.NotFound, nobody),
            (
                {fresh: self.place() | {'hostname': 'compute-9'}},
                exceptions.NotFound,
                'compute-9',
            ),
            (
                {fresh: self.place(instance_uuid=holder)},
                exceptions.InvalidRequest,
                f'Instance {holder} already has accelerator requests. '
                'Cannot bind additional ARQs.',
            ),
            (
                {fresh: self.place(), bound: self.place(instance_uuid=holder)},
                exceptions.InvalidRequest,
                holder,
            ),
            ({bound: self.place()}, exceptions.InvalidTransition, bound),
            ({failed: self.place()}, exceptions.InvalidTransition, failed),
            (
                {native['uuid']: self.place()},
                exceptions.InvalidTransition,
                native['uuid'],
            ),
        ):
            error = self.assertRaises(fault, client_arqs.bind, places)
            self.assertIn(text, str(error))
            self.assertEqual(before, self.everything())

    def test_beside_what_the_host_acquired(self) -> None:
        request = self.request(self.host.allocated(bus=1))
        host_arqs.acquire(request)
        [uuid] = self.make_arqs(1)
        [bound] = client_arqs.bind(
            {uuid: self.place(instance_uuid=request.instance_uuid)}
        )
        self.assertEqual('Bound', bound['state'])

    def test_a_silent_host_gets_nothing(self) -> None:
        other = reports.SimulatedHost('compute-2')
        self.silence()
        other.report()
        here, there = self.make_arqs(2)
        client_arqs.bind(
            {
                here: self.place(),
                there: {
                    **self.place(other.rp_uuid()),
                    'hostname': 'compute-2',
                },
            }
        )
        self.assertEqual(
            ['BindFailed', 'Bound'],
            [client_arqs.get(uuid)['state'] for uuid in (here, there)],
        )
        self.assertEqual([there], list(self.taken().values()))
        self.assertIn(
            f'ARQ {here} of instance '
            f'{client_arqs.get(here)["instance_uuid"]} is '
            'BindFailed: host compute-1 has not reported for 180 s',
            self.log.output,
        )
        self.host.report()
        [again] = self.make_arqs(1)
        client_arqs.bind({again: self.place()})
        self.assertEqual('Bound', client_arqs.get(again)['state'])

    def test_a_controller_that_is_minutes_ahead_binds(self) -> None:
        ahead = schema.now() + datetime.timedelta(minutes=4)
        [uuid] = self.make_arqs(1)
        with fixtures.MonkeyPatch(
            'nova_accel.db.sql.schema.now', lambda: ahead
        ):
            [bound] = client_arqs.bind({uuid: self.place()})
            self.assertEqual('Bound', bound['state'])
            self.assertEqual('Bound', client_arqs.get(uuid)['state'])

    def test_one_of_two_hosts_is_silent(self) -> None:
        """An instance is on one host, but who knows."""
        other = reports.SimulatedHost('compute-2')
        self.silence()
        other.report()
        pair = self.make_arqs(2)
        place = self.place()
        client_arqs.bind(
            {
                pair[0]: place,
                pair[1]: {
                    **place,
                    'hostname': 'compute-2',
                    'device_rp_uuid': other.rp_uuid(),
                },
            }
        )
        self.assertEqual(
            {'BindFailed'}, {client_arqs.get(uuid)['state'] for uuid in pair}
        )
        self.assertEqual({}, self.taken())


class TestUnbindAndDelete(ArqTestCase):
    scenarios = database.SCENARIOS

    def test_unbind_and_bind_again(self) -> None:
        uuid = self.bound()
        for _again in range(2):
            client_arqs.unbind([uuid])
            found = client_arqs.get(uuid)
            self.assertEqual('Unbound', found['state'])
            for name in (
                'hostname',
                'device_rp_uuid',
                'instance_uuid',
                'attach_handle_uuid',
            ):
                self.assertIsNone(found[name])
        self.assertEqual({}, self.taken())
        [bound] = client_arqs.bind({uuid: self.place()})
        self.assertEqual('Bound', bound['state'])

    def test_unbind_of_a_failed_one(self) -> None:
        self.bound()
        [uuid] = self.make_arqs(1)
        client_arqs.bind({uuid: self.place()})
        client_arqs.unbind([uuid])
        [bound] = client_arqs.bind({uuid: self.place(self.host.rp_uuid(1))})
        self.assertEqual('Bound', bound['state'])

    def test_unbind_of_one_that_was_never_bound(self) -> None:
        [uuid] = self.make_arqs(1)
        client_arqs.unbind([uuid])
        self.assertEqual('Unbound', client_arqs.get(uuid)['state'])
        [bound] = client_arqs.bind({uuid: self.place()})
        self.assertEqual('Bound', bound['state'])

    def test_unbind_refused(self) -> None:
        bound = self.bound()
        before = self.everything()
        uuid = uuidutils.generate_uuid()
        error = self.assertRaises(
            exceptions.NotFound, client_arqs.unbind, [bound, uuid]
        )
        self.assertIn(uuid, str(error))
        self.assertEqual(before, self.everything())

    def test_delete(self) -> None:
        first, second, third = self.make_arqs(3)
        client_arqs.delete_by_uuids([first, third])
        self.assertEqual(
            [second], [arq['uuid'] for arq in client_arqs.get_all()]
        )

    def test_delete_of_all_or_none(self) -> None:
        own = self.make_arqs(2)
        [other] = [
            arq['uuid'] for arq in client_arqs.create('fpga', OTHER_PROJECT)
        ]
        missing = uuidutils.generate_uuid()
        before = self.everything()
        for uuids, culprit in (
            ([*own, missing], missing),
            ([missing, *own], missing),
            ([own[0], other, own[1]], other),
        ):
            error = self.assertRaises(
                exceptions.NotFound,
                client_arqs.delete_by_uuids,
                uuids,
                base.PROJECT,
            )
            self.assertEqual(
                f'ExtArq not found with uuid={culprit}', str(error)
            )
            self.assertEqual(before, self.everything())

    def test_nova_deletes_what_is_left(self) -> None:
        uuids = self.make_arqs(2)
        missing = uuidutils.generate_uuid()
        client_arqs.delete_by_uuids([missing, *uuids], bound_allowed=True)
        self.assertEqual([], client_arqs.get_all())
        self.assertRaises(
            exceptions.NotFound,
            client_arqs.delete_by_uuids,
            [missing, *uuids],
            bound_allowed=True,
        )

    def test_delete_of_a_bound_one(self) -> None:
        uuid = self.bound()
        instance_uuid = client_arqs.get(uuid)['instance_uuid']
        error = self.assertRaises(
            exceptions.Conflict, client_arqs.delete_by_uuids, [uuid]
        )
        self.assertEqual(
            f'ARQ {uuid} is bound to instance {instance_uuid}. Use the '
            'Compute API to manage instance accelerators.',
            str(error),
        )
        client_arqs.delete_by_uuids([uuid], bound_allowed=True)
        self.assertEqual([], client_arqs.get_all())
        self.assertEqual({}, self.taken())

    def test_delete_by_instance(self) -> None:
        uuid = self.bound()
        [other] = self.make_arqs(1)
        instance_uuid = client_arqs.get(uuid)['instance_uuid']
        client_arqs.delete_by_instance(instance_uuid, OTHER_PROJECT)
        self.assertEqual(2, len(client_arqs.get_all()))
        for _again in range(2):
            client_arqs.delete_by_instance(instance_uuid)
            self.assertEqual(
                [other], [arq['uuid'] for arq in client_arqs.get_all()]
            )
        self.assertEqual({}, self.taken())

    def test_what_the_host_acquired_is_left_to_it(self) -> None:
        request = self.request()
        [native] = host_arqs.acquire(request)
        before = self.everything()
        client_arqs.delete_by_instance(request.instance_uuid)
        for call in (
            lambda: client_arqs.unbind([native['uuid']]),
            lambda: client_arqs.delete_by_uuids(
                [native['uuid']], bound_allowed=True
            ),
        ):
            error = self.assertRaises(exceptions.Conflict, call)
            self.assertIn('held by host compute-1', str(error))
        self.assertEqual(before, self.everything())
