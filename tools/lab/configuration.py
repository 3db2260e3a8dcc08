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

"""Configuration files: the lab's own, and those of the installation guide.

What the guide tells an operator to write is taken from the guide's files, so
that a lab that works shows that the guide does. Only what the guide gives as
an example (names of hosts, passwords, paths, devices) is replaced.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import pathlib
import re
import string

from lab import settings

_TEMPLATES = pathlib.Path(__file__).parent / 'etc'

_MANUAL = settings.CHECKOUT / 'doc/source'

_INSTALLED = settings.CHECKOUT / 'etc/nova_accel'

#: What nova-scheduler enables by itself in Nova 34.
_NOVA_FILTERS = (
    'ComputeFilter,ComputeCapabilitiesFilter,'
    'ImagePropertiesFilter,ServerGroupAntiAffinityFilter,'
    'ServerGroupAffinityFilter'
)

_EXAMPLES = {
    'PASSWORD': settings.PASSWORD,
    '@DBHOST/': f'@127.0.0.1:{settings.PORTS.mariadb}/',
    'https://keystone.example.com/': f'http://127.0.0.1:{settings.PORTS.keystone}/',
    'https://compute.example.com/': f'http://127.0.0.1:{settings.PORTS.nova_api}/',
    'controller.example.com:6666': f'127.0.0.1:{settings.PORTS.accelerator}',
    '/etc/nova_accel/': f'{settings.VENV}/etc/nova_accel/',
    '/run/nova-accel-api': f'{settings.STATE}/sockets',
    'enabled_filters = ...': f'enabled_filters = {_NOVA_FILTERS}',
}


def template(name: str, **values: object) -> str:
    """A file of the lab's own."""
    ports = settings.PORTS
    return string.Template((_TEMPLATES / name).read_text()).substitute(
        {
            'state': settings.STATE,
            'venv': settings.VENV,
            'bin': settings.BIN,
            'password': settings.PASSWORD,
            'region': settings.REGION,
            'mariadb': ports.mariadb,
            'rabbitmq': ports.rabbitmq,
            'keystone': ports.keystone,
            'glance': ports.glance,
            **values,
        }
    )


def guide(name: str, examples: Mapping[str, str] | None = None) -> str:
    """A file of the installation guide, with its examples replaced.

    :param examples: what is replaced beside the usual
    """
    return manual(
        f'install/snippets/{name}', {**_EXAMPLES, **(examples or {})}
    )


def page(name: str) -> str:
    """The text of a page of the manual, as it is."""
    return (_MANUAL / f'{name}.rst').read_text()


def installed(name: str) -> str:
    """A file that the package installs, with its examples replaced."""
    return replaced((_INSTALLED / name).read_text())


def manual(name: str, examples: Mapping[str, str]) -> str:
    """A file of the manual, with its examples replaced.

    :param examples: what is replaced -> by what
    """
    return replaced((_MANUAL / name).read_text(), examples)


def guide_compute(device_specs: Iterable[str], state_path: str) -> str:
    """The guide's nova-compute.conf for a host with these devices."""
    text = guide('nova-compute.conf', {'/var/lib/nova': state_path})
    return re.sub(
        r'(?m)^device_spec = .*\n',
        ''.join(f'device_spec = {spec}\n' for spec in device_specs),
        text,
    )


def write(name: str, *parts: str) -> pathlib.Path:
    """:param name: the file's name below the lab's etc"""
    path = settings.STATE / 'etc' / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('\n'.join(parts))
    path.chmod(0o600)
    return path


def replaced(text: str, examples: Mapping[str, str] = _EXAMPLES) -> str:
    """A text of the manual, with its examples replaced."""
    for example, value in examples.items():
        text = text.replace(example, value)
    return text
