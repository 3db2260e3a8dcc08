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

"""``nova-accel-manage explain``: who could serve a device profile."""

from collections.abc import Iterable
from collections.abc import Iterator
import itertools

from nova_accel.db import device_profile as device_profile_db
from nova_accel.db import explanation as explanation_db
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import explanation
from nova_accel.overview import explaining

#: How many hosts are read at a time.
PAGE = 100


class Explain(explaining.Explain):
    def pages(
        self, profile: str, hostname: str | None
    ) -> Iterator[Iterable[explaining.Row]]:
        groups = device_profile.parse_groups(
            device_profile_db.get(profile)['groups']
        )
        classes = {name for group in groups for name in group.resources}
        after = None
        while True:
            hostnames, units = explanation_db.get_page(
                classes, PAGE, after, hostname
            )
            yield _rows(groups, explanation.inventories(units))
            yield (
                explaining.nothing(number, group.resources)
                for number, group in enumerate(groups)
            )
            if len(hostnames) < PAGE:
                return
            after = hostnames[-1]


def _rows(
    groups: tuple[device_profile.Group, ...],
    inventories: list[explanation.Inventory],
) -> Iterator[explaining.Row]:
    for _hostname, of_host in itertools.groupby(
        inventories, lambda inventory: inventory.hostname
    ):
        for number, candidates in enumerate(
            explanation.explain_all(groups, list(of_host))
        ):
            for candidate in candidates:
                inventory = candidate.inventory
                yield (
                    number,
                    inventory.hostname,
                    explaining.devices(inventory.device_addresses),
                    inventory.rp_uuid,
                    inventory.resource_class,
                    inventory.total,
                    inventory.free,
                    '; '.join(candidate.reasons),
                )
