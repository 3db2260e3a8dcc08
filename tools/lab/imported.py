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

"""What a Cyborg has of a machine, in Placement and as rows of an import.

There is no Cyborg in the lab. Nova's own driver gets its accelerators by
Nova's own client from handles that are in our database as after an import.
"""

from collections.abc import Iterator
import contextlib
import json
from typing import Any

import sqlalchemy as sa

from lab import settings
from lab.checks import cloud
from lab.device_vm import hardware
from lab.device_vm import machine
from nova_accel.db.sql import schema
from nova_accel.model import naming
from rig import imported_rows


def providers(host: machine.Machine) -> tuple[imported_rows.Provider, ...]:
    """Of a mediated device, and of a virtual function of the NIC."""
    return (
        imported_rows.Provider(
            host.name,
            hardware.GPU_ADDRESS,
            'VGPU',
            ('CUSTOM_1234_11E8_LABGPU_1',),
            mdev_type=hardware.MDEV_TYPES[0],
        ),
        imported_rows.Provider(
            host.name,
            hardware.IGB_VF_ADDRESSES[0],
            'CUSTOM_NIC',
            ('CUSTOM_NIC_INTEL_82576_VF',),
        ),
    )


@contextlib.contextmanager
def database() -> Iterator[sa.Connection]:
    """A transaction in our database."""
    engine = sa.create_engine(
        f'mysql+pymysql://lab:{settings.PASSWORD}@127.0.0.1:'
        f'{settings.PORTS.mariadb}/nova_accel?charset=utf8mb4'
    )
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def take_our_providers_away(host: machine.Machine) -> None:
    """Delete ours from Placement; its nova-compute must not run."""
    for found in cloud.show('resource', 'provider', 'list'):
        if found['name'].startswith(f'{host.name}_accel_'):
            cloud.openstack('resource', 'provider', 'delete', found['uuid'])


def add_providers(host: machine.Machine) -> None:
    """Cyborg's, which serve our requests for as long as they have our trait.

    The scheduler of the lab knows no other request.
    """
    (root,) = cloud.show('resource', 'provider', 'list', '--name', host.name)
    for provider in providers(host):
        cloud.openstack(
            'resource',
            'provider',
            'create',
            provider.name,
            '--uuid',
            provider.uuid,
            '--parent-provider',
            root['uuid'],
        )
        cloud.openstack(
            'resource',
            'provider',
            'inventory',
            'set',
            provider.uuid,
            '--resource',
            f'{provider.resource_class}=1',
        )
        _set_traits(provider, *provider.traits, naming.OWNERSHIP_TRAIT)


def show_providers_as_cyborgs(host: machine.Machine) -> None:
    for provider in providers(host):
        _set_traits(provider, *provider.traits)


def _set_traits(provider: imported_rows.Provider, *traits: str) -> None:
    words = [word for trait in traits for word in ('--trait', trait)]
    cloud.openstack(
        'resource', 'provider', 'trait', 'set', provider.uuid, *words
    )


def remove_providers(host: machine.Machine) -> None:
    for provider in providers(host):
        if cloud.succeeds('resource', 'provider', 'show', provider.uuid):
            cloud.openstack('resource', 'provider', 'delete', provider.uuid)


def move_allocations(
    server_id: str, targets: dict[str, str], project_id: str, user_id: str
) -> None:
    """Give a server other providers.

    :param targets: provider -> the one that takes its place
    """
    words = []
    for allocation in cloud.show(
        'resource', 'provider', 'allocation', 'show', server_id
    ):
        rp_uuid = targets.get(
            allocation['resource_provider'], allocation['resource_provider']
        )
        amounts = ','.join(
            f'{name}={amount}'
            for name, amount in _amounts(allocation['resources']).items()
        )
        words += ['--allocation', f'rp={rp_uuid},{amounts}']
    cloud.openstack(
        'resource',
        'provider',
        'allocation',
        'set',
        *words,
        '--project-id',
        project_id,
        '--user-id',
        user_id,
        '--consumer-type',
        'INSTANCE',
        server_id,
    )


def _amounts(shown: Any) -> dict[str, int]:
    """The client prints a dict as text, in some of its releases."""
    found: dict[str, int] = (
        json.loads(shown.replace("'", '"'))
        if isinstance(shown, str)
        else shown
    )
    return found


def arqs(server_id: str) -> dict[str, tuple[str | None, str]]:
    """Resource class -> role and provider of the ARQ of a server."""
    table = schema.ARQS
    with database() as connection:
        return {
            row.resource_class: (row.role, row.device_rp_uuid)
            for row in connection.execute(
                sa.select(table).where(table.c.instance_uuid == server_id)
            )
        }
