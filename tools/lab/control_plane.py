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

"""All services of the lab: in which order they start and end."""

from concurrent import futures
import shutil
import time

from lab import accelerator
from lab import compute_host
from lab import glance
from lab import keystone
from lab import mariadb
from lab import nova
from lab import placement
from lab import processes
from lab import rabbitmq
from lab import settings
from lab import wsgi
from lab.device_vm import compute
from lab.device_vm import machine

#: Is there when all databases are made and filled.
_MADE = settings.STATE / 'made'

#: The installed package that the running services have.
_PACKAGE = settings.STATE / 'package'

#: What is kept when the rest is made anew: it costs time and holds no state.
_CACHES = frozenset({'guest', 'device-vm', 'log'})

_SERVICES = ('nova-scheduler', 'nova-conductor', 'nova-api', 'nova-accel-api')


def up() -> None:
    """Start what does not run, from nothing or from what was there before."""
    begin = time.monotonic()

    def say(what: str) -> None:
        print(f'[{time.monotonic() - begin:5.1f} s] {what}', flush=True)

    if not _MADE.exists():
        wipe()
    elif _installed() != _PACKAGE.read_text():
        say('nova_accel has changed, its services are started again')
        _stop_nova()
    _check_ports()
    say('mariadb, rabbitmq')
    rabbitmq.start()
    mariadb.start()
    nova.configure()
    if not _MADE.exists():
        say('databases')
        with futures.ThreadPoolExecutor() as pool:
            jobs = [pool.submit(job) for job in (_make_others, nova.make)]
        for job in jobs:
            job.result()
        accelerator.make_database()
    accelerator.upgrade_database()
    say('keystone, placement, glance')
    keystone.start()
    placement.start()
    glance.start()
    wsgi.start('network', settings.PORTS.network, 'lab.network_stub')
    keystone.wait()
    if not _MADE.exists():
        keystone.fill()
        accelerator.make_endpoints()
    say('nova')
    rabbitmq.wait()
    nova.start_api()
    accelerator.start_pool()
    nova.start_services()
    _PACKAGE.write_text(_installed())
    for service in (placement, glance, accelerator):
        service.wait()
    nova.wait_api()
    _MADE.touch()
    for host in compute_host.HOSTS:
        host.start()
    say('images, flavors')
    with keystone.connection() as cloud:
        glance.fill(cloud)
        say('waiting for the hosts')
        _wait_for_hosts(cloud)
    say('up')


def down() -> None:
    """End all that runs, and keep what it has stored."""
    for each in machine.MACHINES:
        each.down()
    _stop_nova()
    processes.stop('network', 'glance', 'placement', 'keystone', seconds=5)
    processes.stop('rabbitmq', 'mariadb', seconds=20)
    processes.stop('epmd')
    processes.stop(*processes.running())


def wipe() -> None:
    """Forget everything, caches excepted."""
    for each in machine.MACHINES:
        each.forget()
    down()
    if settings.STATE.is_dir():
        for path in settings.STATE.iterdir():
            if path.is_dir() and path.name not in _CACHES:
                shutil.rmtree(path)
            elif not path.is_dir():
                path.unlink()


def _stop_nova() -> None:
    for host in compute_host.HOSTS:
        host.stop()
    for each in machine.MACHINES:
        if each.alive():
            compute.stop(each)
    processes.stop(*_SERVICES, seconds=5)


def _make_others() -> None:
    keystone.make()
    placement.make()
    glance.make()


def _installed() -> str:
    return (settings.VENV / '.stamps/package').read_text()


def _check_ports() -> None:
    """:raises LabError: a stranger would look like a service of ours."""
    if processes.running():
        return
    for port in settings.PORTS:
        reason = settings.in_use(port)
        if reason:
            raise processes.LabError(f'port {port}: {reason}')
    settings.STATE.mkdir(parents=True, exist_ok=True)
    settings.PORT_FILE.write_text(str(settings.PORTS[0]))


def _wait_for_hosts(
    cloud: 'keystone.openstack.connection.Connection',
) -> None:
    wanted = {host.name for host in compute_host.HOSTS}
    processes.wait_for(
        'the compute hosts',
        120,
        lambda: (
            wanted <= {found.name for found in cloud.compute.hypervisors()}
        ),
        interval=1,
    )
