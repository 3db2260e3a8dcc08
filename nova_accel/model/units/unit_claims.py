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

"""Claims of units that no host has bound yet.

nova-scheduler claims units of a provider in Placement. Some seconds pass until
the host binds them, and only then the database shows them as taken. It
promises them before, where a flavor leaves the choice between profiles.
"""

import collections
from collections.abc import Iterable
import math
from typing import NamedTuple

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import host_fit

#: Seconds after which a claim is forgotten: it was bound unseen, or given up.
KEPT_S = 30.0

#: Seconds in which nova-scheduler claims what it has promised.
LATE_S = 10.0

#: How many claims are kept at most. More come only with a burst that no
#: scheduler can place in :data:`KEPT_S`.
MOST = 1000


class _Key(NamedTuple):
    consumer: str
    rp_uuid: str
    resource_class: str


class _Claim(NamedTuple):
    amount: int
    until: float


class UnitClaims:
    """The newest claims, the oldest first."""

    def __init__(self) -> None:
        self._of_provider: dict[str, dict[_Key, _Claim]] = {}
        self._all: dict[_Key, _Claim] = {}

    def __len__(self) -> int:
        return len(self._all)

    def add(
        self,
        consumer: str,
        rp_uuid: str,
        resource_class: str,
        amount: int,
        now: float,
    ) -> set[str]:
        """Note what a consumer claims of a class at a provider.

        A new claim of the same takes the place of the one before; of nothing
        it withdraws it.

        :returns: the providers of which another amount is claimed now
        """
        key = _Key(consumer, rp_uuid, resource_class)
        touched = {rp_uuid}
        self._remove(key)
        if amount > 0:
            while len(self._all) >= MOST:
                oldest = next(iter(self._all))
                touched.add(oldest.rp_uuid)
                self._remove(oldest)
            self._put(key, _Claim(amount, now + KEPT_S))
        return touched

    def expire(self, now: float) -> set[str]:
        """Forget old claims.

        :returns: the providers of which less is claimed now
        """
        old = [key for key, claim in self._all.items() if claim.until <= now]
        for key in old:
            self._remove(key)
        return {key.rp_uuid for key in old}

    def bind(self, rp_uuid: str, resource_class: str, amount: int) -> None:
        """Forget claims of units that are no longer free, the oldest first.

        The database does not tell whose they are. A claim that is mistaken for
        another one is counted for some seconds too long or too short.
        """
        for key, claim in list(self._of_provider.get(rp_uuid, {}).items()):
            if key.resource_class == resource_class and amount > 0:
                if claim.amount <= amount:
                    self._remove(key)
                else:
                    self._put(
                        key, claim._replace(amount=claim.amount - amount)
                    )
                amount -= claim.amount

    def of(self, rp_uuid: str) -> dict[str, int]:
        """Resource class -> how many units of the provider are claimed."""
        claimed: dict[str, int] = {}
        for key, claim in self._of_provider.get(rp_uuid, {}).items():
            claimed[key.resource_class] = (
                claimed.get(key.resource_class, 0) + claim.amount
            )
        return claimed

    def _put(self, key: _Key, claim: _Claim) -> None:
        self._all[key] = claim
        self._of_provider.setdefault(key.rp_uuid, {})[key] = claim

    def _remove(self, key: _Key) -> None:
        if self._all.pop(key, None) is not None:
            of_provider = self._of_provider[key.rp_uuid]
            del of_provider[key]
            if not of_provider:
                del self._of_provider[key.rp_uuid]


class Promise(NamedTuple):
    """The units that some servers are going to claim.

    :ivar request: that of each of the servers
    :ivar kind: the same for requests that Placement answers alike
    """

    request: host_fit.Request
    servers: int
    project_id: str
    kind: str = ''


class Promises:
    """The promises that are not claimed yet, the oldest first.

    They name no provider: Placement and nova-scheduler choose it later.
    """

    def __init__(self) -> None:
        self._all: dict[str, tuple[Promise, float]] = {}

    def give(
        self,
        consumer: str,
        promise: Promise,
        now: float,
        hosts: host_fit.Hosts,
    ) -> bool:
        """Promise units to a server, if they are free beside all others.

        :param hosts: as for :func:`host_fit.find_servable`
        """
        self.end(consumer)
        found = host_fit.find_servable(
            (
                each.request
                for each in (*self.before(consumer, now), promise)
                for _server in range(each.servers)
            ),
            hosts,
        )
        if not all(found[-promise.servers :]):
            return False
        self.note(consumer, promise, now)
        return True

    def note(self, consumer: str, promise: Promise, now: float) -> None:
        """Promise units to a server, whether they are free or not.

        The promise ends after :data:`KEPT_S`, if it is not kept before.
        """
        self.end(consumer)
        while len(self._all) >= MOST:
            del self._all[next(iter(self._all))]
        self._all[consumer] = promise, now

    def end(self, consumer: str) -> None:
        """A server has claimed its units, or wants them no more."""
        self._all.pop(consumer, None)

    def has(
        self,
        consumer: str,
        groups: Iterable[device_profile.Group],
        now: float,
    ) -> bool:
        """Whether a server has been promised just these groups."""
        promise, at = self._all.get(consumer, (None, -math.inf))
        return (
            promise is not None
            and now < at + KEPT_S
            and collections.Counter(groups)
            == collections.Counter(promise.request.groups)
        )

    def before(self, consumer: str, now: float) -> list[Promise]:
        """The promises to others, given before the server's own, if any."""
        found = []
        for other, (promise, at) in list(self._all.items()):
            if other == consumer:
                break
            if now < at + KEPT_S:
                found.append(promise)
        return found

    def units_before(
        self, consumer: str, project_id: str, now: float
    ) -> collections.Counter[str]:
        """Resource class -> units that a project was promised before."""
        units: collections.Counter[str] = collections.Counter()
        for promise in self.before(consumer, now):
            if promise.project_id == project_id:
                for group in promise.request.groups:
                    for resource_class, amount in group.resources.items():
                        units[resource_class] += amount * promise.servers
        return units

    def is_late(self, kind: str, now: float) -> bool:
        """Whether a promise of the kind is not kept when others are."""
        return any(
            promise.kind == kind and LATE_S < now - at < KEPT_S
            for promise, at in list(self._all.values())
        )
