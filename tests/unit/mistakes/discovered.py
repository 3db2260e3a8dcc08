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

"""A line of ``device_spec``, discovered on an imitated host."""

from collections.abc import Iterable
from collections.abc import Mapping
import json
from typing import Any

import testtools

from nova_accel.drivers import loading
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.host import pci_function
from nova_accel.model.devices import device_spec
from nova_accel.testing import fake_sysfs
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import units_in_use

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'


class _Claims:
    """As ``NovaClaims``, of a Nova that has nothing."""

    def on_functions(self, _addresses: Any, _host: Any) -> None:
        return None

    def on_device(self, _device: Any, _host: Any) -> None:
        return None


class _Host:
    """As ``NodeDevices``."""

    def __init__(self, functions: Iterable[pci_function.PciFunction]) -> None:
        self._functions = functions

    def look(self) -> libvirt_devices.HostDevices:
        return libvirt_devices.HostDevices(
            {each.address: each for each in self._functions}
        )


def text(line: Mapping[str, Any]) -> str:
    """The line as an operator writes it, without the keys of no value."""
    return json.dumps(
        {key: value for key, value in line.items() if value is not None}
    )


def refusals(
    case: testtools.TestCase,
    functions: Iterable[pci_function.PciFunction],
    attributes: Mapping[str, Mapping[str, str]],
    line: Mapping[str, Any],
) -> str:
    """Why devices of a line are refused, nothing if none is.

    :param functions: all of the host
    :param attributes: address of a function -> its attributes in sysfs, in the
        form of :meth:`nova_accel.testing.fake_sysfs.FakeSysfs.set`
    :param line: it has any vendor if it does not say
    """
    fake = case.useFixture(fake_sysfs.FakeSysfs())
    for address, values in attributes.items():
        fake.set(address, **values)
    drivers = loading.load(None, fake.sysfs, NODE_UUID)  # type: ignore[arg-type]
    written = text({'vendor_id': '*', **line})
    inventory = discovery.discover(
        _Host(functions),  # type: ignore[arg-type]
        drivers,
        device_spec.parse([written], drivers),
        _Claims(),  # type: ignore[arg-type]
        lambda _mdevs: units_in_use.Found({}),
        lambda: host_use.HostUse(fake.sysfs),
        last_answers.LastAnswers(),
    )
    return '\n'.join(each.replace(written, '') for each in inventory.refused)
