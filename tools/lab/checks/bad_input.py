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

"""What a user or an operator does wrong is told, and does no harm."""

from lab import settings
from lab.checks import cloud
from lab.checks import registry


@registry.check('e2e')
def unknown_profile(evidence: registry.Evidence) -> None:
    """A flavor that names no device profile: the fault says so."""
    cloud.flavor(
        'lab-nowhere', **{'nova_accel:device_profile': 'no-such-profile'}
    )
    with cloud.server('lab-nowhere') as server:
        fault = cloud.fault(server)
        registry.expect(server['status'] == 'ERROR', server['status'])
        registry.expect('no-such-profile' in fault, fault)
        evidence(fault)


@registry.check('e2e', quick=False)
def too_much(evidence: registry.Evidence) -> None:
    """More units than any host has: the fault names what is short."""
    flavor = cloud.accelerated_flavor('lab-too-much', 'resources:VGPU=64')
    with cloud.server(flavor) as server:
        fault = cloud.fault(server)
        registry.expect(server['status'] == 'ERROR', server['status'])
        registry.expect('VGPU' in fault, fault)
        evidence(fault)


@registry.check('e2e')
def over_a_limit(evidence: registry.Evidence) -> None:
    """More units than a limit in Keystone: the fault has the limit."""
    flavor = cloud.accelerated_flavor('lab-limited', 'resources:VGPU=1')
    limit = cloud.show(
        *('registered', 'limit', 'create', '--service', 'nova'),
        *('--region', settings.REGION, '--default-limit', '0', 'class:VGPU'),
    )
    try:
        with cloud.server(flavor) as server:
            fault = cloud.fault(server)
            registry.expect(server['status'] == 'ERROR', server['status'])
            registry.expect('class:VGPU: limit 0' in fault, fault)
            evidence(fault)
    finally:
        cloud.openstack('registered', 'limit', 'delete', limit['id'])


@registry.check('e2e')
def wrong_profile(evidence: registry.Evidence) -> None:
    """A device profile that makes no sense is refused, with the reason."""
    for group in ('resources:NO_SUCH_CLASS=1', 'resources:VGPU=many'):
        said = cloud.refusal(
            'accelerator',
            'device',
            'profile',
            'create',
            'lab-wrong',
            '--group',
            group,
        )
        registry.expect('400' in said, said)
        evidence(f'{group}: {said}')


@registry.check('e2e', quick=False)
def wrong_value(evidence: registry.Evidence) -> None:
    """A flavor key that Nova does not know is refused by nova-api."""
    said = cloud.refusal(
        'flavor',
        'set',
        '--property',
        'nova_accel:no_such_key=1',
        cloud.plain_flavor(),
    )
    registry.expect('no_such_key' in said, said)
    evidence(said)
