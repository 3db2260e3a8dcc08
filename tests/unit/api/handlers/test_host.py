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

from nova_accel.api.handlers import host
from nova_accel.model import arq as arq_model
from nova_accel.model import attach_handle
from nova_accel.model import device
from nova_accel.model import pci_address
from unit.api import base

_PATH = f'/hosts/{base.HOSTNAME}'


class HostTest(base.ApiTestCase):

    def test_takes_what_the_model_reports(self) -> None:
        address = pci_address.PciAddress.parse('0000:81:00.0')
        handle = attach_handle.AttachHandle(
            base.numbered_uuid(9), address, 'nvidia-11')
        card = device.Device(
            name='pci_0000_81_00_0', type='VGPU', vendor_id='10de',
            product_id='1db4', vendor='NVIDIA', product='V100',
            address=address, driver='mdev', deployables=(
                device.Deployable('nvidia-11', 'VGPU', frozenset(base.TRAITS),
                                  (handle,)),))
        report = card.to_report(
            base.NODE, {('pci_0000_81_00_0', 'nvidia-11'): base.RP})
        self.ok('PUT', _PATH, {**base.report(), 'devices': [report]},
                roles=base.SERVICE)
        self.create_profile('profile', {'resources:VGPU': '1'})
        arq = self.create_arq()
        self.bind(arq)
        shown = self.ok('GET', f'/accelerator_requests/{arq}')
        self.assertEqual(
            (str(arq_model.State.BOUND), 'MDEV', handle.uuid, handle.info),
            (shown['state'], shown['attach_handle_type'],
             shown['attach_handle_uuid'], shown['attach_handle_info']))

    def test_what_is_made_again_is_provisioning_until_then(self) -> None:
        self.report_host()
        self.create_profile('profile', {'resources:FPGA': '1'})
        arq = self.create_arq()
        self.bind(arq)
        for arqs, state in (([arq], 'Provisioning'), ([], 'Bound')):
            self.ok('PUT', f'{_PATH}/provisioning', {'arqs': arqs},
                    roles=base.SERVICE)
            self.assertEqual(state, self.ok(
                'GET', f'/accelerator_requests/{arq}')['state'])
        self.refused(403, 'PUT', f'{_PATH}/provisioning', {'arqs': []},
                     roles=base.MEMBER)
        for body in ({}, {'arqs': ['x']}, {'arqs': [arq, arq]}):
            self.refused(400, 'PUT', f'{_PATH}/provisioning', body,
                         roles=base.SERVICE)

    def test_may_be_repeated(self) -> None:
        for functions in (4, 4, 2, 4):
            self.report_host(functions)

    def test_takes_a_report_that_is_longer_than_a_tenants_request(
            self) -> None:
        handle = base.report()['devices'][0]['deployables'][0][
            'attach_handles'][0]
        report = base.report()
        report['devices'][0]['deployables'][0]['attach_handles'] = [
            {**handle, 'uuid': base.numbered_uuid(number)}
            for number in range(1000)]
        self.ok('PUT', _PATH, report, roles=base.SERVICE)
        self.refused(413, 'PUT', _PATH, roles=base.SERVICE,
                     raw=b' ' * (host.MAX_REPORT_BYTES + 1))

    def test_refuses_a_malformed_report(self) -> None:
        report = base.report()
        report['devices'][0]['address'] = '0000:0c:00.0\n'
        self.assertIn('devices/0/address', self.refused(
            400, 'PUT', _PATH, report, roles=base.SERVICE))
        self.refused(400, 'PUT', '/hosts/a%20b', base.report(),
                     roles=base.SERVICE)

    def test_does_not_take_a_handle_of_another_host(self) -> None:
        self.report_host()
        report = base.report()
        report['digest'] = 'another'
        answer = self.call('PUT', '/hosts/compute-2', report,
                           roles=base.SERVICE)
        self.assertEqual(409, answer.status_int, answer.text)
