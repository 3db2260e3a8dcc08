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

"""Refusals in a cloud of which Placement and the database know."""

import random

from nova import context as nova_context
from nova import exception
from nova import objects
import sqlalchemy as sa
import testtools

from nova_accel.db import client_arqs
from nova_accel.db import device_profile as device_profile_db
from nova_accel.db.sql import clock
from nova_accel.db.sql import schema
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import request_filter
from nova_accel.testing import reports
from nova_accel.testing import scheduling
from rig import quick_database

_CLASS = 'CUSTOM_QAT'

#: The traits of a pool, its units, and what is the matter with all of them.
_POOLS = (
    ('A', 4, 'in use'),
    ('A', 2, 'free'),
    ('AB', 4, 'faulty'),
    ('AB', 3, 'in use'),
    ('C', 8, 'silent'),
    ('D', 2, 'disabled'),
    ('D', 3, 'not clean'),
    ('BD', 1, 'free'),
    ('E', 6, 'in use'),
)

_REFUSALS = 60

_WORDS = {'silent': 'on hosts that do not report'}


def trait(letter):
    return f'CUSTOM_{letter}'


class TestRefusals(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.database = self.useFixture(quick_database.QuickDatabase())
        self.placement = self.useFixture(scheduling.Placement())
        device_profile_db.create('qat', [{f'resources:{_CLASS}': '1'}])
        for letter in 'ABCDEF':
            self.placement.client.put(
                f'/traits/{trait(letter)}', None, version='1.6'
            )
        for number, pool in enumerate(_POOLS):
            self.add(f'compute-{number}', *pool)

    def add(self, name, letters, amount, matter):
        """A host with a pool."""
        traits = [trait(letter) for letter in letters]
        host = reports.SimulatedHost(
            name,
            regions=(),
            functions=amount,
            function_traits=tuple(traits),
        )
        host.report()
        rp_uuid = host.allocated_functions(1).rp_uuid
        root = self.placement.add_provider(name, {'VCPU': 8})
        self.placement.add_provider(
            f'{name}_accel',
            # As if the host had reserved all others.
            {_CLASS: amount} if matter == 'free' else {},
            root,
            [naming.OWNERSHIP_TRAIT, *traits],
            uuid=rp_uuid,
        )
        if matter == 'in use':
            self.bind(name, rp_uuid, amount)
        devices = schema.DEVICES.c.hostname == name
        changes = {
            'silent': (
                sa.update(schema.HOSTS)
                .where(schema.HOSTS.c.hostname == name)
                .values(reported_at=clock.ago(3600))
            ),
            'faulty': sa.update(schema.DEVICES)
            .where(devices)
            .values(fault=f'{name} is hot'),
            'disabled': sa.update(schema.DEVICES)
            .where(devices)
            .values(status='maintaining'),
            'not clean': sa.update(schema.ATTACH_HANDLES)
            .where(
                schema.ATTACH_HANDLES.c.deployable_uuid.in_(
                    sa.select(schema.DEPLOYABLES.c.uuid).where(
                        schema.DEPLOYABLES.c.rp_uuid == rp_uuid
                    )
                )
            )
            .values(unclean_since=1),
        }
        if matter in changes:
            with self.database.engine.begin() as connection:
                connection.execute(changes[matter])

    def bind(self, name, rp_uuid, amount):
        for number in range(amount):
            [arq] = client_arqs.create('qat', 'project')
            client_arqs.bind(
                {
                    arq['uuid']: {
                        'hostname': name,
                        'device_rp_uuid': rp_uuid,
                        'instance_uuid': naming.derived_uuid(
                            rp_uuid, str(number)
                        ),
                    }
                }
            )

    def refusal(self, groups):
        """The text for a profile, None if it is not refused."""
        try:
            request_filter.check_accelerators(
                nova_context.get_admin_context(),
                scheduling.request_spec(
                    {device_profile.FLAVOR_KEY: 'gold'},
                    [
                        objects.RequestGroup(
                            requester_id=f'device_profile_{number}',
                            resources=dict(group.resources),
                            required_traits={
                                naming.OWNERSHIP_TRAIT,
                                *group.required,
                            },
                            forbidden_traits=set(group.forbidden),
                        )
                        for number, group in enumerate(groups)
                    ],
                ),
            )
        except exception.RequestFilterFailed as refusal:
            return str(refusal)
        return None

    def group(self, rng):
        required = rng.sample('ABCDEF', rng.randint(0, 2))
        forbidden = rng.sample('AB', rng.randint(0, 1))
        return device_profile.Group(
            {rng.choices([_CLASS, 'VGPU'], [9, 1])[0]: rng.randint(1, 7)},
            frozenset(map(trait, required)),
            frozenset(map(trait, forbidden)) - {*map(trait, required)},
        )

    def truth(self, group):
        """The words of the cause; None if the group can be served."""
        [(resource_class, wanted)] = group.resources.items()
        if resource_class != _CLASS:
            return [f'no host has {resource_class}']
        suited = [
            (amount, matter)
            for letters, amount, matter in _POOLS
            if group.required <= {trait(letter) for letter in letters}
            and group.forbidden.isdisjoint(map(trait, letters))
        ]
        if not suited:
            return [f'no {_CLASS} has']
        if max(amount for amount, _matter in suited) < wanted:
            return [f'{wanted} wanted at one place']
        large = [pool for pool in suited if pool[0] >= wanted]
        if any(matter == 'free' for _amount, matter in large):
            return None
        amounts = {}
        for amount, matter in large:
            amounts[matter] = amounts.get(matter, 0) + amount
        if len(amounts) > 1:
            return [
                f'{amount} {_WORDS.get(matter, matter)}'
                for matter, amount in amounts.items()
            ]
        [(matter, amount)] = amounts.items()
        return [f'all {amount} are {_WORDS.get(matter, matter)}']

    def test_each_by_its_group_and_cause(self):
        rng = random.Random(17)
        refused = 0
        while refused < _REFUSALS:
            groups = [self.group(rng) for _number in range(rng.randint(1, 2))]
            truths = [self.truth(group) for group in groups]
            unmet = [
                f'device_profile_{number}'
                for number, truth in enumerate(truths)
                if truth is not None
            ]
            text = self.refusal(groups)
            if not unmet:
                # All can be served, if not by one host.
                self.assertNotIn('(', text or '')
                continue
            refused += 1
            for number in range(len(groups)):
                name = f'device_profile_{number}'
                self.assertEqual(name in unmet, name in text, text)
            for truth in truths:
                for words in truth or ():
                    self.assertIn(words, text)
            self.assertNotIn('compute-', text)
