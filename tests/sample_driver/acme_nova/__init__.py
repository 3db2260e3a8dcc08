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

"""Cards of ACME."""

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.drivers import facts
from nova_accel.model import attach_handle
from nova_accel.model import naming


class AcmeDriver(base.Driver):
    """A card and its engines, which are its virtual functions."""

    def discover(self, function, spec, host):
        if function.vendor_id != 'ac3e':
            raise exceptions.DeviceError('it is no card of ACME')
        engines = [
            host.functions[address]
            for address in function.virtual_functions
            if address in host.functions
        ]
        if not engines:
            raise exceptions.DeviceError('it has no engines')
        known = facts.of(function, spec, 'AICHIP')
        return known.device(
            [
                known.deployable(
                    'engines',
                    [
                        attach_handle.AttachHandle(
                            naming.derived_uuid(
                                self._node_uuid, engine.name, 'engine'
                            ),
                            engine.address,
                        )
                        for engine in engines
                    ],
                )
            ]
        )

    def plug(self, handle):
        if self._sysfs.read(handle.address, 'acme/state') == 'failed':
            raise exceptions.DeviceError(f'{handle.address} has failed')
