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

"""Hosts and servers, made by Cyborg's own code in Cyborg's own database.

Cyborg's environment runs this file, which has neither nova_accel nor the rest
of this package::

    python hosts_of_cyborg.py CONFIGURATION

Four hosts have twenty devices each: eight vGPUs of a T4, eight virtual
functions of a QAT and four whole GPUs. Each of eighty servers has one of them.
Nova is not told of it, and no agent makes mediated devices.
"""

import sys
from typing import Any
import uuid

from cyborg import context as cyborg_context
from cyborg import objects
from cyborg.accelerator.drivers.gpu.nvidia import sysinfo as gpu
from cyborg.accelerator.drivers.qat.intel import sysinfo as qat
from cyborg.agent import rpcapi
from cyborg.common import config
from cyborg.objects import ext_arq
from cyborg.objects.driver_objects import driver_deployable
from cyborg.objects.driver_objects import driver_device

# Cyborg sets an option that this registers.
import keystonemiddleware.auth_token  # noqa: F401

PROJECT = 'c' * 32

HOSTS = [f'compute-{number}' for number in range(1, 5)]

_VGPU_TYPE = 'nvidia-223'


def _t4(hostname: str, bus: int) -> dict[str, Any]:
    """A card, as Cyborg's driver reads it from lspci."""
    return {
        'hostname': hostname,
        'address': f'0000:{bus:02x}:00.0',
        'vendor_id': '10de',
        'device_id': '1eb8',
        'class_name': '3D controller',
        'device_name': 'NVIDIA Corporation TU104GL [Tesla T4]',
    }


def _whole_gpu(hostname: str, bus: int) -> driver_device.DriverDevice:
    return gpu._generate_driver_device(
        {
            **_t4(hostname, bus),
            **gpu._get_traits('10de', '1eb8'),
            'rc': 'PGPU',
        }
    )


def _vgpus(hostname: str, bus: int, amount: int) -> driver_device.DriverDevice:
    """A card of mediated devices, which Cyborg counts in sysfs."""
    card = {
        **_t4(hostname, bus),
        **gpu._get_traits('10de', '1eb8', 'T4_2B'),
        'rc': 'VGPU',
        'vGPU_type': _VGPU_TYPE,
    }
    device = _whole_gpu(hostname, bus)
    device.deployable_list = [
        driver_deployable.DriverDeployable(
            name=f'{hostname}_{card["address"]}',
            driver_name='NVIDIA',
            num_accelerators=amount,
            attribute_list=gpu._generate_attribute_list(card),
            attach_handle_list=[
                gpu._generate_attach_handle(card, number)
                for number in range(amount)
            ],
        )
    ]
    return device


def _qat(hostname: str, bus: int, functions: int) -> Any:
    """A card with virtual functions, as Cyborg's driver reads it."""

    def function(slot: int, number: int) -> dict[str, Any]:
        address = f'0000:{bus:02x}:{slot:02x}.{number}'
        return {
            'name': f'{hostname}_{address}',
            'device': address,
            'type': 'QAT',
            'vendor': '0x8086',
            'product_id': '0x37c8',
            'rc': 'CUSTOM_QAT',
            'stub': False,
        }

    return qat._generate_driver_device(
        {
            **function(0, 0),
            'vfs': [
                function(1 + number // 8, number % 8)
                for number in range(functions)
            ],
        }
    )


def _report(context: Any, hostname: str) -> None:
    """As the conductor does, without Placement."""
    for device in (
        _vgpus(hostname, 0x5E, 8),
        _qat(hostname, 0x3D, 8),
        *(_whole_gpu(hostname, 0x81 + number) for number in range(4)),
    ):
        device.create(context, hostname)
        for each in device.deployable_list:
            deployable = objects.Deployable.get_by_name(context, each.name)
            deployable.rp_uuid = str(
                uuid.uuid3(uuid.NAMESPACE_DNS, deployable.name)
            )
            deployable.save(context)


def _profile(context: Any, name: str, group: dict[str, str]) -> Any:
    profile = objects.DeviceProfile(
        context, name=name, uuid=str(uuid.uuid4()), groups=[group]
    )
    profile.create(context)
    return objects.DeviceProfile.get_by_name(context, name)


def _bind(context: Any, profile: Any, hostname: str, rp_uuid: str) -> None:
    """Give a new server one unit of a provider."""
    arq = ext_arq.ExtARQ(
        context,
        arq=objects.ARQ(
            context,
            device_profile_name=profile.name,
            device_profile_group_id=0,
            project_id=PROJECT,
        ),
    )
    arq.create(context, profile.id)
    uuid_ = arq.arq.uuid
    ext_arq.ExtARQ.apply_patch(
        context,
        {uuid_: [{'op': 'add'}]},
        {
            uuid_: {
                'hostname': f'{hostname}.example',
                'device_rp_uuid': rp_uuid,
                'instance_uuid': str(uuid.uuid4()),
                'project_id': PROJECT,
            }
        },
    )


def main() -> None:
    config.parse_args(['fill', '--config-file', sys.argv[1]])
    objects.register_all()
    ext_arq.ExtARQ.bind_notify = classmethod(lambda *_told: None)
    rpcapi.AgentAPI.create_vgpu_mdev = lambda *_asked: None
    context = cyborg_context.get_admin_context()
    profiles = {
        resource_class: _profile(context, name, group)
        for resource_class, name, group in (
            (
                'VGPU',
                'vgpu',
                {
                    'resources:VGPU': '1',
                    'trait:CUSTOM_NVIDIA_1EB8_T4_2B': 'required',
                },
            ),
            ('CUSTOM_QAT', 'qat', {'resources:CUSTOM_QAT': '1'}),
            (
                'PGPU',
                'gpu',
                {
                    'resources:PGPU': '1',
                    'trait:CUSTOM_NVIDIA_1EB8': 'required',
                },
            ),
        )
    }
    for hostname in HOSTS:
        _report(context, hostname)
        for device in objects.Device.get_list_by_hostname(context, hostname):
            for deployable in objects.Deployable.get_list_by_device_id(
                context, device.id
            ):
                [resource_class] = (
                    attribute.value
                    for attribute in objects.Attribute.get_by_deployable_id(
                        context, deployable.id
                    )
                    if attribute.key == 'rc'
                )
                for _unit in range(deployable.num_accelerators):
                    _bind(
                        context,
                        profiles[resource_class],
                        hostname,
                        deployable.rp_uuid,
                    )


if __name__ == '__main__':
    main()
