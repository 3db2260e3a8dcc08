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

"""Mistakes that a server's owner reads in its fault."""

from collections.abc import Mapping

import fixtures
from nova import context as nova_context
from nova import exception
from nova import objects
import testscenarios

from nova_accel.db import device_profile
from nova_accel.model import naming
from nova_accel.scheduler import request_filter
from nova_accel.testing import database
from nova_accel.testing import reports
from nova_accel.testing import scheduling
from unit.mistakes import base

_mistake = base.mistake

_KEY = 'nova_accel:device_profile'

#: Nova cuts a fault after so many characters.
_MAX_FAULT = 255

_LONG = [f'CUSTOM_{letter * 100}' for letter in 'AB']


class TestFault(testscenarios.WithScenarios, base.MistakeTestCase):
    """A host has two FPGAs, each with one region."""

    groups: list[dict[str, str]] = [{'resources:FPGA': '1'}]
    extra_specs: Mapping[str, str] = {}

    scenarios = [
        _mistake(
            'a profile that does not exist',
            'device profile silver',
            'there is none of that name',
            extra_specs={_KEY: 'silver'},
        ),
        _mistake(
            'both keys',
            'the flavor has both nova_accel:device_profile and '
            'accel:device_profile',
            'it can have one of them',
            extra_specs={_KEY: 'gold', 'accel:device_profile': 'gold'},
        ),
        _mistake(
            'a key with a hyphen',
            'the flavor has nova_accel:device-profile, which is to be '
            'nova_accel:device_profile',
            'ask an administrator to correct it',
            extra_specs={'nova_accel:device-profile': 'gold'},
        ),
        _mistake(
            'a class without a device profile',
            'the flavor asks for FPGA=1 without a device profile',
            'a flavor asks for accelerators by nova_accel:device_profile',
            extra_specs={'resources:FPGA': '1'},
        ),
        _mistake(
            'a PCI tree that does not exist',
            'the flavor has nova_accel:pci_topology=hots',
            'which can be flat or host',
            extra_specs={'nova_accel:pci_topology': 'hots'},
        ),
        _mistake(
            'two units that are apart',
            'FPGA=2, which group 0 asks for; the largest has 1',
            'make it 2 groups of FPGA=1 in the device profile',
            groups=[{'resources:FPGA': '2'}],
        ),
        _mistake(
            'a trait that does not exist',
            'CUSTOM_REGION9',
            'a trait that it requires, which may be misspelt',
            groups=[
                {'resources:FPGA': '1', 'trait:CUSTOM_REGION9': 'required'}
            ],
        ),
        _mistake(
            'a class that no host has',
            'device_profile_0 (CUSTOM_QTA=1)',
            'no host has CUSTOM_QTA',
            groups=[{'resources:CUSTOM_QTA': '1'}],
        ),
        _mistake(
            'a trait too many',
            'no FPGA has all of CUSTOM_REGION0 and CUSTOM_REGION1',
            'nearest: 1 free without CUSTOM_REGION',
            groups=[
                {
                    'resources:FPGA': '1',
                    'trait:CUSTOM_REGION0': 'required',
                    'trait:CUSTOM_REGION1': 'required',
                }
            ],
        ),
        _mistake(
            'two long traits',
            f'no FPGA has {_LONG[0][:32]}',
            f'and {_LONG[1][:32]}',
            groups=[
                {
                    'resources:FPGA': '1',
                    **{f'trait:{trait}': 'required' for trait in _LONG},
                }
            ],
        ),
        _mistake(
            'our own trait is forbidden',
            'it forbids CUSTOM_NOVA_ACCEL',
            'which every accelerator has',
            groups=[
                {
                    'resources:FPGA': '1',
                    'trait:CUSTOM_NOVA_ACCEL': 'forbidden',
                }
            ],
        ),
    ]

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.useFixture(database.Database())
        self.placement = self.useFixture(scheduling.Placement())
        # The server is new.
        self.useFixture(
            fixtures.MockPatch(
                'nova.objects.InstanceMapping.get_by_instance_uuid',
                return_value=objects.InstanceMapping(cell_mapping=None),
            )
        )
        root = self.placement.add_provider('compute-1', {'VCPU': 8})
        host = reports.SimulatedHost('compute-1', regions=(2,))
        host.report()
        for number in range(2):
            self.placement.add_provider(
                f'compute-1_accel_{number}',
                {'FPGA': 1},
                root,
                [naming.OWNERSHIP_TRAIT, f'CUSTOM_REGION{number}'],
                uuid=host.rp_uuid(0, number),
            )
        # Other devices have had them.
        self.placement.add_provider('other', {'CUSTOM_QTA': 1}, traits=_LONG)

    def test_it_is_told(self) -> None:
        device_profile.create('gold', self.groups)
        error = self.assertRaises(
            exception.RequestFilterFailed,
            self.schedule,
            {_KEY: 'gold', **self.extra_specs},
        )
        # As Nova makes the fault of it.
        fault = str(exception.NoValidHost(reason=error.message))[:_MAX_FAULT]
        self.assert_told_to_a_tenant(fault)

    def schedule(self, extra_specs: Mapping[str, str]) -> None:
        """As nova-scheduler's filters do."""
        context = nova_context.get_admin_context()
        spec = scheduling.request_spec(dict(extra_specs))
        request_filter.merge_device_profile(context, spec)
        request_filter.check_accelerators(context, spec)
