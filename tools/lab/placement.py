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

"""Placement."""

from lab import configuration
from lab import processes
from lab import settings
from lab import wsgi


def make() -> None:
    """Make its configuration and its tables."""
    path = configuration.write(
        'placement/placement.conf',
        configuration.template('placement.conf'),
        configuration.template('authtoken.conf'),
        configuration.guide('placement.conf'),
    )
    processes.run(
        [
            settings.BIN / 'placement-manage',
            '--config-file',
            path,
            'db',
            'sync',
        ]
    )


def start() -> None:
    wsgi.start(
        'placement',
        settings.PORTS.placement,
        'placement.wsgi.api',
        OS_PLACEMENT_CONFIG_DIR=settings.STATE / 'etc/placement',
    )


def wait() -> None:
    wsgi.wait('placement', settings.PORTS.placement)
