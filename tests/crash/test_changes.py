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

"""Random sequences of changes and operations, with kills among them."""

import os
import random

from nova.compute import vm_states
import testtools

from crash import cloud as cloud_module
from crash import effects
from nova_accel.model.profiles import device_profile

_SEQUENCES = 1000 if os.environ.get('CRASH_POINTS') == 'all' else 8
_LENGTH = 6
#: The number of the last effect before which nova-compute may be killed.
_LAST_EFFECT = 25
_PROFILES = ('both', 'fpga', 'vgpu', '')

_RUNS = (vm_states.ACTIVE,)
_IS_OFF = (vm_states.STOPPED,)
_EITHER = (*_RUNS, *_IS_OFF)

#: Operation -> the states of a server in which Nova allows it.
_ALLOWED = {
    'set_profile': _EITHER,
    'replace': _EITHER,
    'hard_reboot': _EITHER,
    'stop': _RUNS,
    'start': _IS_OFF,
    'suspend': _RUNS,
    'resume': (vm_states.SUSPENDED,),
    'rescue': _RUNS,
    'unrescue': (vm_states.RESCUED,),
    'rebuild': _EITHER,
    'shelve': _RUNS,
    'unshelve': (vm_states.SHELVED_OFFLOADED,),
    'migrate': _EITHER,
    'confirm': (vm_states.RESIZED,),
    'revert': (vm_states.RESIZED,),
}


class TestChanges(testtools.TestCase):
    def sequence(self, seed):
        """Do it, and say what is wrong in the end."""
        choice = random.Random(seed)
        done = []
        with cloud_module.Cloud() as cloud:
            server = cloud.nova.boot(
                cloud.hosts[0],
                device_profile.FLAVOR_KEY,
                choice.choice(_PROFILES),
            )
            for _operation in range(_LENGTH):
                allowed = [
                    name
                    for name, states in _ALLOWED.items()
                    if server.vm_state in states
                ]
                if not allowed:
                    break
                done.append(self.act(cloud, server, choice, allowed))
            wrong = cloud.drift()
            wrong += self.in_the_end(cloud, server)
            cloud.delete_all()
            wrong += cloud.leftovers()
        return [f'{seed}, {done}: {line}' for line in wrong]

    def act(self, cloud, server, choice, allowed):
        """Do one operation; half of them are cut short.

        :returns: what was done
        """
        name = choice.choice(allowed)
        arguments = {
            'set_profile': lambda: [choice.choice(_PROFILES)],
            'migrate': lambda: [choice.choice(cloud.hosts)],
            'unshelve': lambda: [choice.choice(cloud.hosts)],
        }.get(name, list)()
        point = None
        if choice.random() < 0.5:
            point = effects.Point(
                choice.randrange(_LAST_EFFECT),
                '',
                choice.choice(
                    (effects.Fault.KILLED_BEFORE, effects.Fault.KILLED_AFTER)
                ),
            )
        try:
            with cloud.effects.counted(point):
                getattr(cloud.nova, name)(server, *arguments)
        except effects.Killed:
            pass
        if cloud.effects.struck:
            cloud.restart_and_reconcile()
        else:
            cloud.reconcile()
        return (
            name,
            *map(str, arguments),
            point and (point.number, point.fault),
        )

    def in_the_end(self, cloud, server):
        """A guest that is made anew has just what its flavor asks for."""
        if server.vm_state not in _EITHER:
            return
        cloud.nova.hard_reboot(server)
        cloud.reconcile()
        cloud.reconcile_placement()
        yield from cloud.drift() + cloud.stale_allocations()
        held = cloud.nova.hosts[
            server.host
        ].driver._accelerators.attachments.held
        if server.vm_state == vm_states.ACTIVE and (
            len(held.arqs()) != cloud.nova.units(server)
            or held.left_by(server.uuid)
        ):
            yield f'it holds {held.arqs()}, for {server.flavor}'

    def test_sequences(self):
        self.assertEqual(
            [],
            [
                line
                for seed in range(_SEQUENCES)
                for line in self.sequence(seed)
            ],
        )
