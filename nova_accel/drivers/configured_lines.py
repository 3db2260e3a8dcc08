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

"""The lines of ``[nova_accel] device_spec``, and what alone refutes them.

A line may contradict itself before any device is seen: its ``type`` is not one
of its driver, or the catalogue has another type for its ids. Such a line can
never offer a device, so nova-compute does not start with it.
"""

from collections.abc import Mapping

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.drivers import catalogue
from nova_accel.drivers import loading
from nova_accel.model import naming
from nova_accel.model.devices import device_spec

CONF = conf.CONF


def read() -> tuple[device_spec.DeviceSpec, ...]:
    """The lines of the option, in their order.

    :raises InvalidDeviceSpec: a line is malformed, or contradicts itself; the
        text names the option, the line and both sides.
    :raises ConfigurationError: the operator's catalogue is wrong.
    """
    specs = device_spec.parse(CONF.nova_accel.device_spec, loading.names())
    kinds = loading.kinds()
    for spec in specs:
        fault = _contradiction(spec, kinds)
        if fault is not None:
            raise exceptions.InvalidDeviceSpec(
                f'[nova_accel] device_spec = {spec.text}: {fault}'
            )
    return specs


def _contradiction(
    spec: device_spec.DeviceSpec, kinds: Mapping[str, str | None]
) -> str | None:
    """Why the line can offer no device, None if it may."""
    known = catalogue.look_up(spec.vendor_id, spec.product_id)
    device = (
        f'in the catalogue, {spec.vendor_id}:{spec.product_id} '
        f'({known.product}) has the type {known.type}'
    )
    catalogue_cure = 'correct it in [nova_accel] catalogue_file'
    kind = kinds.get(spec.driver)
    driver = f'the driver {spec.driver} is for {kind}'
    if _differ(spec.type, kind):
        return (
            f'it has "type": "{spec.type}", but {driver}: remove the type, or '
            'name another driver'
        )
    if _differ(known.type, kind):
        return (
            f'{device}, but {driver}: name another driver, or, if the '
            f'catalogue is wrong, {catalogue_cure}'
        )
    if _differ(spec.type, known.type):
        return (
            f'it has "type": "{spec.type}", but {device}: remove the type, '
            f'or, if the catalogue is wrong, {catalogue_cure}'
        )
    return None


def _differ(one: str | None, other: str | None) -> bool:
    return (
        one is not None
        and other is not None
        and not naming.is_same_type(one, other)
    )
