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

"""Whether a bitstream fits a region, and the choice among several."""

from collections.abc import Iterable
from collections.abc import Iterator

from nova_accel import exceptions
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream


def check_fits(
    named: fpga_bitstream.Bitstream,
    device: hardware.Device,
    region: programmable.Region,
) -> None:
    """Make sure that a bitstream fits a region.

    :raises BitstreamRefused: it does not, or has wrong properties; the text
        lists all faults.
    """
    wrong = misfits(named, device, region)
    if wrong:
        faults = ', '.join(wrong)
        raise exceptions.BitstreamRefused(
            f'bitstream {named} does not fit {device.place(region)}: {faults}',
            public=f'bitstream {named} does not fit {region.name}: {faults}',
        )


def only(
    wanted: fpga_bitstream.WantedBitstream,
    found: Iterable[fpga_bitstream.Bitstream],
    project_id: str | None,
    device: hardware.Device,
    region: programmable.Region,
) -> fpga_bitstream.Bitstream:
    """The only bitstream that has a function and fits.

    It is searched among the bitstreams of the operator and of the caller's
    own project, because others may claim any function.

    :param found: all that the caller may see
    :param project_id: the caller's
    :raises BitstreamNotFound: there is none, or several have the function;
        the text lists the candidates.
    """
    candidates = {
        each: misfits(each, device, region)
        for each in sorted(found, key=lambda each: (each.name, each.id))
        if wanted.is_met_by(each) and each.owner in (None, project_id)
    }
    fitting = [each for each, wrong in candidates.items() if not wrong]
    if len(fitting) == 1:
        return fitting[0]
    # The caller may see each of them.
    if fitting:
        what = f'{len(fitting)} bitstreams with {wanted} fit'
        ids = ', '.join(map(str, fitting))
        rest = f', ask for one of them by its id: {ids}'
    else:
        what = f'no bitstream with {wanted} fits'
        rest = ''.join(
            f'; {each}: {", ".join(wrong)}'
            for each, wrong in candidates.items()
        )
    raise exceptions.BitstreamNotFound(
        f'{what} {device.place(region)}{rest}',
        public=f'{what} {region.name}{rest}',
    )


def misfits(
    bitstream: fpga_bitstream.Bitstream,
    device: hardware.Device,
    region: programmable.Region,
) -> list[str]:
    """Why a bitstream may not be loaded into a region; nothing if it may.

    A region with a known type takes only bitstreams for that type. Whatever
    else an image states must agree with the device; what it does not state is
    not checked. A shell, however, must state its vendor and board. Upper and
    lower case are the same.
    """
    found = list(_shell_misfits(bitstream, region))
    if bitstream.status != 'active':
        found.append(f'its status is {bitstream.status}, not active')
    if region.type_uuid is not None and bitstream.region_uuid is None:
        found.append(
            'it has no region_uuid, and the type of '
            f'{region.name} is {region.type_uuid}'
        )
    for name, stated, actual in (
        (
            'region_uuid',
            bitstream.region_uuid,
            [region.type_uuid and fpga_bitstream.canonical(region.type_uuid)],
        ),
        ('vendor', bitstream.vendor, _ids(device.vendor, device.vendor_id)),
        ('board', bitstream.board, _ids(device.product, device.product_id)),
        ('shell_id', bitstream.shell_id, [region.shell_id]),
    ):
        if stated is None:
            continue
        known = [value for value in actual if value is not None]
        if stated.casefold() not in (value.casefold() for value in known):
            found.append(
                f'its {name} is {stated}, that of {region.name} is '
                f'{known[0] if known else "not known"}'
            )
    return found


def _shell_misfits(
    bitstream: fpga_bitstream.Bitstream, region: programmable.Region
) -> Iterator[str]:
    if bitstream.provides_shell_id is None:
        if region.is_shell:
            yield 'it has no provides_shell_id: it is no shell'
        return
    if not region.is_shell:
        yield 'it is a shell, not for a region'
    for name, stated in (
        ('vendor', bitstream.vendor),
        ('board', bitstream.board),
    ):
        if stated is None:
            yield f'it is a shell and has no {name}'


def _ids(name: str, pci_id: str) -> list[str]:
    """The names by which an image may state a vendor or product."""
    return [name, pci_id, f'0x{pci_id}']
