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


"""The fleet as nova-accel-manage shows it, of real sources."""

import json

from oslo_utils import uuidutils

from functional import base
from functional import one_server
from nova_accel.cmd import cells
from nova_accel.cmd import database_fleet
from nova_accel.model import naming
from nova_accel.model.fleet import disagreement
from nova_accel.testing import devices

Kind = disagreement.Subject


class TestFleet(one_server.OneServerTestCase):
    hosts = ('host1', 'host2')

    def setUp(self):
        super().setUp()
        (self.provider,) = [
            provider
            for provider in self.accelerator_providers(self.host)
            if 'FPGA' in provider['inventory']
            and provider['uuid'] in self.allocations()
        ]

    def allocations(self, consumer=None):
        url = f'/allocations/{consumer or self.server["id"]}'
        return self.placement.get(url, version='1.28').body['allocations']

    def allocate(self, consumer, amount):
        """Let Placement count so many of the server's provider."""
        url = f'/allocations/{self.server["id"]}'
        body = self.placement.get(url, version='1.28').body
        if consumer == self.server['id']:
            body['allocations'].pop(self.provider['uuid'])
        else:
            body.update(allocations={}, consumer_generation=None)
        if amount:
            body['allocations'][self.provider['uuid']] = {
                'resources': {'FPGA': amount}
            }
        answer = self.placement.put(
            f'/allocations/{consumer}', body, version='1.28'
        )
        self.assertEqual(204, answer.status, answer.body)

    def findings(self):
        return [
            (each.kind, each.whose)
            for each in database_fleet.read(asks_placement=True).compared
        ]

    def test_a_server_is_in_its_rows(self):
        found = database_fleet.read(asks_placement=True)
        self.assertEqual((), found.compared)
        self.assertEqual(
            {'host1', 'host2'}, {host.name for host in found.hosts}
        )
        mine = [row for row in found.rows if row.state == 'used']
        self.assertEqual(
            sorted(arq['uuid'] for arq in self.arqs_before),
            sorted(row.arq.uuid for row in mine),
        )
        for row in mine:
            self.assertEqual(self.host, row.device.hostname)
            self.assertEqual(self.server['id'], row.arq.instance_uuid)
            self.assertEqual(self.server['name'], row.server.name)
            self.assertEqual(
                self.server['flavor']['original_name'], row.server.flavor
            )
            self.assertEqual(self.server['image']['id'], row.server.image)

    def test_a_resize_is_no_drift(self):
        flavor = self.create_accel_flavor('both', name='larger')
        self.act('resize', {'flavorRef': flavor})
        self.wait_for_status('VERIFY_RESIZE')
        self.assertEqual([], self.findings())
        self.act('confirmResize')
        self.wait_for_status('ACTIVE')
        self.assertEqual([], self.findings())

    def test_a_server_that_is_gone(self):
        (service,) = self.api.get_services(
            binary='nova-compute', host=self.host
        )
        self.computes[self.host].stop()
        self.api.put_service_force_down(service['id'], True)
        self.api.delete_server(self.server['id'])
        self._wait_until_deleted(self.server)
        self.assertEqual([(Kind.LEAK, self.server['id'])], self.findings())

    def test_what_placement_does_not_count(self):
        self.allocate(self.server['id'], 0)
        self.assertEqual(
            [(Kind.UNCOUNTED, self.server['id'])], self.findings()
        )

    def test_what_placement_counts_for_nobody(self):
        other = uuidutils.generate_uuid()
        free = [
            provider
            for provider in self.accelerator_providers(self.host)
            if 'FPGA' in provider['inventory']
            and provider['uuid'] not in self.allocations()
        ]
        if free:
            self.provider = free[0]
        else:
            self.delete(self.server)
        self.allocate(other, 1)
        self.assertEqual([(Kind.OVERCOUNTED, other)], self.findings())

    def test_a_provider_of_nobody(self):
        uuid = uuidutils.generate_uuid()
        self.placement.post(
            '/resource_providers',
            {'uuid': uuid, 'name': 'host9_accel_pci'},
            version='1.28',
        )
        self.placement.put(
            f'/resource_providers/{uuid}/traits',
            {
                'resource_provider_generation': 0,
                'traits': [naming.OWNERSHIP_TRAIT],
            },
            version='1.28',
        )
        self.assertEqual([(Kind.NOBODYS, uuid)], self.findings())


class TestNovasPciTracker(base.AcceleratorTestCase):
    """A function of Nova's, and seven of ours."""

    hosts = ()

    def test_what_it_has_given_away(self):
        ids = {'vendor_id': '8086', 'product_id': '37c9'}
        self.flags(
            group='pci',
            device_spec=[json.dumps({**ids, 'address': '*:81:00.1'})],
            alias=[json.dumps({**ids, 'name': 'qat'})],
        )
        self.start_accelerated_compute(
            'host1', devices.pci_info(gpus=0, fpgas=0)
        )
        self.boot_with({'resources:CUSTOM_QAT': '7'})
        self.assertEqual({}, cells.read([]).passed_through)
        native = self.boot(
            self._create_flavor(extra_spec={'pci_passthrough:alias': 'qat:1'})
        )
        self.assertEqual(
            {('host1', '0000:81:00.1'): native['id']},
            cells.read([]).passed_through,
        )
        # It is none of ours.
        self.assertEqual((), database_fleet.read(asks_placement=True).compared)
