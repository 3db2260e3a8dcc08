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

"""The weigher: the host that fits best, and accelerators for who asks."""

from collections.abc import Sequence
import random

from nova import objects
from nova.scheduler import host_manager
from nova.scheduler import utils
from nova.scheduler import weights

from nova_accel import conf
from nova_accel.model.units import host_stats
from nova_accel.scheduler import aggregate_values
from nova_accel.scheduler import candidate_order
from nova_accel.scheduler import claim_attempts
from nova_accel.scheduler import ownership
from nova_accel.scheduler import request_filter  # noqa: F401 registers itself

CONF = conf.CONF

#: Hosts of one rank are shuffled if the other weighers find them alike: if
#: their weights differ by less than this part of what lies between two ranks.
_JITTER = 0.0005


class AcceleratorWeigher(weights.BaseHostWeigher):
    """Weighs hosts by their accelerators.

    For a server that asks for accelerators the hosts are ranked by how well
    the candidate fits that Nova would claim. The second attempt of a host
    comes after the first attempts of other hosts of its rank.

    Any other server keeps off hosts with accelerators. They are known by
    the statistics of the host, so nothing is asked for such a server.

    The weights are final: the multipliers are applied here, once for all
    hosts with the same aggregates.
    """

    # Nova scales the weights to this range: they stay as they are.
    minval = 0.0
    maxval = 1.0

    def weight_multiplier(self, host_state: host_manager.HostState) -> float:
        return 1.0

    def weigh_objects(
        self,
        weighed_obj_list: Sequence[weights.WeighedHost],
        weight_properties: 'objects.RequestSpec',
    ) -> list[float]:
        hosts = [weighed.obj for weighed in weighed_obj_list]
        if ownership.our_groups(weight_properties):
            return _by_rank(hosts)
        return _by_units(hosts)

    def _weigh_object(
        self,
        obj: host_manager.HostState,
        weight_properties: 'objects.RequestSpec',
    ) -> float:
        return self.weigh_objects(
            [weights.WeighedHost(obj, 0)], weight_properties
        )[0]


def _by_units(hosts: Sequence[host_manager.HostState]) -> list[float]:
    """The weights for a server that asks for no accelerators."""
    multipliers = _multipliers('plain_server_weight_multiplier')
    weighed = []
    for host in hosts:
        # A host that Nova knows nothing of yet has no statistics.
        units = host_stats.units(getattr(host, 'stats', None) or {})
        weighed.append(
            -multipliers.of(host) * units / (units + 1) if units else 0.0
        )
    return weighed


def _by_rank(hosts: Sequence[host_manager.HostState]) -> list[float]:
    """The weights for a server that asks for accelerators."""
    multipliers = _multipliers('accelerator_weight_multiplier')
    tries = [_try(host) for host in hosts]
    ranks = {
        fit: rank
        for rank, fit in enumerate(sorted({fit for fit, _number in tries}))
    }
    jitters = [_JITTER * place / len(hosts) for place in range(len(hosts))]
    random.shuffle(jitters)
    weighed = []
    for host, (fit, number), jitter in zip(hosts, tries, jitters, strict=True):
        multiplier = multipliers.of(host)
        later = number / claim_attempts.MAX_ATTEMPTS + jitter
        weighed.append(-multiplier * ranks[fit] - abs(multiplier) * later)
    return weighed


def _try(
    host: host_manager.HostState,
) -> tuple[candidate_order.CandidateFit, int]:
    """How well a host fits, and the number of attempts before this one.

    All hosts fit alike if the filter has not looked at them.
    """
    if isinstance(host, claim_attempts.Attempt):
        return host.fit, host.number
    return candidate_order.UNKNOWN, 0


def _multipliers(name: str) -> aggregate_values.OfHosts[float]:
    """The multiplier of that name, by host."""
    default: float = CONF.nova_accel[name]

    def read(host: host_manager.HostState) -> float:
        multiplier: float = utils.get_weight_multiplier(host, name, default)
        return multiplier

    return aggregate_values.OfHosts(default, read)
