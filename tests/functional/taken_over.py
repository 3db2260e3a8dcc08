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

"""Two hosts whose servers got their accelerators from a Cyborg.

Nova's own driver makes the guests, and Nova's own client binds their ARQs: to
handles of a database that is as after an import. Then a host is switched to
nova_accel.
"""

import fixtures
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt import driver
import sqlalchemy as sa

from functional import test_live_migration
from nova_accel.cmd import audit
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.profiles import device_profile
from rig import imported_rows

GPU = '0000:81:00.0'
MDEV_TYPE = 'nvidia-11'
#: As many as the card makes.
VGPUS = 16

#: Resource class -> the functions of each host.
FUNCTIONS = {
    'FPGA': [f'0000:82:00.{number}' for number in (1, 2)],
    'CUSTOM_QAT': [
        f'0000:83:{number // 8:02x}.{number % 8}' for number in range(1, 9)
    ],
}


class TakenOverTestCase(test_live_migration.LiveMigrationTestCase):
    """Both hosts are Cyborg's at first.

    :cvar flavor_key: Cyborg's
    :cvar functions: resource class -> its functions
    """

    hosts = ()
    both_hosts = ('host1', 'host2')
    flavor_key = device_profile.CYBORG_FLAVOR_KEY
    functions = FUNCTIONS

    def setUp(self):
        super().setUp()
        # The tests' own databases are set up.
        self.useFixture(
            fixtures.MonkeyPatch('nova_accel.cmd.cells.connect', lambda: None)
        )
        self.flags(compute_driver='libvirt.LibvirtDriver')
        # So that Cyborg's providers serve what a profile asks for.
        self.flags(cyborg_compatible=False, group='nova_accel')
        self.cyborgs = {}
        for name in self.functions:
            if name.startswith('CUSTOM_'):
                self.placement.put(
                    f'/resource_classes/{name}', None, version='1.7'
                )
        for host in self.both_hosts:
            self.start_accelerated_compute(host)
            self.cyborgs[host] = self._providers(host)
            for provider in self.cyborgs[host]:
                self._offer(provider)
            with engine.writer() as connection:
                imported_rows.add_host(connection, host, self.cyborgs[host])
        self.hosts = self.both_hosts

    def need_mdevs_of_cyborg(self):
        """Nova 33 itself gives no guest a mediated device of Cyborg's."""
        if not hasattr(driver.LibvirtDriver, '_allocate_cyborg_mdevs'):
            self.skipTest('this Nova does not attach mdevs of Cyborg')

    def _providers(self, host):
        return [
            *(
                imported_rows.Provider(
                    host,
                    function,
                    resource_class,
                    physical_network=(
                        'physnet1' if resource_class == 'CUSTOM_NIC' else None
                    ),
                )
                for resource_class, functions in self.functions.items()
                for function in functions
            ),
            imported_rows.Provider(
                host, GPU, 'VGPU', units=VGPUS, mdev_type=MDEV_TYPE
            ),
        ]

    def _offer(self, provider):
        """Have Placement know it."""
        for method, path, body in (
            (
                self.placement.post,
                '/resource_providers',
                {
                    'name': provider.name,
                    'uuid': provider.uuid,
                    'parent_provider_uuid': self.compute_rp_uuids[
                        provider.hostname
                    ],
                },
            ),
            (
                self.placement.put,
                f'/resource_providers/{provider.uuid}/inventories',
                {
                    'resource_provider_generation': 0,
                    'inventories': {
                        provider.resource_class: {
                            'total': provider.units,
                            'max_unit': provider.units,
                        }
                    },
                },
            ),
        ):
            answer = method(path, body, version='1.14')
            self.assertLess(answer.status, 300, answer.body)

    def stop_cyborg(self):
        """It is imported: none of its hosts has ever reported."""
        with engine.writer() as connection:
            for host in self.both_hosts:
                imported_rows.forget_reports(connection, host)
        self.flags(cyborg_compatible=True, group='nova_accel')

    def switch(self, host):
        """Its nova-compute is started with our driver, and reports."""
        self.flags(compute_driver='nova_accel.LibvirtDriver')
        self.restart_compute_service(host)
        self.settle(host)
        self._run_periodics()

    def move_allocations(self, host):
        """From Cyborg's providers to ours, as the import's command does."""
        with engine.reader() as connection:
            rows = connection.execute(
                sa.select(
                    schema.ARQS.c.instance_uuid,
                    schema.ARQS.c.device_rp_uuid,
                    schema.ARQS.c.resource_class,
                ).where(schema.ARQS.c.hostname == host)
            ).all()
        cyborgs = {provider.uuid for provider in self.cyborgs[host]}
        for consumer in {row.instance_uuid for row in rows}:
            path = f'/allocations/{consumer}'
            allocation = self.placement.get(path, version='1.28').body
            found = {
                rp_uuid: {'resources': each['resources']}
                for rp_uuid, each in allocation['allocations'].items()
                if rp_uuid not in cyborgs
            }
            for row in rows:
                if row.instance_uuid == consumer:
                    amounts = found.setdefault(
                        row.device_rp_uuid, {'resources': {}}
                    )['resources']
                    amounts[row.resource_class] = (
                        amounts.get(row.resource_class, 0) + 1
                    )
            answer = self.placement.put(
                path,
                {
                    'allocations': found,
                    'project_id': allocation['project_id'],
                    'user_id': allocation['user_id'],
                    'consumer_generation': allocation['consumer_generation'],
                },
                version='1.28',
            )
            self.assertEqual(204, answer.status, answer.body)
        for rp_uuid in cyborgs:
            answer = self.placement.delete(
                f'/resource_providers/{rp_uuid}/inventories', version='1.14'
            )
            self.assertEqual(204, answer.status, answer.body)

    def take_over(self, host):
        self.switch(host)
        self.move_allocations(host)

    def boot_with_units(self, host, resource_class, units=1, **kwargs):
        """A server with so many units, of a profile of its own."""
        name = f'{units}_{resource_class}'
        if name not in self._profiles:
            # Each function of Cyborg's is a provider.
            self.create_profile(
                name,
                [{'resources:VGPU': str(units)}]
                if resource_class == 'VGPU'
                else [{f'resources:{resource_class}': '1'}] * units,
            )
            self._profiles[name] = self.create_accel_flavor(name, name=name)
        return self.boot(self._profiles[name], host=host, **kwargs)

    @property
    def _profiles(self):
        return vars(self).setdefault('profiles_by_name', {})

    def devices_of(self, *servers):
        """Server's uuid -> the devices of its guest."""
        return {server['id']: self.guest_devices(server) for server in servers}

    def assert_taken_over(self, server, devices):
        """The host has made its own all that the guest has, and it alone."""
        host = self.api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']
        self.assertEqual(devices, self.guest_devices(server))
        self.assertEqual({(host, 'active'): devices}, self.held(server))
        held = self.computes[host].driver._accelerators.attachments.held
        self.assertEqual(
            devices,
            sorted(
                part
                for arq in held.arqs_of(server['id'])
                for part in arq.handle.parts
            ),
        )

    def domains(self, host):
        """All guests of a host, as libvirt has them."""
        return self.connection(host).listAllDomains(
            fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
            | fakelibvirt.VIR_CONNECT_LIST_DOMAINS_INACTIVE
        )

    def assert_none_twice(self, host):
        """No two guests of a host have a device, and no guest has one twice.

        :returns: all that guests have
        """
        found = [
            device
            for domain in self.domains(host)
            for device in self.guest_devices({'id': domain.UUIDString()})
        ]
        self.assertEqual(sorted(set(found)), sorted(found))
        return found

    def assert_placement_agrees(self, host):
        """Each of our providers has allocated what ARQs have of it."""
        with engine.reader() as connection:
            bound = dict(
                connection.execute(
                    sa.select(schema.ARQS.c.device_rp_uuid, sa.func.count())
                    .where(schema.ARQS.c.hostname == host)
                    .group_by(schema.ARQS.c.device_rp_uuid)
                )
                .tuples()
                .all()
            )
        providers = self.accelerator_providers(host)
        self.assertEqual(
            bound,
            {
                provider['uuid']: sum(provider['usage'].values())
                for provider in providers
                if sum(provider['usage'].values())
            },
        )
        totals = {}
        for provider in providers:
            self.assertFalse(any(provider['reserved'].values()))
            for resource_class, total in provider['inventory'].items():
                totals[resource_class] = totals.get(resource_class, 0) + total
        self.assertEqual({'FPGA': 2, 'CUSTOM_QAT': 8, 'VGPU': VGPUS}, totals)

    def assert_no_unit_left(self, host, resource_class):
        failed = self.boot_with_units(
            host, resource_class, expected_state='ERROR'
        )
        self.assertIn('No valid host', failed['fault']['message'])
        self._delete_server(failed)

    def assert_nothing_is_wrong(self):
        self.assertEqual([], list(audit.find()))
