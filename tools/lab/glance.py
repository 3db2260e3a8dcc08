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

"""Glance, and the image that servers boot from."""

import pathlib

import openstack

from lab import configuration
from lab import guest
from lab import processes
from lab import settings
from lab import wsgi

#: The name of the image that servers boot from.
IMAGE = 'lab-guest'


def make() -> None:
    """Make its configuration and its tables."""
    path = configuration.write(
        'glance/glance-api.conf',
        configuration.template('glance-api.conf'),
        configuration.template('authtoken.conf'),
    )
    for name in ('images', 'staging', 'tasks'):
        (settings.STATE / 'glance' / name).mkdir(parents=True, exist_ok=True)
    processes.run(
        [settings.BIN / 'glance-manage', '--config-file', path, 'db_sync']
    )


def start() -> None:
    wsgi.start(
        'glance',
        settings.PORTS.glance,
        'glance.wsgi.api',
        OS_GLANCE_CONFIG_DIR=settings.STATE / 'etc/glance',
        OS_GLANCE_CONFIG_FILES='glance-api.conf',
    )


def wait() -> None:
    wsgi.wait('glance', settings.PORTS.glance)


def fill(cloud: openstack.connection.Connection) -> None:
    """Upload the test guest. Can be repeated."""
    if cloud.image.find_image(IMAGE) is not None:
        return
    files = guest.prepare()
    disk = settings.STATE / 'disk.raw'
    with disk.open('wb') as empty:
        empty.truncate(16 * 1024 * 1024)
    kernel = _upload(cloud, 'lab-kernel', files.kernel, 'aki', 'aki')
    initrd = _upload(cloud, 'lab-initrd', files.initrd, 'ari', 'ari')
    _upload(
        cloud,
        IMAGE,
        disk,
        'raw',
        'bare',
        kernel_id=kernel,
        ramdisk_id=initrd,
        hw_machine_type='q35',
        os_command_line=guest.ARGUMENTS,
    )


def _upload(
    cloud: openstack.connection.Connection,
    name: str,
    path: pathlib.Path,
    disk_format: str,
    container_format: str,
    **properties: str,
) -> str:
    return cloud.image.create_image(
        name,
        filename=str(path),
        disk_format=disk_format,
        container_format=container_format,
        visibility='public',
        wait=True,
        allow_duplicates=True,
        use_import=False,
        validate_checksum=False,
        **properties,
    ).id
