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

"""A nova-compute in a machine, with the package of the checkout."""

import uuid

from lab import processes
from lab.device_vm import machine
from lab.device_vm import packages

_PROGRAM = packages.DIRECTORY / 'bin/nova-compute'
_CONFIGURATION = '/share/nova-compute.conf'

_SECTIONS = (
    'nova_sys_admin',
    'nova_accel_sysfs',
    'nova_accel_nvme',
    'nova_accel_fpga',
    'nova_accel_processes',
    'privsep_osbrick',
    'vif_plug_linux_bridge_privileged',
    'vif_plug_ovs_privileged',
)

# As root there is no need for sudo and rootwrap.
_PRIVSEP = ''.join(
    f'\n[{section}]\nhelper_command = {packages.DIRECTORY}/bin/privsep-helper '
    f'--config-file {_CONFIGURATION}\n'
    for section in _SECTIONS
)

# It is found by its process group, as systemd does by its control group.
_ALIVE = 'kill -0 "$(cat /run/nova-compute.pid)"'

_START = f'''
set -e
cd {packages.DIRECTORY}
rm -rf {packages.SITE}/nova_accel {packages.SITE}/nova_accel-*.dist-info
tar -xf /share/nova_accel.tar --no-same-owner
mkdir -p /var/lib/nova/lock
cp /share/compute_id /var/lib/nova/compute_id
export OS_NOVA_DISABLE_EVENTLET_PATCHING=True
setsid {_PROGRAM} --config-file {_CONFIGURATION} \\
    >>/log/nova-compute.log 2>&1 </dev/null &
echo $! >/run/nova-compute.pid
'''

_SIGNAL = '''
group=$(cat /run/nova-compute.pid) || exit 0
kill -{signal} -- -"$group" 2>/dev/null
while [ $SECONDS -lt {seconds} ]; do
    kill -0 -- -"$group" 2>/dev/null || break
    sleep 0.1
done
kill -KILL -- -"$group" 2>/dev/null
rm /run/nova-compute.pid
'''

#: What it logs when the driver is set up and the guests are looked after; its
#: messages are served a few seconds later.
_READY = b'Looking for unclaimed instances stuck in BUILDING status'


def start(
    host: machine.Machine, configuration: str, seconds: float = 300
) -> None:
    """Start it, and wait until it is set up, unless it runs.

    The helpers' commands for root are added to the configuration.

    :raises LabError: it has ended, or is not set up after so many seconds.
    """
    if alive(host):
        return
    (host.share / 'nova-compute.conf').write_text(configuration + _PRIVSEP)
    _launch(host, seconds)


def stop(host: machine.Machine) -> None:
    """As systemd does: what has not ended after a while is killed."""
    host.run(_SIGNAL.format(signal='TERM', seconds=15), 60)


def kill(host: machine.Machine) -> None:
    """End it and its helpers at once, as ``kill -9`` does."""
    host.run(_SIGNAL.format(signal='KILL', seconds=5), 30)


def alive(host: machine.Machine) -> bool:
    try:
        host.run(_ALIVE, 30)
    except processes.LabError:
        return False
    return True


def _launch(host: machine.Machine, seconds: float) -> None:
    # Nova does not start on a host that has lost the id under which it knows
    # it. (It also looks for it beside its configuration file.)
    identity = host.share / 'compute_id'
    if not identity.exists():
        identity.write_text(str(uuid.uuid4()))
    packages.make_archive(host.share / 'nova_accel.tar')
    # Of before a crash of the machine, too.
    log = host.logs / 'nova-compute.log'
    begin = log.stat().st_size if log.exists() else 0
    host.run(_START)

    def set_up() -> bool:
        if not alive(host):
            raise processes.LabError(f'nova-compute ended; its log is {log}')
        with log.open('rb') as lines:
            lines.seek(begin)
            return _READY in lines.read()

    processes.wait_for('nova-compute', seconds, set_up, 1)
