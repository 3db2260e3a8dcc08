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

"""The software FPGA of a device VM is programmed with what Glance has."""

from collections.abc import Iterator
import contextlib
import dataclasses
import os
import re
import uuid
import zlib

from lab import configuration
from lab import keystone
from lab import processes
from lab import settings
from lab.checks import cloud
from lab.checks import real_servers
from lab.checks import registry
from lab.device_vm import compute
from lab.device_vm import hardware
from lab.device_vm import machine

_SEEN = {'FPGA': hardware.FPGA}

#: Bytes of a bitstream beside what says that it is one.
_CIRCUIT = 256 << 10

#: Time for nova-compute to be killed while the FPGA is programmed.
_SLOW_MS = 20_000

_SYSFS = f'/sys/bus/pci/devices/{hardware.FPGA_ADDRESS}'

_UNTIL_WRITTEN = f'''
until grep -qx write {_SYSFS}/fpga_manager/*/state; do
    sleep 0.05
done
grep -rs '"programming"' {real_servers.JOURNAL}/regions
'''


@dataclasses.dataclass(frozen=True)
class _Bitstream:
    """An image in Glance.

    :param says: what the FPGA says when it is loaded
    """

    id: str
    function_uuid: str
    says: str


@contextlib.contextmanager
def _uploaded(name: str) -> Iterator[_Bitstream]:
    """A new bitstream, uploaded as the manual says."""
    circuit = uuid.uuid4()
    data = b'LABF' + circuit.bytes + os.urandom(_CIRCUIT)
    path = settings.STATE / f'{name}.bin'
    path.write_bytes(data)
    function_uuid = str(uuid.uuid4())
    region_uuid = uuid.UUID(
        machine.A.run(f'cat {_SYSFS}/fpga_region/region*/compat_id').strip()
    )
    said = processes.run(
        ['bash', '-e', '-s'],
        {
            **keystone.credentials(),
            'PATH': f'{settings.BIN}:{os.environ["PATH"]}',
        },
        stdin=configuration.manual(
            'admin/snippets/upload-bitstream.sh',
            {
                'matrix.gbs': str(path),
                'matrix-multiplication': name,
                'Intel': '"Red Hat"',
                'PAC Arria10': '0005',
                '9926ab6d-6c92-5a68-aabc-a7d84c545738': str(region_uuid),
                'd8424dc4-a4a3-c413-f89e-433683f9040b': function_uuid,
            },
        ),
    )
    [image_id] = re.findall(r'^\| id +\| (\S+)', said, re.MULTILINE)
    path.unlink()
    try:
        yield _Bitstream(
            image_id,
            function_uuid,
            f'{circuit.hex} {zlib.crc32(data):08x} {len(data)}',
        )
    finally:
        cloud.openstack('image', 'delete', image_id)
        cloud.forget_flavors(image_id, function_uuid)


def _says() -> str:
    """What the FPGA holds; no guest has it."""
    return machine.A.run(f'cat {_SYSFS}/labfpga_loaded').strip()


def _programmings(bitstream: _Bitstream) -> list[dict[str, object]]:
    with keystone.connection() as connection:
        return connection.accelerator.get(
            f'/programmings?bitstream_id={bitstream.id}', microversion='2.4'
        ).json()['programmings']


def _expect_programmed(
    bitstream: _Bitstream, evidence: registry.Evidence, *states: str
) -> None:
    """It holds this, and was programmed so often, the last time first."""
    says = _says()
    evidence(f'the FPGA says {says}')
    registry.expect(says == bitstream.says, f'and not {bitstream.says}')
    registry.expect_soon(
        f'programmings with {bitstream.id}',
        lambda: tuple(found['state'] for found in _programmings(bitstream)),
        states,
        seconds=60,
    )
    for found in _programmings(bitstream):
        evidence(
            f'{found["state"]}, {found["duration_s"]} s, for server '
            f'{found["instance_uuid"]}'
        )


def _flavor(name: str, property_: str, value: str) -> tuple[str, str]:
    """Of a server with the FPGA: the flavor's name and the group."""
    return (
        f'lab-vm-{name}-{value}',
        f'resources:FPGA=1,accel:{property_}={value}',
    )


@real_servers.check('fpga')
def service(evidence: registry.Evidence) -> None:
    """The programming service has a host program an FPGA, by RPC."""
    # The type of the region is not seen while a guest has the card.
    with _uploaded('service') as bitstream, _uploaded('another') as other:
        evidence(_program(bitstream, 200))
        _expect_programmed(bitstream, evidence, 'succeeded')
        _expect_usable()
        with real_servers.server(
            evidence, *_flavor('service', 'bitstream_id', bitstream.id)
        ) as server:
            server.sees(_SEEN)
            evidence(f'while a guest has it: {_program(other, 409)}')
        _expect_programmed(bitstream, evidence, 'succeeded')


@real_servers.check('fpga')
def by_its_owner(evidence: registry.Evidence) -> None:
    """The owner of a stopped server reprograms the FPGA that it has."""
    with _uploaded('first') as first, _uploaded('second') as second:
        with real_servers.server(
            evidence, *_flavor('owner', 'bitstream_id', first.id)
        ) as server:
            server.sees(_SEEN)
            [arq] = _arqs(server)
            evidence(f'it runs: {_program(second, 409, arq)}')
            server.act('stop', status='SHUTOFF')
            says = _says()
            evidence(f'it is stopped, and the FPGA says {says}')
            registry.expect(says == first.says, f'and not {first.says}')
            evidence(_program(second, 200, arq))
            _expect_programmed(second, evidence, 'succeeded')
            server.act('start')
            server.sees(_SEEN)
            evidence(f'it runs again: {_program(first, 409, arq)}')
        # No one has it any more.
        _expect_programmed(second, evidence, 'succeeded')


def _arqs(server: real_servers.RealServer) -> list[str]:
    """The uuids of those that a server has."""
    with keystone.connection() as connection:
        return [
            found['uuid']
            for found in connection.accelerator.get(
                f'/accelerator_requests?instance={server.id}'
            ).json()['arqs']
        ]


def _deployable() -> str:
    """The uuid of the FPGA's region."""
    with keystone.connection() as connection:
        [deployable] = [
            found
            for found in connection.accelerator.get(
                f'/deployables?hostname={machine.A.name}', microversion='2.4'
            ).json()['deployables']
            if found['region']
        ]
    return str(deployable['uuid'])


def _program(
    bitstream: _Bitstream, status: int, region: str | None = None
) -> str:
    """What the programming service answers, with this HTTP status.

    :param region: the uuid of a deployable, or of an ARQ that has it
    """
    with keystone.connection() as connection:
        answer = connection.accelerator.post(
            f'/fpga/{region or _deployable()}',
            json={'glance_bitstream_uuid': bitstream.id},
        )
    text = f'{answer.status_code}: {answer.text}'
    registry.expect(answer.status_code == status, text)
    return text


def _expect_usable() -> None:
    """Soon; an FPGA of which no one knows what it holds is reserved."""
    registry.expect_soon(
        'reserved units',
        lambda: cloud.reserved_of(machine.A.name),
        0,
        seconds=180,
    )


@real_servers.check('fpga')
def by_id(evidence: registry.Evidence) -> None:
    """An FPGA is programmed before its guest starts, and once only."""
    with _uploaded('by-id') as bitstream:
        for _boot in range(2):
            with real_servers.server(
                evidence, *_flavor('bitstream', 'bitstream_id', bitstream.id)
            ) as server:
                server.sees(_SEEN)
            _expect_programmed(bitstream, evidence, 'succeeded')


@real_servers.check('fpga')
def by_function(evidence: registry.Evidence) -> None:
    """A function is found in Glance, loaded, and published as a trait."""
    with _uploaded('by-function') as bitstream:
        # What others' images say that they do is not believed.
        cloud.openstack('image', 'set', '--public', bitstream.id)
        with real_servers.server(
            evidence,
            *_flavor('function', 'function_id', bitstream.function_uuid),
        ) as server:
            server.sees(_SEEN)
            wanted = 'CUSTOM_FPGA_RED_HAT_FUNCTION_' + (
                bitstream.function_uuid.replace('-', '_').upper()
            )
            registry.expect_soon(
                wanted, lambda: wanted in _traits(), True, seconds=120
            )
            evidence(f'published: {wanted}')
        _expect_programmed(bitstream, evidence, 'succeeded')


def _traits() -> set[str]:
    return {
        trait
        for _name, class_, _units, traits in cloud.accelerators_of(
            machine.A.name
        )
        if class_ == 'FPGA'
        for trait in traits
    }


@real_servers.check('fpga')
def corrupt(evidence: registry.Evidence) -> None:
    """What is not as it was uploaded is refused before the FPGA is touched."""
    before = _says()
    with _uploaded('corrupt') as bitstream:
        stored = settings.STATE / 'glance/images' / bitstream.id
        with stored.open('r+b') as data:
            data.seek(_CIRCUIT // 2)
            byte = data.read(1)[0]
            data.seek(_CIRCUIT // 2)
            data.write(bytes([byte ^ 1]))
        with real_servers.server(
            evidence,
            *_flavor('corrupt', 'bitstream_id', bitstream.id),
            wait=False,
        ) as made:
            server = cloud.wait_for_server(made.id)
            registry.expect(server['status'] == 'ERROR', server['status'])
            evidence(f'refused: {cloud.fault(server)}')
        registry.expect(_says() == before, 'the FPGA holds something else')
        for found in _programmings(bitstream):
            registry.expect(found['state'] == 'failed', f'{found}')
            evidence(f'{found["failure"]}')
        _expect_usable()


@real_servers.check('fpga')
def killed(evidence: registry.Evidence) -> None:
    """nova-compute dies while an FPGA is programmed; no guest gets it so."""
    with _uploaded('killed') as bitstream:
        flavor = _flavor('killed', 'bitstream_id', bitstream.id)
        _take_ms(_SLOW_MS)
        try:
            with real_servers.server(evidence, *flavor, wait=False) as server:
                journal = machine.A.run(_UNTIL_WRITTEN, 120)
                compute.kill(machine.A)
                evidence(f'noted when it died: {journal.strip()}')
                real_servers.start()
                found = cloud.wait_for_server(server.id)
                evidence(f'then the server is {found["status"]}')
        finally:
            _take_ms(0)
        # Good or bad, by whether the card had come to its end by then. The
        # image is a project's: in both cases who has the FPGA programmed gets
        # it.
        [known] = _programmings(bitstream)
        evidence(f'{known["state"]}: {known["failure"]}')
        _expect_usable()
        with real_servers.server(evidence, *flavor) as server:
            server.sees(_SEEN)
        says = _says()
        evidence(f'the FPGA says {says}')
        registry.expect(says == bitstream.says, f'and not {bitstream.says}')


def _take_ms(milliseconds: int) -> None:
    """Have each programming take so long."""
    machine.A.run(
        f'echo {milliseconds} >/sys/module/labfpga/parameters/program_ms'
    )
