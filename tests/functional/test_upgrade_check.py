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

"""What nova-accel-status reads of Nova's databases."""

import json

from nova import context as nova_context
from nova import objects
from nova import utils
from nova.db.main import api as main_db
from nova.db.main import models
from oslo_upgradecheck import upgradecheck
import sqlalchemy as sa

from functional import base
from nova_accel.cmd import flavors_check
from nova_accel.cmd import fleet_check
from nova_accel.testing import devices

_QAT = {'vendor_id': '8086', 'product_id': '37c9'}
_NOVAS, _OURS = '0000:81:00.1', '0000:81:00.2'

_SUCCESS = (upgradecheck.Code.SUCCESS, None)


@main_db.pick_context_manager_writer
def _move(context, before, after):
    """Let Nova's PCI tracker have given away another function."""
    return context.session.execute(
        sa.update(models.PciDevice)
        .where(models.PciDevice.address == before)
        .values(address=after)
    ).rowcount


class TestUpgradeCheck(base.AcceleratorTestCase):
    hosts = ()

    def assert_warns(self, text, result):
        self.assertEqual(upgradecheck.Code.WARNING, result.code)
        self.assertIn(text, result.details)

    def test_flavors(self):
        self.create_profile('whole', [{'resources:PGPU': '8'}])
        self.create_profile('qat', [base.QAT])
        self.create_accel_flavor('qat', name='few')
        # From 2.86 on, Nova's API refuses a key that its driver reads.
        with utils.temporary_mutation(self.admin_api, microversion='2.85'):
            self.create_accel_flavor(
                'whole',
                name='told',
                extra_spec={'hw:maxphysaddr_mode': 'passthrough'},
            )
        for check in (
            flavors_check.check_addresses,
            flavors_check.check_keys,
        ):
            result = check()
            self.assertEqual(_SUCCESS, (result.code, result.details))
        self.create_accel_flavor('whole', name='many')
        self._create_flavor(
            name='typo', extra_spec={'nova-accel:device_profile': 'qat'}
        )
        self.assert_warns(
            'hw:maxphysaddr_mode: many.', flavors_check.check_addresses()
        )
        self.assert_warns(
            'typo (nova-accel:device_profile, which is to be '
            'nova_accel:device_profile)',
            flavors_check.check_keys(),
        )

    def test_a_device_that_nova_gives_away_too(self):
        self.flags(
            group='pci',
            device_spec=[json.dumps({**_QAT, 'address': '*:81:00.1'})],
            alias=[json.dumps({**_QAT, 'name': 'qat'})],
        )
        self.start_accelerated_compute(
            'host1', devices.pci_info(gpus=0, fpgas=0)
        )
        native = self.boot(
            self._create_flavor(extra_spec={'pci_passthrough:alias': 'qat:1'})
        )
        result = fleet_check.check_double()
        self.assertEqual(_SUCCESS, (result.code, result.details))
        context = nova_context.get_admin_context()
        moved = 0
        for cell in objects.CellMappingList.get_all(context):
            with nova_context.target_cell(context, cell) as cell_context:
                moved += _move(cell_context, _NOVAS, _OURS)
        self.assertEqual(1, moved)
        result = fleet_check.check_double()
        self.assertEqual(upgradecheck.Code.FAILURE, result.code)
        self.assertIn(
            f"on host1 Nova's PCI tracker has given {_OURS} to the server "
            f'{native["id"]}, but it is free',
            result.details,
        )
