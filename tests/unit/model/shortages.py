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

"""Random clouds that cannot serve a device profile, for a known cause.

Each function of :data:`CAUSES` makes the providers for which one group of a
profile cannot be served, and the words that tell so.
"""

from collections.abc import Callable
import dataclasses
import random

from nova_accel.model.profiles import device_profile
from nova_accel.model.units import explanation

_CLASSES = ('CUSTOM_QAT', 'FPGA', 'PGPU', 'VGPU')
_TRAITS = tuple(f'CUSTOM_{letter}' for letter in 'ABCDEF')


@dataclasses.dataclass
class Shortage:
    """A refusal.

    :ivar groups: the groups of a profile, by their names
    :ivar unmet: the groups that cannot be served
    :ivar words: what a true text has
    """

    groups: dict[str, device_profile.Group]
    inventories: list[explanation.Inventory]
    unmet: list[str]
    words: list[str]


def inventory(
    resource_class: str = 'FPGA',
    units: dict[str | None, int] | None = None,
    traits: frozenset[str] = frozenset(),
    hostname: str = 'compute-1',
    is_silent: bool = False,
) -> explanation.Inventory:
    return explanation.Inventory(
        hostname,
        'rp',
        resource_class,
        traits,
        ('device',),
        {None: 1} if units is None else units,
        is_silent,
    )


class Cloud:
    """Makes one shortage.

    :ivar group: the group that cannot be served
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        classes = self.random.sample(_CLASSES, 3)
        self.resource_class, *self._others = classes
        self.wanted = self.random.randint(1, 4)
        self.required = frozenset(self.random.sample(_TRAITS[:3], 2))
        self.forbidden = frozenset({_TRAITS[3]})
        self.inventories: list[explanation.Inventory] = []

    @property
    def group(self) -> device_profile.Group:
        return device_profile.Group(
            {self.resource_class: self.wanted}, self.required, self.forbidden
        )

    def add(
        self,
        units: dict[str | None, int],
        traits: frozenset[str] | None = None,
        is_silent: bool = False,
    ) -> None:
        """Add a provider of the group's class, by default a suitable one."""
        more = self.random.sample(_TRAITS[4:], self.random.randint(0, 2))
        self.inventories.append(
            inventory(
                self.resource_class,
                units,
                (self.required if traits is None else traits).union(more),
                f'host-{self.random.randint(1, 9)}',
                is_silent,
            )
        )

    def some(self) -> range:
        return range(self.random.randint(1, 5))

    def enough(self) -> int:
        """A number of units of which the group could be served."""
        return self.wanted + self.random.randint(0, 3)

    def add_unsuited(self) -> None:
        """Add what lacks a trait of the group, or is too small."""
        for _number in self.some():
            lost = self.random.choice(sorted(self.required))
            self.add({None: self.enough()}, self.required - {lost})
        if self.wanted > 1:
            self.add({None: self.wanted - 1})

    def shortage(self, *words: str) -> Shortage:
        """The shortage, among other groups that can be served."""
        groups = {}
        unmet = self.random.randrange(3)
        for number in range(3):
            if number == unmet:
                groups[f'device_profile_{number}'] = self.group
                continue
            resource_class = self._others[number % 2]
            groups[f'device_profile_{number}'] = device_profile.Group(
                {resource_class: 1}
            )
            self.inventories.append(inventory(resource_class))
        self.random.shuffle(self.inventories)
        return Shortage(
            groups,
            self.inventories,
            [f'device_profile_{unmet}'],
            [*words],
        )


def _no_class(cloud: Cloud) -> Shortage:
    return cloud.shortage(f'no host has {cloud.resource_class}')


def _no_trait(cloud: Cloud) -> Shortage:
    lost = cloud.random.choice(sorted(cloud.required))
    for _number in cloud.some():
        cloud.add({None: cloud.enough()}, cloud.required - {lost})
    return cloud.shortage(f'no {cloud.resource_class} has {lost}')


def _forbidden_trait(cloud: Cloud) -> Shortage:
    [forbidden] = cloud.forbidden
    for _number in cloud.some():
        cloud.add({None: cloud.enough()}, cloud.required | cloud.forbidden)
    return cloud.shortage(f'has what is forbidden: {forbidden}')


def _traits_apart(cloud: Cloud) -> Shortage:
    for trait in cloud.required:
        for _number in cloud.some():
            cloud.add({None: cloud.enough()}, frozenset({trait}))
    return cloud.shortage('has all of', *cloud.required)


def _too_few(cloud: Cloud) -> Shortage:
    cloud.wanted = cloud.random.randint(3, 6)
    for _number in cloud.some():
        cloud.add({None: cloud.random.randint(1, cloud.wanted - 2)})
    cloud.add({None: cloud.wanted - 1})
    return cloud.shortage(
        f'{cloud.wanted} wanted at one place',
        f'the largest has {cloud.wanted - 1}',
    )


def _all(why: str) -> Callable[[Cloud], Shortage]:
    """All units that suit are not free, for one reason."""

    def make(cloud: Cloud) -> Shortage:
        total = 0
        for _number in cloud.some():
            amount = cloud.enough()
            cloud.add({why: amount})
            total += amount
        cloud.add_unsuited()
        return cloud.shortage(
            f'all {total} are {why}' if total > 1 else f'the only one is {why}'
        )

    return make


def _silent(cloud: Cloud) -> Shortage:
    for _number in cloud.some():
        cloud.add({None: cloud.enough()}, is_silent=True)
    cloud.add_unsuited()
    return cloud.shortage('on hosts that do not report')


def _mixed(cloud: Cloud) -> Shortage:
    cloud.add({'in use': cloud.enough() + 20})
    cloud.add({'faulty': cloud.enough()})
    cloud.add_unsuited()
    [used, faulty, *_others] = cloud.inventories
    return cloud.shortage(
        f'{used.total} in use', f'{faulty.total} faulty', 'of '
    )


def _too_few_free(cloud: Cloud) -> Shortage:
    cloud.wanted = cloud.random.randint(2, 5)
    free = cloud.random.randint(1, cloud.wanted - 1)
    cloud.add({None: free, 'in use': cloud.wanted})
    cloud.add_unsuited()
    return cloud.shortage(
        f'{cloud.wanted} in use', f'nearest: {free} free at one place'
    )


def _not_on_one_host(cloud: Cloud) -> Shortage:
    groups = {
        'device_profile_0': cloud.group,
        'device_profile_1': device_profile.Group({'CUSTOM_SSD': 1}),
    }
    cloud.add({None: cloud.enough()})
    cloud.inventories.append(inventory('CUSTOM_SSD', hostname='apart'))
    return Shortage(
        groups,
        cloud.inventories,
        [*groups],
        ['no host has', 'free together', 'nearest: one lacks device_profile_'],
    )


def _the_same_devices(cloud: Cloud) -> Shortage:
    groups = {f'device_profile_{number}': cloud.group for number in range(3)}
    cloud.add({None: cloud.wanted * 2})
    return Shortage(
        groups, cloud.inventories, [*groups], ['want the same devices']
    )


CAUSES: dict[str, Callable[[Cloud], Shortage]] = {
    'no class': _no_class,
    'no trait': _no_trait,
    'forbidden trait': _forbidden_trait,
    'traits apart': _traits_apart,
    'too few': _too_few,
    'in use': _all('in use'),
    'not clean': _all('not clean'),
    'faulty': _all('faulty'),
    'disabled': _all('disabled'),
    'silent': _silent,
    'mixed': _mixed,
    'too few free': _too_few_free,
    'not on one host': _not_on_one_host,
    'the same devices': _the_same_devices,
}
