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

"""Has idle FPGA regions programmed with what servers will ask for.

There is no service for it. Any report of a host is the occasion to look, and
one process of the API does so each minute.
"""

import dataclasses
import threading

from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.compute import occasion
from nova_accel.api.compute import waiting
from nova_accel.db import bitstream_demand
from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import idle_regions
from nova_accel.db import lease
from nova_accel.model import host_orders
from nova_accel.model import host_rpc
from nova_accel.model.fpga import stocking
from nova_accel.model.profiles import device_profile

CONF = conf.CONF
LOG = logging.getLogger(__name__)

#: Seconds from one look at all idle regions to the next.
INTERVAL_S = 60

#: Seconds after which a process tries again to be the one that looks.
TRY_S = 5

_TURN = 'stock'


class _Recent:
    """The idle regions as they were some seconds ago.

    Many regions are cleaned in a minute. Each of them is chosen a bitstream
    for as if those before were programmed already.
    """

    def __init__(self) -> None:
        self._occasion = occasion.Occasion()
        self._lock = threading.Lock()
        self._stock = stocking.RegionStock((), (), {})
        # (Device uuid, region) -> the bitstream that was chosen.
        self._chosen: dict[tuple[str, str], str | None] = {}

    def choose(self, region: stocking.StockedRegion) -> str | None:
        """The bitstream that a region to be cleaned should hold, if any."""
        with self._lock:
            if self._occasion.is_due(INTERVAL_S):
                self._stock, self._chosen = _read(), {}
            key = region.device_uuid, region.name
            if key not in self._chosen:
                self._chosen[key] = self._stock.add_cleaned(region)
            return self._chosen[key]


_TO_ORDER = occasion.Occasion()
_RECENT = _Recent()


def order() -> None:
    """Order hosts to program idle regions, if it is time for that.

    Does not raise, since it has nothing to do with what its caller does.
    """
    most = CONF.nova_accel.stock_programmings_per_minute
    if not most or not _TO_ORDER.is_due(TRY_S):
        return
    try:
        if lease.take(_TURN, INTERVAL_S):
            with waiting.place():
                _order(most)
    except exceptions.AcceleratorError as error:
        LOG.warning('Idle regions are not programmed: %s', error)
    except Exception:
        LOG.exception('Idle regions are not programmed')


def added(hostname: str, orders: host_orders.Orders) -> host_orders.Orders:
    """The orders of a host, with what its unclean regions should hold.

    Does not raise: these regions get their blank bitstreams then.
    """
    if not (
        CONF.nova_accel.stock_programmings_per_minute and orders.uncleaned
    ):
        return orders
    try:
        chosen = {
            handle_uuid: _RECENT.choose(region)
            for handle_uuid, region in idle_regions.read_unclean(
                hostname
            ).items()
        }
    except exceptions.AcceleratorError as error:
        LOG.warning('Host %s cleans without stock: %s', hostname, error)
        return orders
    except Exception:
        LOG.exception('Host %s cleans without stock', hostname)
        return orders
    return dataclasses.replace(
        orders,
        stock={
            handle_uuid: bitstream_id
            for handle_uuid, bitstream_id in chosen.items()
            if bitstream_id is not None
        },
    )


def _order(most: int) -> None:
    orders = _read().orders(most)
    if not orders:
        return
    from nova_accel.api.compute import rpc

    # First, so that no order is given twice whatever happens to it.
    idle_regions.note(orders)
    for region, bitstream_id in orders:
        try:
            rpc.stock(
                host_rpc.Callee(region.service_host, region.contract),
                region.deployable_uuid,
                bitstream_id,
            )
        # Without a message bus the other hosts cannot be asked either.
        except exceptions.Conflict as error:
            LOG.warning(
                'Host %s is not asked to program %s with %s: %s',
                region.hostname,
                region.name,
                bitstream_id,
                error,
            )


def _read() -> stocking.RegionStock:
    """Read all idle regions and who wants them, in three statements."""
    return stocking.RegionStock(
        idle_regions.read_idle(CONF.nova_accel.host_silence_s),
        [
            group
            for profile in device_profile_db.get_all()
            for group in device_profile.parse_groups(profile['groups'])
        ],
        bitstream_demand.read(),
    )
