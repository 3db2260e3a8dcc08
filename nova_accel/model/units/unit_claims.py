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
the host binds them, and only then the database shows them as taken.
"""

from typing import NamedTuple

#: Seconds after which a claim is forgotten: it was bound unseen, or given up.
KEPT_S = 30.0

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
