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

"""Hosts fetch bitstreams before servers need them."""

from collections.abc import Collection
from collections.abc import Iterable
import time

from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.api.compute import waiting
from nova_accel.api.http import caller
from nova_accel.db import deployable as deployable_db
from nova_accel.db import device_profile as device_profile_db
from nova_accel.model import host_rpc
from nova_accel.model.profiles import device_profile

LOG = logging.getLogger(__name__)

#: Seconds after which no further host is asked. It takes that long only if
#: the message bus is away.
_LONGEST_S = 60


def ask(
    context: caller.Caller,
    hosts: Iterable[deployable_db.RegionHostRow],
    bitstream_uuids: Collection[str],
) -> dict[str, exceptions.AcceleratorError]:
    """Ask hosts to fetch bitstreams; a fault of one does not stop the others.

    :returns: hostname -> why the host could not be asked
    :raises TooBusy: as many calls of this process wait for hosts as may.
    """
    with waiting.place():
        return _ask(context, hosts, bitstream_uuids)


def _ask(
    context: caller.Caller,
    hosts: Iterable[deployable_db.RegionHostRow],
    bitstream_uuids: Collection[str],
) -> dict[str, exceptions.AcceleratorError]:
    from nova_accel.api.compute import rpc

    faults: dict[str, exceptions.AcceleratorError] = {}
    for_nova = context.for_nova()
    until = time.monotonic() + _LONGEST_S
    for host in hosts:
        try:
            if time.monotonic() > until:
                raise exceptions.ServiceUnavailable(
                    f'to ask the hosts before it took {_LONGEST_S} s'
                )
            rpc.prefetch(
                for_nova,
                host_rpc.Callee(host['service_host'], host['contract']),
                bitstream_uuids,
            )
        except exceptions.AcceleratorError as error:
            LOG.warning(
                'Host %s is not asked to fetch bitstreams: %s',
                host['hostname'],
                error,
            )
            faults[host['hostname']] = error
    return faults


def reporting(
    hosts: Iterable[deployable_db.RegionHostRow],
) -> list[deployable_db.RegionHostRow]:
    """The hosts that are not silent."""
    return [host for host in hosts if not host['is_silent']]


def order(
    context: caller.Caller,
    profile: device_profile_db.DeviceProfileRow,
) -> None:
    """Ask all reporting hosts to fetch the bitstreams that a profile names.

    Does not raise, since the profile is stored by now. A host that cannot be
    asked fetches a bitstream with the first server that needs it.
    """
    uuids = sorted(
        {
            group.properties['bitstream_id']
            for group in device_profile.parse_groups(profile['groups'])
            if group.is_prefetched
        }
    )
    if not uuids:
        return
    try:
        ask(context, reporting(deployable_db.get_hosts_of_regions()), uuids)
    except exceptions.TooBusy as error:
        LOG.warning(
            'Hosts are not asked to fetch the bitstreams of device profile '
            '%s: %s',
            profile['name'],
            error,
        )
    except Exception:
        LOG.exception(
            'Hosts are not asked to fetch the bitstreams of device profile %s',
            profile['name'],
        )
