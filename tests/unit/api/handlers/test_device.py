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

import json
from typing import Any

from unit.api import base

_UUID = base.DEVICE
_PATH = f'/devices/{_UUID}'


class DeviceTest(base.ApiTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.clean_host()

    def listed(self, query: str = '', **kwargs: Any) -> list[dict[str, Any]]:
        devices = self.ok('GET', f'/devices{query}', **kwargs)['devices']
        assert isinstance(devices, list)
        return devices

    def test_list_and_show(self) -> None:
        for version, more in (
            ('2.2', {}),
            ('2.3', {'status': 'enabled'}),
            (
                '2.4',
                {
                    'status': 'enabled',
                    'fault': None,
                    'attributes': {'firmware': '1.2.3'},
                    'unclean_attach_handles': [],
                },
            ),
        ):
            shown = self.ok('GET', _PATH, version=version)
            self.assertEqual([shown], self.listed(version=version))
            info = json.loads(shown.pop('std_board_info'))
            self.assertEqual(
                {
                    'product_id': '09c4',
                    'address': '0000:0c:00.0',
                    'numa_node': 0,
                    'driver': 'fake',
                },
                info,
            )
            self.assertIsNotNone(shown.pop('created_at'))
            self.assertEqual(
                {
                    'uuid': _UUID,
                    'type': 'FPGA',
                    'vendor': '8086',
                    'model': 'PAC_ARRIA10',
                    'vendor_board_info': 'INTEL',
                    'hostname': base.HOSTNAME,
                    'updated_at': None,
                    'links': [
                        {
                            'href': f'http://HOST/accelerator/v2{_PATH}',
                            'rel': 'self',
                        }
                    ],
                    **more,
                },
                shown,
            )

    def test_filters(self) -> None:
        for query, amount in (
            ('type=FPGA', 1),
            ('type=GPU', 0),
            ('vendor=8086', 1),
            ('vendor=0x8086', 1),
            ('vendor=INTEL', 0),
            (f'hostname={base.HOSTNAME}', 1),
            ('hostname=compute-2', 0),
            (f'type=FPGA&vendor=8086&hostname={base.HOSTNAME}', 1),
            ('type=FPGA&vendor=10de', 0),
        ):
            self.assertEqual(amount, len(self.listed(f'?{query}')), query)
        for query in ('status=enabled', 'type=a&type=b', 'type=%00'):
            self.refused(400, 'GET', f'/devices?{query}')

    def test_disable_and_enable(self) -> None:
        for call, status in (('disable', 'maintaining'),) * 2 + (
            ('enable', 'enabled'),
        ) * 2:
            answer = self.call('POST', f'{_PATH}/{call}')
            self.assertEqual((204, b''), (answer.status_int, answer.body))
            self.assertEqual(status, self.ok('GET', _PATH)['status'])
        self.assertIsNotNone(self.ok('GET', _PATH)['updated_at'])

    def test_the_host_is_told(self) -> None:
        self.ok('POST', f'{_PATH}/disable')
        self.assertEqual(
            {'orders': {'revision': 3, 'disabled': [_UUID], 'uncleaned': []}},
            self.report_host(is_cleaned=True),
        )

    def test_a_disabled_device_is_not_bound(self) -> None:
        self.create_profile()
        self.ok('POST', f'{_PATH}/disable')
        arq = self.create_arq()
        self.bind(arq)
        self.assertEqual(
            'BindFailed',
            self.ok('GET', f'/accelerator_requests/{arq}')['state'],
        )
        self.assertIn('4 disabled by an administrator', self.log.output)

    def test_what_is_unclean(self) -> None:
        self.create_profile()
        arq = self.create_arq()
        self.bind(arq)
        handle = self.ok('GET', f'/accelerator_requests/{arq}')[
            'attach_handle_uuid'
        ]
        self.ok('DELETE', f'/accelerator_requests?arqs={arq}', token=True)
        orders = self.report_host(is_cleaned=True)['orders']
        self.assertEqual([handle], orders['uncleaned'])
        for reason in ('being cleaned', 'not cleaned: I/O error'):
            self.assertEqual(
                [
                    {
                        'attach_handle_uuid': handle,
                        'deployable_name': 'region0',
                        'reason': reason,
                    }
                ],
                self.ok('GET', _PATH, version='2.4')['unclean_attach_handles'],
            )
            self.ok(
                'PUT',
                f'/hosts/{base.HOSTNAME}/cleaning',
                {
                    'revision': orders['revision'],
                    'cleaned': [],
                    'failed': {handle: 'I/O error'},
                },
                roles=base.SERVICE,
            )

    def test_its_fault(self) -> None:
        report = base.report()
        report['devices'][0]['fault'] = 'link down'
        self.ok('PUT', f'/hosts/{base.HOSTNAME}', report, roles=base.SERVICE)
        self.assertEqual(
            'link down', self.ok('GET', _PATH, version='2.4')['fault']
        )

    def test_unknown(self) -> None:
        path = f'/devices/{base.NOBODY}'
        for method, call in (
            ('GET', path),
            ('POST', f'{path}/disable'),
            ('POST', f'{path}/enable'),
        ):
            self.assertEqual(
                f'Device not found with uuid={base.NOBODY}',
                self.refused(404, method, call),
            )
        for call in ('/devices/x/disable', '/devices/x/enable'):
            self.assertIn(
                'unable to convert to uuid', self.refused(400, 'POST', call)
            )
        self.refused(400, 'GET', '/devices/x')
