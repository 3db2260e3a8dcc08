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

import functools
import operator
from typing import Any

from nova_accel.api.routes import host
from nova_accel.db import host as host_db
from nova_accel.db import programming
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import bounds
from nova_accel.model import host_contract
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from rig import sample_devices
from unit.api import base
from unit.api.compute import test_bound_event

_PATH = f'/hosts/{base.HOSTNAME}'


class HostTest(base.ApiTestCase):
    def test_a_name_that_forges_a_line_of_the_log(self) -> None:
        for name in ('service_host', 'digest'):
            self.refused(
                400,
                'PUT',
                _PATH,
                {**base.report(), name: 'x\nCRITICAL all is lost\x1b[2J'},
                roles=base.SERVICE,
            )
        self.assertEqual([], host_db.get_all(1))

    def test_takes_what_the_model_reports(self) -> None:
        address = pci_address.PciAddress.parse('0000:81:00.0')
        handle = attach_handle.AttachHandle(
            base.numbered_uuid(9), address, 'nvidia-11'
        )
        card = sample_devices.vgpu_card(
            0x81,
            [
                hardware.Deployable(
                    'nvidia-11', 'VGPU', frozenset(base.TRAITS), (handle,)
                )
            ],
        )
        report = card.to_report(
            base.NODE, {('pci_0000_81_00_0', 'nvidia-11'): base.RP}
        )
        self.ok(
            'PUT',
            _PATH,
            {**base.report(), 'devices': [report]},
            roles=base.SERVICE,
        )
        self.create_profile('profile', {'resources:VGPU': '1'})
        arq = self.create_arq()
        self.bind(arq)
        shown = self.ok('GET', f'/accelerator_requests/{arq}')
        self.assertEqual(
            (str(arq_types.State.BOUND), 'MDEV', handle.uuid, handle.info),
            (
                shown['state'],
                shown['attach_handle_type'],
                shown['attach_handle_uuid'],
                shown['attach_handle_info'],
            ),
        )

    def test_the_event_again_of_what_is_made_again(self) -> None:
        nova = self.useFixture(test_bound_event.Nova())
        self.report_host(2)
        self.create_profile('profile', {'resources:FPGA': '1'})
        made, other = self.create_arq(), self.create_arq()
        instance = nova.add('host1')
        self.bind(made, other, instance=instance)
        for arqs, expected in (
            ([made], []),
            (
                [],
                [
                    test_bound_event.expected(
                        {'uuid': made, 'instance_uuid': instance}
                    )
                ],
            ),
            ([], []),
        ):
            self.ok(
                'PUT',
                f'{_PATH}/provisioning',
                {'arqs': arqs},
                roles=base.SERVICE,
            )
            self.assertEqual(expected, nova.got('host1'))
            nova.events.clear()

    def test_the_event_of_what_cannot_be_made_again(self) -> None:
        """Somebody may wait for it, and hears of it at once."""
        nova = self.useFixture(test_bound_event.Nova())
        self.report_host()
        self.create_profile('profile', {'resources:FPGA': '1'})
        arq, instance = self.create_arq(), nova.add('host1')
        self.bind(arq, instance=instance)
        self.ok(
            'PUT',
            f'{_PATH}/provisioning',
            {'arqs': [arq], 'failed': [arq]},
            roles=base.SERVICE,
        )
        self.assertEqual(
            [
                test_bound_event.expected(
                    {'uuid': arq, 'instance_uuid': instance}, 'failed'
                )
            ],
            nova.got('host1'),
        )

    def test_what_is_made_again_is_provisioning_until_then(self) -> None:
        self.report_host()
        self.create_profile('profile', {'resources:FPGA': '1'})
        arq = self.create_arq()
        self.bind(arq)
        for arqs, state in (([arq], 'Provisioning'), ([], 'Bound')):
            self.ok(
                'PUT',
                f'{_PATH}/provisioning',
                {'arqs': arqs},
                roles=base.SERVICE,
            )
            self.assertEqual(
                state, self.ok('GET', f'/accelerator_requests/{arq}')['state']
            )
        self.refused(
            403,
            'PUT',
            f'{_PATH}/provisioning',
            {'arqs': []},
            roles=base.MEMBER,
        )
        for body in (
            {},
            {'arqs': ['x']},
            {'arqs': [arq, arq]},
            {'arqs': [], 'failed': ['x']},
            {'failed': [arq]},
        ):
            self.refused(
                400, 'PUT', f'{_PATH}/provisioning', body, roles=base.SERVICE
            )

    def test_may_be_repeated(self) -> None:
        for functions in (4, 4, 2, 4):
            self.report_host(functions)

    def test_takes_a_report_that_is_longer_than_a_tenants_request(
        self,
    ) -> None:
        handle = base.report()['devices'][0]['deployables'][0][
            'attach_handles'
        ][0]
        report = base.report()
        report['devices'][0]['deployables'][0]['attach_handles'] = [
            {**handle, 'uuid': base.numbered_uuid(number)}
            for number in range(1000)
        ]
        self.ok('PUT', _PATH, report, roles=base.SERVICE)
        self.refused(
            413,
            'PUT',
            _PATH,
            roles=base.SERVICE,
            raw=b' ' * (host.MAX_REPORT_BYTES + 1),
        )

    def test_an_unchanged_report_needs_no_orders(self) -> None:
        told = self.report_host()
        self.assertEqual(
            {'orders': {'revision': 0, 'disabled': [], 'uncleaned': []}}, told
        )
        for seen, status in ((0, 204), (1, 200), (None, 200)):
            answer = self.call(
                'PUT',
                _PATH,
                {**base.report(), 'orders_seen': seen},
                roles=base.SERVICE,
            )
            self.assertEqual(status, answer.status_int)

    def test_says_which_field_is_unknown(self) -> None:
        places: tuple[tuple[Any, ...], ...] = (
            (),
            ('devices', 0),
            ('devices', 0, 'deployables', 0),
            ('devices', 0, 'deployables', 0, 'attach_handles', 1),
            ('devices', 0, 'deployables', 0, 'attach_handles', 1, 'info'),
        )
        for place in places:
            report = base.report()
            functools.reduce(operator.getitem, place, report)['frob'] = 1
            reason = self.refused(
                400, 'PUT', _PATH, report, roles=base.SERVICE
            )
            self.assertIn("'frob' was unexpected", reason)
            self.assertTrue(reason.startswith('/'.join(map(str, place))))

    def test_cleaning(self) -> None:
        self.clean_host(functions=1)
        self.create_profile()
        handle = base.numbered_uuid(16)
        good = {'revision': 1, 'cleaned': [handle], 'failed': {}}
        for _again in range(2):
            arq = self.create_arq()
            self.bind(arq)
            self.ok('DELETE', f'/accelerator_requests?arqs={arq}', token=True)
            told = self.report_host(functions=1, is_cleaned=True)['orders']
            self.assertEqual([handle], told['uncleaned'])
            self.ok(
                'PUT',
                f'{_PATH}/cleaning',
                {**good, 'revision': told['revision']},
                roles=base.SERVICE,
            )
        for status, path, body in (
            (404, _PATH, {**good, 'cleaned': [base.NOBODY]}),
            (
                404,
                _PATH,
                {**good, 'cleaned': [], 'failed': {base.NOBODY: 'why'}},
            ),
            (409, '/hosts/compute-2', good),
            (400, _PATH, {**good, 'failed': {handle: 'why'}}),
            (
                400,
                _PATH,
                {**good, 'cleaned': [], 'failed': {handle: 'x' * 1024}},
            ),
            (400, _PATH, {**good, 'revision': -1}),
            (400, _PATH, {**good, 'frob': 1}),
            (400, _PATH, {'cleaned': [handle], 'failed': {}}),
            (400, '/hosts/a%20b', good),
        ):
            self.refused(
                status, 'PUT', f'{path}/cleaning', body, roles=base.SERVICE
            )
        self.assertIn(
            base.NOBODY,
            self.refused(
                404,
                'PUT',
                f'{_PATH}/cleaning',
                {**good, 'cleaned': [base.NOBODY]},
                roles=base.SERVICE,
            ),
        )

    def test_refuses_a_malformed_report(self) -> None:
        report = base.report()
        report['devices'][0]['address'] = '0000:0c:00.0\n'
        self.assertIn(
            'devices/0/address',
            self.refused(400, 'PUT', _PATH, report, roles=base.SERVICE),
        )
        self.refused(
            400, 'PUT', '/hosts/a%20b', base.report(), roles=base.SERVICE
        )

    def test_link_sets_are_bounded(self) -> None:
        most = [
            str(number) * bounds.MAX_LINK_SET
            for number in range(bounds.MAX_LINK_SETS)
        ]
        for sets, is_accepted in (
            (most, True),
            ([], True),
            ([*most, '8'], False),
            (['0' * (bounds.MAX_LINK_SET + 1)], False),
            (['0', '0'], False),
            ([''], False),
            (['\0'], False),
        ):
            report = base.report()
            report['devices'][0]['link_sets'] = sets
            if is_accepted:
                self.ok('PUT', _PATH, report, roles=base.SERVICE)
            else:
                self.assertIn(
                    'devices/0/link_sets',
                    self.refused(
                        400, 'PUT', _PATH, report, roles=base.SERVICE
                    ),
                )

    def test_does_not_take_a_handle_of_another_host(self) -> None:
        self.report_host()
        report = base.report()
        report['digest'] = 'another'
        answer = self.call(
            'PUT', '/hosts/compute-2', report, roles=base.SERVICE
        )
        self.assertEqual(409, answer.status_int, answer.text)

    def test_takes_no_uuid_that_is_of_another_compute_node(self) -> None:
        """Also of a device that its own host has not reported yet."""
        report = base.report()
        path = '/hosts/compute-2'
        report['node_uuid'] = base.NOBODY
        text = self.refused(409, 'PUT', path, report, roles=base.SERVICE)
        self.assertEqual(
            f'{base.DEVICE} of device pci_0000_0c_00_0 is not derived from '
            f'compute node {base.NOBODY}: host compute-2 may only report '
            'devices of its own',
            text,
        )
        self.report_host()

    def test_programming(self) -> None:
        path = f'{_PATH}/programmings/{base.NOBODY}'
        begun = {**base.RECORD, 'finished_at': None, 'failure': None}
        for body, finished in (
            (begun, False),
            (begun, False),
            (base.RECORD, True),
            (begun, True),
        ):
            answer = self.call('PUT', path, body, roles=base.SERVICE)
            self.assertEqual((204, b''), (answer.status_int, answer.body))
            [row] = programming.get_all()
            self.assertEqual(
                (base.NOBODY, base.HOSTNAME, finished),
                (row['uuid'], row['hostname'], row['finished_at'] is not None),
            )
        reason = self.refused(
            409, 'PUT', path.replace('-1/', '-2/'), begun, roles=base.SERVICE
        )
        self.assertIn(base.HOSTNAME, reason)
        for spoilt in (
            {'started_at': None},
            {'started_at': '2026'},
            {'started_at': '2026-13-21T12:00:00+00:00'},
            {'finished_at': '2026-11-21T25:00:00+00:00'},
            {'failure': 1},
            {'instance_uuid': 'x'},
            {'more': 1},
        ):
            self.refused(
                400, 'PUT', path, {**begun, **spoilt}, roles=base.SERVICE
            )
        self.refused(
            400, 'PUT', f'{_PATH}/programmings/x', begun, roles=base.SERVICE
        )


class ContractTest(base.ApiTestCase):
    def test_each_answer_to_a_host_names_it(self) -> None:
        for method, path, body in (
            ('PUT', _PATH, base.report()),
            ('PUT', _PATH, {}),
            ('GET', f'{_PATH}/instances', None),
            ('POST', _PATH, None),
        ):
            answer = self.call(method, path, body, roles=base.SERVICE)
            self.assertEqual(
                str(host_contract.NEWEST),
                answer.headers[host_contract.HEADER],
            )
        answer = self.call('GET', '/devices', roles=base.ADMIN)
        self.assertNotIn(host_contract.HEADER, answer.headers)

    def test_it_is_none_that_the_api_does_not_know(self) -> None:
        for contract, status in (
            (host_contract.FIRST, 200),
            (host_contract.NEWEST, 200),
            (host_contract.NEWEST + 1, 400),
            (-1, 400),
            ('1', 400),
        ):
            answer = self.call(
                'PUT',
                _PATH,
                {**base.report(), 'contract': contract},
                roles=base.SERVICE,
            )
            self.assertEqual(status, answer.status_int)
