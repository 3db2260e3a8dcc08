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

"""The keys of a line of ``device_spec`` that only some drivers read."""

from collections.abc import Mapping

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.model.devices import device_spec


def check(
    spec: device_spec.DeviceSpec, drivers: Mapping[str, base.Driver]
) -> None:
    """Check that the line's driver reads all keys of the line.

    A key that no one reads is a mistake: the operator expects it to act.

    :param drivers: all installed ones, by name
    :raises DeviceError: names the key, and the drivers that read it.
    """
    for key in sorted(
        spec.keys_of_some_drivers - drivers[spec.driver].line_keys
    ):
        readers = sorted(
            name for name, driver in drivers.items() if key in driver.line_keys
        )
        raise exceptions.DeviceError(
            f'"{key}" is not for the driver {spec.driver}'
            + (f', but for {", ".join(readers)}' if readers else '')
            + ': remove the key, or name the right driver'
        )
