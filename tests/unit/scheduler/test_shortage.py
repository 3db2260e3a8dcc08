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

import fixtures
from nova import context as nova_context
from nova import exception
from nova import objects
from oslo_utils import uuidutils
import sqlalchemy as sa
import testtools

from nova_accel.db import client_arqs
from nova_accel.db import device as device_db
from nova_accel.db import device_profile as device_profile_db
from nova_accel.db.sql import schema
from nova_accel.model import naming
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import candidates
from nova_accel.scheduler import known_stock
from nova_accel.scheduler import ownership
from nova_accel.scheduler import shortage
from nova_accel.scheduler import traits
from nova_accel.testing import database
from nova_accel.testing import reports
from nova_accel.testing import scheduling
from rig import quick_database
from rig.loopback import board_cloud
from rig.loopback import board_host


def explain(spec):
    shortage.explain(
        nova_context.get_admin_context(), spec, ownership.our_groups(spec)
    )


def change_statuses():
    """Disable and enable all devices, of which Placement is not told."""
    for device in device_db.get_all():
        for status in ('maintaining', 'enabled'):
            device_db.set_status(device['uuid'], status)


def reserve(placement, resource_class):
    """Have Placement reserve all units of a class."""
    for provider in placement.get(
        '/resource_providers', version='1.26'
    ).json()['resource_providers']:
        path = f'/resource_providers/{provider["uuid"]}/inventories'
        there = placement.get(path, version='1.26').json()
        inventory = there['inventories'].get(resource_class)
        if inventory is not None:
            inventory['reserved'] = inventory['total']
            scheduling.checked(placement.put(path, there, version='1.26'))


class TestExplain(testtools.TestCase):
    """A host has two FPGAs, of which Placement and the database know."""

    def setUp(self):
        super().setUp()
        self.database = self.useFixture(quick_database.QuickDatabase())
        self.placement = self.useFixture(scheduling.Placement())
        host = self.placement.add_provider('host', {'VCPU': 8})
        self.host = reports.SimulatedHost('host', regions=(2,))
        self.host.report()
        for number in range(2):
            self.placement.add_provider(
                f'host_accel_{number}',
                {'FPGA': 1},
                host,
                [naming.OWNERSHIP_TRAIT, f'CUSTOM_REGION{number}'],
                uuid=self.host.rp_uuid(0, number),
            )

    key = device_profile.FLAVOR_KEY

    def explain(self, *groups, **extra_specs):
        """Let the request through, or raise."""
        explain(
            scheduling.request_spec(
                {self.key: 'profile', **extra_specs},
                [
                    objects.RequestGroup(
                        requester_id=device_profile.requester_id(index),
                        resources=resources,
                        required_traits={naming.OWNERSHIP_TRAIT, *traits},
                    )
                    for index, (resources, *traits) in enumerate(groups)
                ],
            ),
        )

    def reason(self, *groups, **extra_specs):
        error = self.assertRaises(
            exception.RequestFilterFailed, self.explain, *groups, **extra_specs
        )
        return str(error)

    def questions(self):
        """Each question about candidates to Placement, noted from now on."""
        asked = []
        get = self.placement.client.get_allocation_candidates

        def note(context, request):
            asked.append(request)
            return get(context, request)

        self.useFixture(
            fixtures.MockPatchObject(
                self.placement.client, 'get_allocation_candidates', note
            )
        )
        return asked

    def test_there_is_enough(self):
        """Nova will ask Placement, and no one else does."""
        asked = self.questions()
        self.explain(({'FPGA': 1},), ({'FPGA': 1},))
        self.explain(
            ({'FPGA': 1}, 'CUSTOM_REGION0'),
            ({'FPGA': 1}, 'CUSTOM_REGION1'),
            group_policy='isolate',
        )
        self.assertEqual([], asked)

    def test_placement_has_the_last_word(self):
        """A shortage by what is known need not be one."""
        asked = self.questions()
        with self.database.engine.begin() as connection:
            connection.execute(
                sa.update(schema.ATTACH_HANDLES).values(present=False)
            )
        self.explain(({'FPGA': 1},))
        self.assertEqual(1, len(asked))

    def test_nothing_is_known(self):
        """Nova finds out by itself."""
        self.useFixture(database.Database(tables=False))
        asked = self.questions()
        self.explain(({'FPGA': 9},))
        self.assertEqual([], asked)

    def test_a_trait_that_placement_has_no_more(self):
        """The next request is told so, and not refused without a reason."""
        context = nova_context.get_admin_context()
        self.placement.client.put('/traits/CUSTOM_A', None, version='1.6')
        traits.find_or_create(context, ['CUSTOM_A'])
        self.placement.client.delete('/traits/CUSTOM_A', version='1.6')
        self.assertEqual(
            {'CUSTOM_A'}, traits.find_or_create(context, ['CUSTOM_A'])
        )
        self.explain(({'FPGA': 1}, 'CUSTOM_A'))
        self.assertEqual(set(), traits.find_or_create(context, ['CUSTOM_A']))

    def test_a_class_that_placement_never_had(self):
        self.assertIn(
            'device profile profile: device_profile_1 (CUSTOM_FPAG=1): no '
            'host has CUSTOM_FPAG',
            self.reason(({'FPGA': 1},), ({'CUSTOM_FPAG': 1},)),
        )

    def test_one_group_cannot_be_met(self):
        reason = self.reason(({'FPGA': 1},), ({'FPGA': 2}, 'CUSTOM_REGION1'))
        self.assertIn('device profile profile', reason)
        self.assertIn(
            'device_profile_1 (FPGA=2, CUSTOM_REGION1): 2 wanted at one '
            'place, and the largest has 1',
            reason,
        )
        self.assertNotIn('device_profile_0', reason)
        self.assertNotIn(naming.OWNERSHIP_TRAIT, reason)

    def test_the_groups_cannot_be_met_together(self):
        reason = self.reason(*[({'FPGA': 1},)] * 3)
        self.assertIn(
            'no host has device_profile_0, device_profile_1, device_profile_2 '
            'free together: they want the same devices',
            reason,
        )

    def test_what_is_taken_is_not_free(self):
        (taken,) = candidates.ask(
            nova_context.get_admin_context(),
            [
                objects.RequestGroup(
                    requester_id='it',
                    resources={'FPGA': 1},
                    required_traits={'CUSTOM_REGION0'},
                )
            ],
        )
        self.assertTrue(self.placement.claim(taken))
        self.bind()
        self.assertIn(
            'device_profile_0 (FPGA=1, CUSTOM_REGION0): the only one is in '
            'use, nearest: 1 free without CUSTOM_REGION0',
            self.reason(({'FPGA': 1}, 'CUSTOM_REGION0')),
        )
        self.explain(({'FPGA': 1},))

    def test_what_placement_still_reserves(self):
        """The host has enabled it, and Placement does not know yet."""
        asked = self.questions()
        change_statuses()
        # There is one where nothing has changed.
        self.explain(({'FPGA': 1},))
        self.assertEqual(1, len(asked))
        reserve(self.placement.client, 'FPGA')
        words = (
            'device_profile_0 (FPGA=1): free, but Placement still reserves '
            'them until a host reports'
        )
        self.assertIn(words, self.reason(({'FPGA': 1},)))
        self.host.follow()
        asked.clear()
        self.explain(({'FPGA': 1},))
        self.assertEqual([], asked)

    def bind(self):
        """Have an instance take the first FPGA."""
        device_profile_db.create('fpga', [{'resources:FPGA': '1'}])
        [arq] = client_arqs.create('fpga', 'project')
        client_arqs.bind(
            {
                arq['uuid']: {
                    'hostname': 'host',
                    'device_rp_uuid': self.host.rp_uuid(),
                    'instance_uuid': uuidutils.generate_uuid(),
                }
            }
        )

    def test_ports(self):
        port, other = (uuidutils.generate_uuid() for _port in range(2))
        spec = scheduling.request_spec(
            {self.key: 'profile'},
            [
                objects.RequestGroup(
                    requester_id=device_profile.requester_id(0, owner),
                    resources={'FPGA': amount},
                    required_traits={naming.OWNERSHIP_TRAIT},
                )
                for owner, amount in ((port, 2), (other, 1), ('', 1))
            ],
        )
        spec.requested_networks = objects.NetworkRequestList(
            objects=[
                objects.NetworkRequest(port_id=port, device_profile='nic'),
                objects.NetworkRequest(port_id=other, device_profile='other'),
            ]
        )
        error = self.assertRaises(exception.RequestFilterFailed, explain, spec)
        self.assertIn(
            f'device profile nic: device_profile_0{port} (FPGA=2): 2 '
            'wanted at one place',
            str(error),
        )
        spec.requested_resources[0].resources = {'FPGA': 1}
        error = self.assertRaises(exception.RequestFilterFailed, explain, spec)
        self.assertIn(
            'device profile nic, other, profile: no host has', str(error)
        )

    def test_nova_does_not_cut_it(self):
        """The fault of the server has all of it."""
        for trait in ('CUSTOM_REGION0', 'CUSTOM_' + 'A' * 100):
            self.placement.client.put(f'/traits/{trait}', None, version='1.6')
            error = self.assertRaises(
                exception.RequestFilterFailed,
                self.explain,
                *[({'FPGA': 2}, trait)] * 3,
            )
            fault = exception.NoValidHost(reason=error.message)
            self.assertLessEqual(len(str(fault)), 255)

    def test_the_database_gives_no_answer_any_more(self):
        current = known_stock.current

        def away(max_age_s=None):
            return None if max_age_s is None else current(max_age_s)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.scheduler.known_stock.current', away
            )
        )
        self.assertIn(
            'no device has device_profile_0 free', self.reason(({'FPGA': 9},))
        )
        self.assertIn(
            'no host has device_profile_0, device_profile_1, device_profile_2 '
            'free together',
            self.reason(*[({'FPGA': 1},)] * 3),
        )

    def test_placement_is_away(self):
        """Nova finds that out by itself."""
        self.placement.use('http://127.0.0.1:1')
        self.explain(({'FPGA': 9},))


class TestCyborgsKey(TestExplain):
    key = device_profile.CYBORG_FLAVOR_KEY


class TestLinks(testtools.TestCase):
    """Two hosts with NVSwitch boards."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.cloud = self.useFixture(
            board_cloud.BoardCloud(
                [board_host.BoardHost(f'board-{name}') for name in 'ab']
            )
        )
        for size in (2, 4, 8):
            self.cloud.profile(
                f'gpus{size}',
                {'resources:PGPU': f'{size}', 'accel:link': 'nvlink'},
            )
        self.cloud.profile('gpu', {'resources:PGPU': '1'})

    def refused(self, profile):
        error = self.assertRaises(
            exception.RequestFilterFailed, self.cloud.boot, profile
        )
        self.assertNotIn('board-', str(error))
        return str(error)

    def test_what_placement_still_reserves(self):
        change_statuses()
        reserve(self.cloud.placement.client, 'PGPU')
        self.assertIn(
            'free, but Placement still reserves them until a host reports',
            self.refused('gpus8'),
        )

    def test_kind_and_size(self):
        for profile in ('gpu', 'gpus8', 'gpus2'):
            self.cloud.boot(profile)
        self.assertIn(
            'device profile gpus8: device_profile_0 (PGPU=8 joined by '
            'NVLink): none of 2 sets that join 8 has as many free, nearest: '
            'a set of 4 is free',
            self.refused('gpus8'),
        )
        self.cloud.boot('gpus4')
        self.assertIn(
            'device profile gpus4: device_profile_0 (PGPU=4 joined by '
            'NVLink): none of 4 sets that join 4 has as many free',
            self.refused('gpus4'),
        )

    def test_gpus_that_are_not_joined(self):
        self.cloud.profile('two', {'resources:PGPU': '2'})
        error = self.assertRaises(
            exception.RequestFilterFailed, self.cloud.boot, 'two'
        )
        self.assertIn('accel:link=nvlink', str(error))

    def test_joined_ones_and_others_together(self):
        self.cloud.profile(
            'both',
            {'resources:PGPU': '8', 'accel:link': 'nvlink'},
            {'resources:CUSTOM_NIC': '1'},
        )
        self.cloud.profile('cards', *[{'resources:CUSTOM_NIC': '1'}] * 4)
        self.cloud.boot('both')
        self.cloud.boot('cards')
        self.assertIn(
            'no host has device_profile_0_0, device_profile_0_1, ',
            self.refused('both'),
        )
