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

"""What stands in for Nova's CyborgFixture: the accelerator API itself."""

from unittest import mock

import fixtures
from nova.tests.fixtures import cyborg as nova_cyborg
import webob

from nova_accel.model import attach_handle
from nova_accel.model import host_contract
from nova_accel.model import naming
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from rig import sample_devices

_PROFILES = ('fakedev-dp', 'fakedev-dp-port', 'fakedev-dp-multi')

#: A class of Nova's fixture, as Placement and its clients would spell it.
_SPELLING = {'resources:FPGA2': 'resources:CUSTOM_FPGA2'}


class Cyborg(fixtures.Fixture):
    """What Nova's tests ask of their fixture, asked of the accelerator API.

    Nova's client is left as it is. Attributes have the names of Nova's.

    :ivar mock_del_arqs: called with the uuid of an instance whenever a
        request to delete its ARQs has been answered with success
    """

    dp_name = nova_cyborg.CyborgFixture.dp_name
    trait = nova_cyborg.CyborgFixture.trait
    #: Nova's tests make a device for each.
    arq_list = nova_cyborg.CyborgFixture.arq_list

    def __init__(self):
        super().__init__()
        self.mock_del_arqs = mock.Mock()
        self._devices = {}

    def __call__(self):
        """Nova's tests make the fixture themselves, and ask its class too."""
        return self

    def connect(self, admin, service):
        """Where it asks, as admin and as nova-compute.

        :param admin: :class:`rig.loopback.clients.AcceleratorClient`
        """
        self._admin, self._service = admin, service

    def _setUp(self):
        for name in _PROFILES:
            (profile,) = nova_cyborg._get_device_profile(name, self.trait)
            self._admin.post(
                '/device_profiles',
                [
                    {
                        'name': name,
                        'groups': [
                            {
                                _SPELLING.get(key, key): str(value)
                                for key, value in group.items()
                            }
                            for group in profile['groups']
                        ],
                    }
                ],
            )

    def fake_get_arqs_for_instance(self, instance_uuid):
        """None of it is fake: it is what the API answers."""
        return self._admin.get(
            f'/accelerator_requests?instance={instance_uuid}'
        )['arqs']

    def report_device(self, hostname, node_uuid, rp_uuid, units):
        """Have the host report another device, with so many functions."""
        devices = self._devices.setdefault(hostname, [])
        bus = 0x0C + len(devices)
        name = f'pci_0000_{bus:02x}_00_0'
        found = sample_devices.fpga(
            bus,
            [
                hardware.Deployable(
                    'function',
                    'FPGA',
                    frozenset({self.trait}),
                    tuple(
                        attach_handle.AttachHandle(
                            naming.derived_uuid(node_uuid, name, str(number)),
                            pci_address.PciAddress(0, bus, 0, number),
                            physical_network='PHYNET1',
                        )
                        for number in range(1, units + 1)
                    ),
                )
            ],
        )
        devices.append(
            found.to_report(node_uuid, {(name, 'function'): rp_uuid})
        )
        self._service.put(
            f'/hosts/{hostname}',
            {
                'node_uuid': node_uuid,
                'service_host': hostname,
                'digest': f'{len(devices)} devices',
                'contract': host_contract.NEWEST,
                'devices': devices,
            },
        )

    def watch(self, application):
        """Wrap the service, to know of which instances ARQs are deleted."""

        def watched(environ, start_response):
            request = webob.Request(environ)
            deletes_arqs = (
                request.method == 'DELETE'
                and 'instance' in request.GET
                and request.path.endswith('/accelerator_requests')
            )
            response = request.get_response(application)
            if deletes_arqs and response.status_int == 204:
                self.mock_del_arqs(request.GET['instance'])
            return response(environ, start_response)

        return watched
