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

"""The choice of a bitstream among those that a caller may see."""

from collections.abc import Iterable

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
    wrong = fpga_bitstream.misfits(named, device, region)
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
        each: fpga_bitstream.misfits(each, device, region)
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
