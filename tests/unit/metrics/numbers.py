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

"""Numbers of a fleet, for tests."""

import dataclasses
import datetime
from typing import Any

from nova_accel.model.fleet import fleet_numbers
from nova_accel.model.units import failure_cause
from nova_accel.model.units import unit_state

_State = unit_state.UnitState

ARQ = fleet_numbers.BoundArq(
    uuid='1' * 36,
    instance_uuid='2' * 36,
    project_id='3' * 32,
    hostname='compute-1',
    role='active',
    resource_class='VGPU',
    device_uuid='4' * 36,
    address='0000:8d:00.0',
    product='H100 "PCIe"\n80GB',
)

HELD = fleet_numbers.HeldUnits(
    '3' * 32, 'H100 "PCIe"\n80GB', 'VGPU', 'nvidia-558', 4
)

REPORTED_AT = datetime.datetime(2026, 11, 24, tzinfo=datetime.UTC)


def some(**changed: Any) -> fleet_numbers.Numbers:
    """Numbers with something in each field."""
    return dataclasses.replace(
        fleet_numbers.Numbers(
            hosts=[
                fleet_numbers.HostNumbers('compute-1', REPORTED_AT, False),
                fleet_numbers.HostNumbers('compute-2', REPORTED_AT, True),
            ],
            units={
                ('VGPU', _State.USED): 1,
                ('VGPU', _State.FREE): 3,
                ('FPGA', _State.CLEANING_FAILED): 2,
            },
            devices=5,
            faulty_devices=1,
            arqs={'Bound': 1, 'BindFailed': 2},
            bound=[ARQ],
            held=[HELD],
            bind_failures=['host c has not reported for 1 s', None],
            bind_s=[0.02, 0.04],
            programming_s=[7, 9, 30],
            programmings_running=1,
            programming_failures=[failure_cause.INTERRUPTED, 'it is stuck'],
            findings={
                ('guest_gone', False): 4,
                ('mdev', True): 2,
                ('of a newer host', False): 1,
                ('of another one', False): 1,
            },
        ),
        **changed,
    )
