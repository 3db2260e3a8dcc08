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

"""The services answer, as the installation guide says they do."""

from lab import compute_host
from lab.checks import cloud
from lab.checks import registry


@registry.check('e2e')
def services(evidence: registry.Evidence) -> None:
    """The services of Nova are up."""
    wanted = {
        ('nova-conductor', None),
        ('nova-scheduler', None),
        *(('nova-compute', host.name) for host in compute_host.HOSTS),
    }
    found = cloud.show('compute', 'service', 'list')
    up = {
        (
            service['Binary'],
            service['Host'] if (service['Binary'] == 'nova-compute') else None,
        )
        for service in found
        if service['State'] == 'up'
    }
    registry.expect(wanted <= up, f'not up: {sorted(map(str, wanted - up))}')
    for service in found:
        evidence(
            f'{service["Binary"]} on {service["Host"]} is {service["State"]}'
        )


@registry.check('e2e')
def catalogue(evidence: registry.Evidence) -> None:
    """Users reach the API at nova-api, Nova's services a pool of its own."""
    for endpoint in cloud.show('endpoint', 'list', '--service', 'accelerator'):
        evidence(f'{endpoint["Interface"]}: {endpoint["URL"]}')
    for interface in ('public', 'internal'):
        profiles = cloud.show(
            '--os-interface',
            interface,
            'accelerator',
            'device',
            'profile',
            'list',
        )
        evidence(f'{interface}: {len(profiles)} device profiles')
