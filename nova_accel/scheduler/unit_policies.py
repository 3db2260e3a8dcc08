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

"""The policy by which the units of a resource class are chosen on a host."""

from nova.scheduler import host_manager
from nova.scheduler.filters import utils
from oslo_log import log as logging

from nova_accel import conf
from nova_accel.model.units import unit_choice
from nova_accel.scheduler import aggregate_values

CONF = conf.CONF
LOG = logging.getLogger(__name__)

#: The beginning of the key in an aggregate's metadata.
_KEY = 'unit_policy:'


def of_hosts(
    resource_class: str,
) -> aggregate_values.OfHosts[unit_choice.UnitPolicy]:
    """The policy for a resource class, by host."""
    default = unit_choice.UnitPolicy(
        CONF.nova_accel.unit_policies.get(
            resource_class, unit_choice.UnitPolicy.PACK
        )
    )

    def read(host: host_manager.HostState) -> unit_choice.UnitPolicy:
        return _of_aggregates(host, f'{_KEY}{resource_class}', default)

    return aggregate_values.OfHosts(default, read)


def _of_aggregates(
    host: host_manager.HostState, key: str, default: unit_choice.UnitPolicy
) -> unit_choice.UnitPolicy:
    """Pack, if the aggregates of the host disagree."""
    found = utils.aggregate_values_from_key(host, key)
    try:
        return min(map(unit_choice.UnitPolicy, found), default=default)
    except ValueError:
        LOG.warning(
            'Host %s: %s of its aggregates is none of %s: %s',
            host.host,
            key,
            ', '.join(unit_choice.UnitPolicy),
            ', '.join(sorted(found)),
        )
        return default
