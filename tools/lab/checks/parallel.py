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

"""COMPAT and NATIVE boots at once, through a nova-api that has one worker."""

from concurrent import futures
import time

from lab.checks import boots
from lab.checks import cloud
from lab.checks import registry

_EACH = 3

#: Far below the time after which Nova gives an unanswered request up.
_SECONDS = 180


@registry.check('e2e')
def both_ways(evidence: registry.Evidence) -> None:
    """Boots with Cyborg's flavor key and with ours, at once: none waits."""
    name, *groups = boots.NIC
    flavors = (
        cloud.accelerated_flavor(name, *groups),
        cloud.accelerated_flavor(
            'lab-compat', *groups, key='accel:device_profile'
        ),
    )
    clock = time.monotonic()
    with futures.ThreadPoolExecutor(2 * _EACH) as pool:
        jobs = [
            pool.submit(
                cloud.create_server, flavors[number % 2], name=f'lab-{number}'
            )
            for number in range(2 * _EACH)
        ]
    ids = [job.result()['id'] for job in jobs if not job.exception()]
    try:
        for job in jobs:
            job.result()
        evidence(
            f'{len(ids)} servers accepted after '
            f'{time.monotonic() - clock:.0f} s'
        )
        for id_ in ids:
            server = cloud.wait_for_server(id_)
            registry.expect(server['status'] == 'ERROR', server['status'])
            evidence(f'{server["name"]}: {cloud.fault(server)}')
        seconds = time.monotonic() - clock
        registry.expect(seconds < _SECONDS, f'it took {seconds:.0f} s')
        evidence(f'all done after {seconds:.0f} s')
    finally:
        cloud.delete_servers(*ids)
