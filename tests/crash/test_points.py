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

from collections.abc import Callable
import contextlib
import os
import random

from nova.compute import vm_states
import testtools

from crash import cloud as cloud_module
from crash import effects
from crash import imitation
from crash import imported
from nova_accel.model.profiles import device_profile

_NATIVE = device_profile.FLAVOR_KEY
_COMPAT = device_profile.CYBORG_FLAVOR_KEY

Cloud = cloud_module.Cloud
Meanwhile = Callable[[], contextlib.AbstractContextManager[None]]

#: Points of each operation that are tried, None for all.
_SAMPLE = None if os.environ.get('CRASH_POINTS') == 'all' else 2


class Operation:
    """What is done to a server.

    :param before: what was done to it before that
    """

    def __init__(
        self,
        act: Callable[[Cloud, imitation.Instance], None],
        *before: Callable[[Cloud, imitation.Instance], None],
        key: str = _NATIVE,
        profile: str = 'both',
    ) -> None:
        self._act = act
        self._before = before
        self._flavor = key, profile

    def run(
        self,
        cloud: Cloud,
        point: effects.Point | None = None,
        meanwhile: Meanwhile = contextlib.nullcontext,
    ) -> list[effects.Point]:
        """Do it, after what comes before it.

        :param meanwhile: what is so while it is done
        :returns: its points
        """
        do = self._ready(cloud)
        with (
            contextlib.suppress(effects.Killed),
            meanwhile(),
            cloud.effects.counted(point) as points,
        ):
            do()
        return points

    def _ready(self, cloud: Cloud) -> Callable[[], object]:
        """Do what comes before; what is to be done then."""
        server = self._boot(cloud)
        for act in self._before:
            act(cloud, server)
        return lambda: self._act(cloud, server)

    def _boot(self, cloud: Cloud) -> imitation.Instance:
        return cloud.nova.boot(cloud.hosts[0], *self._flavor)


class Boot(Operation):
    def __init__(self, key: str) -> None:
        super().__init__(lambda cloud, server: None, key=key)

    def _ready(self, cloud: Cloud) -> Callable[[], object]:
        return lambda: self._boot(cloud)


def _of(name: str) -> Callable[[Cloud, imitation.Instance], None]:
    """An operation that needs nothing but the server."""
    return lambda cloud, server: getattr(cloud.nova, name)(server)


def _to(
    name: str,
    number: int,
    *arguments: str,
) -> Callable[[Cloud, imitation.Instance], None]:
    return lambda cloud, server: getattr(cloud.nova, name)(
        server, cloud.hosts[number], *arguments
    )


def _set(profile: str) -> Callable[[Cloud, imitation.Instance], None]:
    return lambda cloud, server: cloud.nova.set_profile(server, profile)


def _source_returns(cloud: Cloud, server: imitation.Instance) -> None:
    # A nova-compute that cannot destroy the guest does not start.
    with contextlib.suppress(Exception):
        cloud.hosts[0].start()
        cloud.nova.recover(cloud.hosts[0])


def _switch(cloud: Cloud, server: imitation.Instance) -> None:
    """The start of a nova-compute that takes over guests."""
    cloud.hosts[0].start()


OPERATIONS = {
    'boot': Boot(_NATIVE),
    'boot_compat': Boot(_COMPAT),
    'delete': Operation(_of('delete')),
    'delete_compat': Operation(_of('delete'), key=_COMPAT),
    'hard_reboot': Operation(_of('hard_reboot')),
    'hard_reboot_compat': Operation(_of('hard_reboot'), key=_COMPAT),
    'start': Operation(_of('start'), _of('stop')),
    'suspend': Operation(_of('suspend')),
    'resume': Operation(_of('resume'), _of('suspend')),
    'cold_snapshot': Operation(_of('snapshot')),
    'rescue': Operation(_of('rescue')),
    'unrescue': Operation(_of('unrescue'), _of('rescue')),
    'shelve': Operation(_of('shelve')),
    'shelve_compat': Operation(_of('shelve'), key=_COMPAT),
    'unshelve': Operation(_to('unshelve', 1), _of('shelve')),
    'unshelve_compat': Operation(
        _to('unshelve', 1), _of('shelve'), key=_COMPAT
    ),
    'rebuild': Operation(_of('rebuild')),
    'set_on_a_plain_server': Operation(_set('both'), profile=''),
    'set_on_a_stopped_server': Operation(
        _set('both'), _of('stop'), profile=''
    ),
    'set_more': Operation(_set('both'), profile='vgpu'),
    'set_another': Operation(_set('vgpu'), profile='fpga'),
    'unset': Operation(_set('')),
    'replace': Operation(_of('replace')),
    'replace_on_a_stopped_server': Operation(_of('replace'), _of('stop')),
    'resize_on_one_host': Operation(_to('migrate', 0)),
    'confirm_on_one_host': Operation(_of('confirm'), _to('migrate', 0)),
    'revert_on_one_host': Operation(_of('revert'), _to('migrate', 0)),
    'cold_migration': Operation(_to('migrate', 1)),
    'confirm': Operation(_of('confirm'), _to('migrate', 1)),
    'revert': Operation(_of('revert'), _to('migrate', 1)),
    'resize_to_fewer_devices': Operation(_to('migrate', 0, 'vgpu')),
    'confirm_of_fewer_devices': Operation(
        _of('confirm'), _to('migrate', 0, 'vgpu')
    ),
    'revert_of_fewer_devices': Operation(
        _of('revert'), _to('migrate', 0, 'vgpu')
    ),
    'resize_to_more_devices': Operation(
        _to('migrate', 1, 'both'), profile='vgpu'
    ),
    'revert_of_more_devices': Operation(
        _of('revert'), _to('migrate', 1, 'both'), profile='vgpu'
    ),
    'delete_before_confirmed': Operation(_of('delete'), _to('migrate', 1)),
    # PCI devices move live only if their driver can.
    'live_migration': Operation(_to('live_migrate', 1), profile='vgpu'),
    'evacuation': Operation(_to('evacuate', 1)),
    'return_of_the_source': Operation(_source_returns, _to('evacuate', 1)),
    'take_over': Operation(_switch, imported.make, key=_COMPAT),
    'hard_reboot_of_what_was_taken_over': Operation(
        _of('hard_reboot'), imported.make, _switch, key=_COMPAT
    ),
    'delete_of_what_was_taken_over': Operation(
        _of('delete'), imported.make, _switch, key=_COMPAT
    ),
}


#: The class of a cloud and an operation -> the operation's points there.
_counted = {}


class PointsTestCase(testtools.TestCase):
    """Strikes at the points of operations.

    :cvar cloud: of the hosts that are struck
    """

    cloud = Cloud

    def points(self, operation):
        """Those of an operation, which are counted once in a process."""
        key = self.cloud, operation
        if key not in _counted:
            _counted[key] = self.count(operation)
        return _counted[key]

    def count(self, operation):
        with self.cloud() as cloud:
            points = operation.run(cloud)
            self.assertEqual([], cloud.drift() + cloud.stale_allocations())
            # Else this would be about nothing.
            self.assertEqual([], cloud.nova.refusals)
            self.assertEqual(
                [],
                [
                    instance
                    for instance in cloud.nova.instances.values()
                    if instance.vm_state == vm_states.ERROR
                ],
            )
        return points

    def strike(self, name, operation, point):
        """Do it, and say what is wrong after a restart."""
        with self.cloud() as cloud:
            operation.run(cloud, point)
            self.assertTrue(cloud.effects.struck)
            cloud.restart_and_reconcile()
            wrong = cloud.drift()
            cloud.reconcile_placement()
            wrong += cloud.stale_allocations()
            cloud.delete_all()
            wrong += cloud.leftovers()
        return [
            f'{name}, {point.number}: {point.effect}, '
            f'{point.fault.value}: {line}'
            for line in wrong
        ]

    def check(self, name):
        operation = OPERATIONS[name]
        points = self.points(operation)
        if _SAMPLE is not None:
            # The same ones each time.
            points = random.Random(name).sample(
                points, min(_SAMPLE, len(points))
            )
        self.assertEqual(
            [],
            [
                line
                for point in points
                for line in self.strike(name, operation, point)
            ],
        )


class TestPoints(PointsTestCase):
    """A test for each operation, made below; and whether they suffice."""

    def test_there_are_enough(self):
        self.assertGreater(
            sum(
                len(self.points(operation))
                for operation in OPERATIONS.values()
            ),
            200,
        )


for _name in OPERATIONS:
    setattr(
        TestPoints, f'test_{_name}', lambda self, name=_name: self.check(name)
    )
