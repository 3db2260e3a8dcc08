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
import datetime
import functools
import os
import uuid

import fixtures
from keystoneauth1 import adapter
from oslo_serialization import jsonutils
import testtools

from nova_accel import exceptions
from nova_accel.client import accelerator_api as client
from nova_accel.conf import CONF
from nova_accel.db import client_arqs
from nova_accel.db import device
from nova_accel.db import device_profile
from nova_accel.db import findings
from nova_accel.db import host
from nova_accel.db import programming
from nova_accel.db import server_arqs
from nova_accel.model import arq_types
from nova_accel.model import finding
from nova_accel.model import host_binding
from nova_accel.model import host_contract
from nova_accel.model import host_orders
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.fpga import programming_record
from nova_accel.model.profiles import provider_allocation
from nova_accel.testing import accelerator_api
from nova_accel.testing import reports
from rig import capacity
from rig.serving import nova_conf

INSTANCE = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'

#: Of a large host, with a thousand functions each: forty where all is tested.
#: A part of a report takes longer the more parts were before it.
_CARDS = 40 if os.environ.get('HYPOTHESIS_PROFILE') == 'full' else 8


class TestAcceleratorApi(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.api = self.useFixture(accelerator_api.AcceleratorApi())
        self.host = reports.SimulatedHost('compute-1')
        self.client = self.api.client('compute-1')

    def report(self, host=None, orders_seen=None):
        host = host or self.host
        devices = [
            found.to_report(host.node_uuid, host.layout().rp_uuids)
            for found in host.devices()
        ]
        return self.client.report(
            host.node_uuid, 'service', str(host), devices, orders_seen
        )

    def acquire(
        self, attempt=1, profile='fpga', trait='CUSTOM_REGION0', **more
    ):
        return self.client.acquire(
            INSTANCE,
            arq_types.Role.ACTIVE,
            attempt,
            'project',
            profile,
            [
                provider_allocation.ProviderAllocation(
                    self.host.rp_uuid(), {'FPGA': 1}, frozenset({trait})
                )
            ],
            **more,
        )

    def test_orders_and_cleaning(self):
        host = dataclasses.replace(self.host, cleaned=True)
        first = self.report(host)
        self.client.cleaning(first.uncleaned, {}, first.revision)
        told = self.report(host, first.revision)
        self.assertEqual(host_orders.Orders(first.revision + 1), told)
        self.assertIsNone(self.report(host, told.revision))
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        (bound,) = self.acquire()
        device.set_status(host.device_uuid(), hardware.Status.MAINTAINING)
        self.client.release(INSTANCE, arq_types.Role.ACTIVE, 1)
        told = self.report(host, told.revision)
        handle = bound.handle.uuid
        self.assertEqual(
            host_orders.Orders(
                4, frozenset({host.device_uuid()}), frozenset({handle})
            ),
            told,
        )
        for failed in ('I/O error', '', '\0' * 9999):
            self.client.cleaning([], {handle: failed}, told.revision)
            self.assertEqual({handle}, self.report(host).uncleaned)
        self.client.cleaning([handle], {}, told.revision)
        self.assertEqual(
            host_orders.Orders(5, frozenset({host.device_uuid()})),
            self.report(host, told.revision),
        )

    def sent(self):
        """Of each request whether, and of how many devices, it tells."""
        sent = []
        call = self.client._request

        def record(method, path, json=None, **kwargs):
            sent.append(len(json['devices']) if 'devices' in json else None)
            # What web servers have to let through, says the manual.
            self.assertLess(len(jsonutils.dumps(json)), 2**23)
            return call(method, path, json=json, **kwargs)

        self.client._request = record
        return sent

    def units(self):
        return capacity.free_by_host().get(self.host.hostname, 0)

    def test_what_is_unchanged_is_not_sent_again(self):
        sent = self.sent()
        told = self.report()
        self.assertIsNone(self.report(orders_seen=told.revision))
        self.assertEqual(told, self.report(orders_seen=None))
        self.report(dataclasses.replace(self.host, regions=(2,)))
        self.assertEqual([1, None, None, 1], sent)
        self.assertEqual(2, self.units())

    def test_what_the_api_has_forgotten_is_sent_again(self):
        sent = self.sent()
        self.report()
        host.forget(self.host.hostname, -1)
        self.assertIsNotNone(self.report(orders_seen=0))
        self.assertEqual([1, None, 1], sent)
        self.assertEqual(1, self.units())

    def test_thousands_of_functions(self):
        """One host's, as large cards have them, through the whole API."""
        sent = self.sent()
        devices = [
            each for bus in range(_CARDS) for each in self.functions(bus)
        ]
        told = self.tell(devices, 'many')
        self.assertEqual(host_orders.Orders(0), told)
        self.assertEqual(len(devices), self.units())
        self.assertEqual(len(devices), sum(sent))
        self.assertLess(max(sent), 1025)
        self.assertEqual(host_orders.Orders(0), self.tell(devices, 'many'))
        self.assertIsNone(sent.pop())

    def test_a_part_that_is_gone(self):
        devices = [each for bus in range(3) for each in self.functions(bus)]
        self.tell(devices, 'many')
        self.tell(devices[1000:], 'fewer')
        self.assertEqual(2000, self.units())
        self.tell([], 'none')
        self.assertEqual(0, self.units())

    def functions(self, bus):
        """A thousand functions of a card, as the report has them."""

        def uuid(kind, number):
            return f'{kind:08}-0000-4000-8000-{bus:06}{number:06}'

        def derived(number, *parts):
            return naming.derived_uuid(
                self.host.node_uuid, f'pci_{bus}_{number}', *parts
            )

        def address(number):
            return pci_address.PciAddress(
                bus, number // 256, number % 256 // 8, number % 8
            )

        return [
            {
                'uuid': derived(number),
                'name': f'pci_{bus}_{number}',
                'type': 'QAT',
                'vendor_id': '8086',
                'vendor': 'Intel',
                'product_id': '37c9',
                'product': 'C62x',
                'address': str(address(number)),
                'driver': 'pci',
                'numa_node': 0,
                'fault': None,
                'attributes': {
                    'pci_class': '0b4000',
                    'upstream': '0000:00:01.0',
                },
                'link_sets': [],
                'deployables': [
                    {
                        'uuid': derived(number, 'deployable', 'qat'),
                        'name': 'qat',
                        'rp_uuid': uuid(4, 0),
                        'resource_class': 'CUSTOM_QAT',
                        'traits': ['CUSTOM_QAT_INTEL_C62X_VF'],
                        'is_cleaned': False,
                        'region': None,
                        'bitstream_id': None,
                        'attach_handles': [
                            {
                                'uuid': uuid(3, number),
                                'type': 'PCI',
                                'info': address(number).parts,
                            }
                        ],
                    }
                ],
            }
            for number in range(1000)
        ]

    def tell(self, devices, digest):
        return self.client.report(
            self.host.node_uuid, 'service', digest, devices
        )

    def test_findings_are_in_the_last_part(self):
        found = finding.Finding(finding.Kind.MDEV, 'x').to_dict()
        call = self.client._request
        told = []

        def note(*args, **kwargs):
            told.append(kwargs['json'].get('findings'))
            return call(*args, **kwargs)

        self.client._request = note
        self.client.report(
            self.host.node_uuid,
            'service',
            'more',
            self.functions(0) + self.functions(1),
            None,
            [found],
        )
        self.assertLess(1, len(told))
        self.assertEqual([None] * (len(told) - 1) + [[found]], told)
        self.assertEqual([found], [each.to_dict() for each in findings.read()])

    def test_a_report_that_is_cut_short(self):
        few = self.functions(0)
        self.tell(few, 'few')
        devices = few + self.functions(1)
        call = self.client._request
        answers = []

        def fail_later(*args, **kwargs):
            answers.append(None)
            if len(answers) == 3:
                raise exceptions.ServiceUnavailable('away')
            return call(*args, **kwargs)

        self.client._request = fail_later
        self.assertRaises(
            exceptions.ServiceUnavailable, self.tell, devices, 'more'
        )
        self.client._request = call
        # What the API has is neither the one nor the other.
        self.tell(few, 'few')
        self.assertEqual(1000, self.units())
        self.tell(devices, 'more')
        self.assertEqual(2000, self.units())

    def test_parts_of_another_report(self):
        facts = {
            'node_uuid': self.host.node_uuid,
            'service_host': 'service',
            'orders_seen': None,
            'contract': host_contract.NEWEST,
        }
        (one, two, *_more) = self.functions(0)
        first = {**facts, 'digest': 'a', 'devices': [one], 'part': 0}
        last = {**facts, 'devices': [two], 'part': 1, 'others': [one['uuid']]}
        path = f'/hosts/{self.host.hostname}'
        self.client._call('PUT', path, json=first)
        for refused in (
            {**last, 'digest': 'b'},
            {**last, 'digest': 'a', 'others': [INSTANCE]},
        ):
            error = self.assertRaises(
                exceptions.Conflict,
                self.client._call,
                'PUT',
                path,
                json=refused,
            )
            self.assertIn('begin the report again', str(error))
        self.assertEqual(1, self.units())
        self.client._call('PUT', path, json={**last, 'digest': 'a'})
        self.assertEqual(2, self.units())

    def test_cleaning_of_what_is_not_known(self):
        self.report()
        for cleaned, failed in (([INSTANCE], {}), ([], {INSTANCE: 'why'})):
            error = self.assertRaises(
                exceptions.NotFound, self.client.cleaning, cleaned, failed, 1
            )
            self.assertIn(INSTANCE, str(error))

    def test_what_was_reported_can_be_acquired_and_released(self):
        self.report()
        device_profile.create(
            'fpga',
            [
                {
                    'resources:FPGA': '1',
                    'trait:CUSTOM_REGION0': 'required',
                    'accel:function_name': 'gzip',
                }
            ],
        )
        (bound,) = self.acquire()
        ((handle,),) = (
            deployable.handles
            for device in self.host.devices()
            for deployable in device.deployables
        )
        self.assertEqual(
            (
                arq_types.State.BOUND,
                'fpga',
                0,
                'gzip',
                self.host.rp_uuid(),
                handle,
            ),
            (
                bound.state,
                bound.device_profile_name,
                bound.device_profile_group_id,
                bound.group['accel:function_name'],
                bound.device_rp_uuid,
                bound.handle,
            ),
        )
        self.assertEqual((bound,), self.acquire())
        self.client.release(INSTANCE, arq_types.Role.ACTIVE, 1)
        self.client.release(INSTANCE, arq_types.Role.ACTIVE, 1)

    def test_groups_of_no_profile_can_be_acquired(self):
        self.report()
        group = {'resources:FPGA': '1', 'accel:function_name': 'gzip'}
        (bound,) = self.acquire(profile=[group])
        self.assertEqual(
            ('', 0, group),
            (
                bound.device_profile_name,
                bound.device_profile_group_id,
                bound.group,
            ),
        )
        self.assertEqual((bound,), self.acquire(profile=[group]))

    def test_the_nodes_of_the_guest_s_cells(self):
        self.report()
        profile = [{'resources:FPGA': '1', 'accel:numa_affinity': 'required'}]
        self.assertRaises(
            exceptions.AcceleratorsBusy,
            self.acquire,
            profile=profile,
            numa_nodes=frozenset({1}),
        )
        [_bound] = self.acquire(2, profile, numa_nodes=frozenset({0, 1}))

    def test_what_nova_has_bound_can_be_adopted_and_released(self):
        self.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        (made,) = client_arqs.create('fpga', 'project')
        error = self.assertRaises(
            exceptions.Conflict,
            self.client.adopt,
            INSTANCE,
            arq_types.Role.ACTIVE,
            1,
            [made['uuid']],
        )
        self.assertIn(made['uuid'], str(error))
        client_arqs.bind(
            {
                made['uuid']: {
                    'hostname': 'compute-1',
                    'instance_uuid': INSTANCE,
                    'device_rp_uuid': self.host.rp_uuid(),
                }
            }
        )
        (bound,) = self.client.adopt(
            INSTANCE, arq_types.Role.ACTIVE, 1, (made['uuid'],)
        )
        self.assertEqual(
            (made['uuid'], arq_types.State.BOUND, 'fpga'),
            (bound.uuid, bound.state, bound.device_profile_name),
        )
        self.client.release(INSTANCE, arq_types.Role.ACTIVE, 1)
        self.assertEqual([], client_arqs.get_all())

    def test_a_binding_gets_more_and_keeps_a_part(self):
        self.host = reports.SimulatedHost('compute-1', (1, 1))
        self.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        (old,) = self.acquire()
        add = functools.partial(
            self.client.additions,
            INSTANCE,
            arq_types.Role.ACTIVE,
            2,
            'project',
            [self.wanted()],
        )
        held = add()
        self.assertEqual(old, held[0])
        self.assertEqual(
            self.wanted(),
            arq_types.WantedArq(
                **{
                    name: getattr(held[1], name)
                    for name in self.wanted().to_dict()
                }
            ),
        )
        self.assertEqual(held, add())
        kept = dataclasses.replace(
            held[1], device_profile_name='other', device_profile_group_id=2
        )
        self.client.keep(
            INSTANCE, arq_types.Role.ACTIVE, 3, [kept], [old.uuid]
        )
        self.assertEqual([(old, True), (kept, False)], self.which_leave())
        self.client.keep(INSTANCE, arq_types.Role.ACTIVE, 4, [kept])
        self.assertEqual([(kept, False)], self.which_leave())
        self.client.keep(INSTANCE, arq_types.Role.ACTIVE, 5, [], [kept.uuid])
        self.assertEqual([(kept, True)], self.which_leave())
        self.assertRaises(exceptions.StaleAttempt, add)
        self.assertRaises(
            exceptions.InvalidRequest,
            self.client.keep,
            INSTANCE,
            arq_types.Role.ACTIVE,
            6,
            [],
        )

    def test_a_server_without_any_gets_one(self):
        self.host = reports.SimulatedHost('compute-1', (1, 1))
        self.report()
        add = functools.partial(
            self.client.additions,
            INSTANCE,
            arq_types.Role.ACTIVE,
            1,
            'project',
            [self.wanted()],
        )
        self.assertRaises(exceptions.NotFound, add, [INSTANCE])
        (held,) = add([])
        self.assertEqual(
            (held,),
            self.client.held_on('compute-1', INSTANCE, arq_types.Role.ACTIVE),
        )
        self.assertEqual(
            [('fpga', 'project')],
            [
                (row['device_profile_name'], row['project_id'])
                for row in client_arqs.get_all()
            ],
        )

    def wanted(self):
        """A unit of the second card."""
        return arq_types.WantedArq(
            'fpga', 0, {'resources:FPGA': '1'}, self.host.rp_uuid(1)
        )

    def which_leave(self):
        leaving = {
            row['uuid']: row['is_leaving'] for row in server_arqs.get(INSTANCE)
        }
        return [
            (arq, leaving[arq.uuid])
            for arq in self.client.held_on(
                'compute-1', INSTANCE, arq_types.Role.ACTIVE
            )
        ]

    def test_what_is_held_can_get_another_role(self):
        self.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        (bound,) = self.acquire()
        move = (
            INSTANCE,
            arq_types.Role.ACTIVE,
            arq_types.Role.OLD,
            2,
            (bound.uuid,),
        )
        self.client.move(*move)
        self.client.move(*move)
        self.assertEqual(
            [(bound.uuid, 'old')],
            [(row['uuid'], row['role']) for row in client_arqs.get_all()],
        )
        self.assertRaises(
            exceptions.StaleAttempt,
            self.client.release,
            INSTANCE,
            arq_types.Role.ACTIVE,
            1,
        )
        self.client.release(INSTANCE, arq_types.Role.OLD, 2)
        self.assertRaises(exceptions.StaleAttempt, self.client.move, *move)
        self.assertEqual([], client_arqs.get_all())

    def test_what_is_made_again_is_provisioning_until_then(self):
        self.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        (bound,) = self.acquire()
        for uuids, state in (([bound.uuid], 'Provisioning'), ([], 'Bound')):
            self.client.provisioning(uuids)
            self.assertEqual(
                [state],
                [row['state'] for row in client_arqs.get_all()],
            )

    def test_programming(self):
        asker = programming_record.Asker('project', 'user', INSTANCE)
        zone = datetime.timezone(datetime.timedelta(hours=2))
        begun = programming_record.Record(
            self.host.device_uuid(),
            INSTANCE,
            'region0',
            INSTANCE,
            asker,
            datetime.datetime(2026, 11, 21, 14, 0, 0, 999999, zone),
        )
        ended = dataclasses.replace(
            begun,
            failure='\0' * 9999,
            finished_at=begun.started_at + datetime.timedelta(minutes=1),
        )
        for record, finished_at, failure in (
            (begun, None, None),
            (begun, None, None),
            (ended, '2026-11-21T12:01:00+00:00', '?' * 1023),
        ):
            self.client.programming(record)
            (row,) = programming.get_all(hostname='compute-1')
            self.assertEqual(
                (
                    record.uuid,
                    INSTANCE,
                    'region0',
                    INSTANCE,
                    INSTANCE,
                    'project',
                    'user',
                    '2026-11-21T12:00:00+00:00',
                    failure,
                ),
                (
                    row['uuid'],
                    row['device_uuid'],
                    row['region'],
                    row['bitstream_id'],
                    row['instance_uuid'],
                    row['project_id'],
                    row['user_id'],
                    row['started_at'].isoformat(),
                    row['failure'],
                ),
            )
            self.assertEqual(
                finished_at,
                row['finished_at'] and row['finished_at'].isoformat(),
            )
        error = self.assertRaises(
            exceptions.Conflict,
            self.api.client('compute-2').programming,
            ended,
        )
        self.assertIn('compute-1', str(error))

    def test_what_is_held_on_another_host(self):
        self.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        bound = self.acquire()
        other = client.AcceleratorApi(self.client._adapter, 'compute-2')
        for hostname, held in (('compute-1', bound), ('compute-2', ())):
            self.assertEqual(
                held, other.held_on(hostname, INSTANCE, arq_types.Role.ACTIVE)
            )

    def test_what_the_host_has_is_listed(self):
        self.report()
        self.assertEqual([], self.client.bindings())
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        (bound,) = self.acquire()
        (listed,) = self.client.bindings()
        self.assertEqual(
            (INSTANCE, arq_types.Role.ACTIVE, 1, (bound.uuid,), (bound,)),
            (
                listed.instance_uuid,
                listed.role,
                listed.attempt,
                listed.arq_uuids,
                listed.arqs,
            ),
        )
        self.assertEqual([], self.api.client('compute-2').bindings())

    def test_left_mdevs(self):
        self.report()
        self.assertEqual(frozenset(), self.client.listing().left_mdevs)
        self.client._call = lambda *_args: {
            'bindings': [],
            'left_mdevs': ['one'],
        }
        self.assertEqual(
            host_binding.Listing([], frozenset({'one'})),
            self.client.listing(),
        )

    def test_an_answer_that_is_malformed(self):
        for answer, fault in (
            (None, 'not an object'),
            ({'bindings': None}, 'bindings is None'),
            ({'bindings': [{}]}, 'bindings[0].arqs is missing'),
            ({'bindings': [], 'arqs': [{'uuid': []}]}, 'arqs[0].uuid is []'),
        ):
            self.client._call = lambda *_args, answer=answer: answer
            ask = (
                (lambda: self.client.held_on('x', INSTANCE, 'active'))
                if answer and 'arqs' in answer
                else self.client.listing
            )
            error = self.assertRaises(exceptions.ServiceUnavailable, ask)
            self.assertIn(fault, str(error))

    def test_what_nova_has_bound_can_be_deleted(self):
        self.report()
        device_profile.create('fpga', [{'resources:FPGA': '1'}])
        (made,) = client_arqs.create('fpga', 'project')
        client_arqs.bind(
            {
                made['uuid']: {
                    'hostname': 'compute-1',
                    'instance_uuid': INSTANCE,
                    'device_rp_uuid': self.host.rp_uuid(),
                }
            }
        )
        for _again in range(2):
            self.client.delete_unadopted(INSTANCE, (made['uuid'],))
            self.assertEqual([], client_arqs.get_all())

    def test_many_of_them_go_in_urls_that_web_servers_take(self):
        self.report()
        request = self.useFixture(
            fixtures.MockPatchObject(
                self.api.adapter, 'request', wraps=self.api.adapter.request
            )
        ).mock
        uuids = [str(uuid.UUID(int=number)) for number in range(100)]
        self.client.delete_unadopted(INSTANCE, uuids)
        asked = [
            call.kwargs['params']['arqs'] for call in request.call_args_list
        ]
        self.assertEqual(uuids, ','.join(asked).split(','))
        self.assertLess(max(map(len, asked)), 2000)

    def test_faults_arrive_as_what_they_were(self):
        error = self.assertRaises(exceptions.NotFound, self.acquire)
        self.assertIn('fpga', str(error))
        device_profile.create(
            'fpga',
            [{'resources:FPGA': '1', 'trait:CUSTOM_REGION0': 'required'}],
        )
        error = self.assertRaises(exceptions.NotFound, self.acquire)
        self.assertIn(self.host.rp_uuid(), str(error))
        self.report()
        self.assertRaises(
            exceptions.NoAssignment, self.acquire, trait='CUSTOM_OTHER'
        )
        self.acquire(attempt=5)
        self.assertRaises(exceptions.StaleAttempt, self.acquire, attempt=4)
        error = self.assertRaises(
            exceptions.InvalidRequest,
            self.client.release,
            'not-a-uuid',
            arq_types.Role.ACTIVE,
            1,
        )
        self.assertIn('not-a-uuid', str(error))

    def test_an_api_that_is_away(self):
        self.api.refuse = True
        self.assertRaises(exceptions.ServiceUnavailable, self.acquire)

    def test_an_answer_that_is_not_the_apis(self):
        class Proxy(adapter.Adapter):
            def request(self, *args, **kwargs):
                answer = accelerator_api.requests.Response()
                answer.status_code = 502
                answer._content = b'<html>Bad Gateway</html>'
                answer.request = accelerator_api.requests.Request('PUT')
                return answer

        broken = client.AcceleratorApi(Proxy(None), 'compute-1')
        error = self.assertRaises(
            exceptions.ServiceUnavailable,
            broken.release,
            INSTANCE,
            arq_types.Role.ACTIVE,
            1,
        )
        self.assertIn('502', str(error))


class TestAdapterFromConf(testtools.TestCase):
    def test_no_credentials(self):
        error = self.assertRaises(
            exceptions.ConfigurationError, client.adapter_from_conf
        )
        self.assertIn('[nova_accel_client] auth_type', str(error))

    def test_a_plugin_without_its_options(self):
        self.addCleanup(nova_conf.forget_credentials)
        CONF.set_override('auth_type', 'password', 'nova_accel_client')
        self.addCleanup(CONF.clear_override, 'auth_type', 'nova_accel_client')
        error = self.assertRaises(
            exceptions.ConfigurationError, client.adapter_from_conf
        )
        self.assertIn('[nova_accel_client]', str(error))
