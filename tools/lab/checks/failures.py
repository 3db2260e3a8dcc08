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

"""Something dies in the middle: nothing is lost, and nothing stays."""

from lab import accelerator
from lab import compute_host
from lab import nova
from lab import processes
from lab import settings
from lab.checks import boots
from lab.checks import cloud
from lab.checks import registry


@registry.check('e2e', quick=False)
def api_away(evidence: registry.Evidence) -> None:
    """Without the accelerator API no server gets a device, and others boot."""
    flavor = cloud.accelerated_flavor(*boots.NIC)
    processes.kill('nova-accel-api')
    try:
        with cloud.server(flavor) as server:
            registry.expect(server['status'] == 'ERROR', server['status'])
            evidence(f'{flavor}: {cloud.fault(server)}')
        with cloud.server(cloud.plain_flavor()) as server:
            cloud.expect_active(server)
            evidence(f'{cloud.plain_flavor()}: ACTIVE')
    finally:
        accelerator.start_pool()
        accelerator.wait()


@registry.check('e2e', quick=False)
def killed(evidence: registry.Evidence) -> None:
    """nova-compute dies while it boots a server, and is started again."""
    flavor = cloud.accelerated_flavor(*boots.GPU)
    with cloud.server(flavor, wait=False) as server:
        host = _kill_with_journal()
        evidence(f'{host.name} had noted {host.journal()} when it died')
        host.start_compute()
        cloud.wait_for_compute(host.name)
        server = cloud.wait_for_server(server['id'], ('ERROR',))
        evidence(f'ERROR: {cloud.fault(server)}')


@registry.check('e2e')
def audit(evidence: registry.Evidence) -> None:
    """The audit finds nothing that is held for no one."""
    # It ends with 1 if it does, which is a failure here.
    found = processes.run(
        [
            settings.BIN / 'nova-accel-manage',
            '--config-file',
            nova.api_file(),
            'audit',
            '-f',
            'value',
        ]
    )
    registry.expect(not found.strip(), found)
    evidence('nova-accel-manage audit: nothing')


def _kill_with_journal() -> compute_host.ComputeHost:
    """Kill the first nova-compute that has noted an accelerator."""
    noted: list[compute_host.ComputeHost] = []

    def one_has() -> bool:
        noted[:] = [host for host in compute_host.HOSTS if host.journal()]
        return bool(noted)

    processes.wait_for('a journal', 60, one_has, interval=0.005)
    processes.kill(noted[0].service)
    return noted[0]
