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

"""The common part of programming FPGAs."""

from collections.abc import Callable
from collections.abc import Collection

from oslo_concurrency import processutils

from nova_accel import exceptions
from nova_accel import privileged
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.privileged import vendor_tool


def call(
    device: hardware.Device,
    region: programmable.Region,
    timeout_s: float,
    what: Callable[..., None],
    *arguments: object,
) -> None:
    """Program a card by a function of :mod:`nova_accel.privileged.fpga`.

    :param what: the function; its last argument is the time limit

    :param arguments: its other arguments, which become texts
    :raises DeviceError: it failed, or took too long.
    """
    try:
        what(*map(str, arguments), timeout_s)
    except privileged.ERRORS as error:
        raise refusal(device, region, _reason(error, timeout_s)) from error


def refusal(
    device: hardware.Device, region: programmable.Region, reason: str
) -> exceptions.DeviceError:
    """The error of a failed programming."""
    return exceptions.DeviceError(
        f'{region.name} of {device.address} is not programmed: {reason}'
    )


def check(
    device: hardware.Device,
    region: programmable.Region,
    loaded: str,
    wanted: Collection[str],
) -> None:
    """Check that a card reports what the bitstream has.

    :raises DeviceError: it does not.
    """
    if not set(loaded.split()) <= set(wanted):
        raise refusal(
            device,
            region,
            'its tool says that it is, but the card holds '
            f'{loaded}, not {", ".join(wanted)}',
        )


def _reason(error: Exception, timeout_s: float) -> str:
    if not isinstance(error, processutils.ProcessExecutionError):
        return str(error)
    if error.exit_code in vendor_tool.TIMED_OUT:
        return f'not finished after {timeout_s:g} s'
    if error.exit_code == vendor_tool.BUSY:
        return f'the card is still being programmed after {timeout_s:g} s'
    # OPAE's tools log to stdout and report errors on stderr.
    output = ' '.join(f'{error.stderr or ""} {error.stdout or ""}'.split())
    return f'exit status {error.exit_code}, {output[:500]}'
