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

from nova import objects
from nova.scheduler import host_manager
from nova.scheduler import weights

from nova_accel import conf
from nova_accel.model.units import host_stats
from nova_accel.scheduler import candidate_filter
from nova_accel.scheduler import weigher
from nova_accel.testing import scheduling
from unit.scheduler import scheduled

CONF = conf.CONF


class WeigherTestCase(scheduled.ScheduledTestCase):
    def configure(self, name, value):
        CONF.set_override(name, value, 'nova_accel')
        self.addCleanup(CONF.clear_override, name, 'nova_accel')

    def weights(self, hosts, spec):
        """As Nova weighs them: name -> weight."""
        return {
            weighed.obj.nodename: weighed.weight
            for weighed in weights.HostWeightHandler().get_weighed_objects(
                [weigher.AcceleratorWeigher()], hosts, spec
            )
        }


class TestPlainServers(WeigherTestCase):
    """They ask for no accelerators, and keep off hosts that have some."""

    def weigh(self, *aggregates, **units):
        hosts = []
        for name, number in units.items():
            host = host_manager.HostState(name, name, None)
            host.stats = host_stats.to_stats({'FPGA': number})
            host.aggregates = list(aggregates)
            hosts.append(host)
        return self.weights(hosts, scheduling.request_spec())

    def test_hosts_with_fewer_units_are_better(self):
        found = self.weigh(none=0, one=1, many=99)
        self.assertEqual({'none': 0.0, 'one': -5.0, 'many': -9.9}, found)
        self.assertEqual(0, self.reads)

    def test_multiplier(self):
        for multiplier, weight in ((0.0, 0.0), (-4.0, 2.0)):
            self.configure('plain_server_weight_multiplier', multiplier)
            self.assertEqual(weight, self.weigh(none=0, one=1)['one'])

    def test_the_other_multiplier_has_no_influence(self):
        self.configure('accelerator_weight_multiplier', -1000.0)
        self.assertEqual(-5.0, self.weigh(none=0, one=1)['one'])

    def test_multiplier_of_an_aggregate(self):
        aggregate = objects.Aggregate(
            metadata={'plain_server_weight_multiplier': '3'}
        )
        self.assertEqual(
            {'none': 0.0, 'one': -1.5}, self.weigh(aggregate, none=0, one=1)
        )

    def test_a_host_of_which_nova_knows_nothing_yet(self):
        """It has no statistics at all."""
        hosts = [
            host_manager.HostState(name, name, None) for name in ('a', 'b')
        ]
        self.assertEqual(
            {'a': 0.0, 'b': 0.0},
            self.weights(hosts, scheduling.request_spec()),
        )
        hosts[0].stats = None
        self.weights(hosts, scheduling.request_spec())


class TestAcceleratedServers(WeigherTestCase):
    def chosen(self, *groups):
        [[chosen, *_alternates]] = self.select(self.spec(*(groups or [1])))
        return chosen

    def test_the_host_that_fits_best(self):
        self.know()
        self.host('emptier', 8)
        self.host('fullest', 2)
        self.host('fuller', 4)
        self.assertEqual(['fullest'] * 2, [self.chosen(), self.chosen()])
        self.assertEqual('fuller', self.chosen())

    def test_the_fullest_host_if_each_device_is_apart(self):
        self.know()
        self.host('emptier', *[1] * 6)
        self.host('fuller', 1, 1, 1)
        self.assertEqual(['fuller'] * 3, [self.chosen() for _ in range(3)])

    def test_the_emptiest_host_to_spread(self):
        self.know()
        self.configure('unit_policies', {'FPGA': 'spread'})
        self.host('emptier', *[1] * 6)
        self.host('fuller', 1, 1, 1)
        self.assertEqual(['emptier'] * 3, [self.chosen() for _ in range(3)])

    def test_it_wins_over_the_weighers_of_nova(self):
        """Each of them gives a host one at most, by default."""
        self.know()
        self.host('emptier', 8)
        self.host('fuller', 4)
        ranks = sorted(self.ranked().values())
        self.assertLess(20, ranks[1] - ranks[0])

    def ranked(self, **metadata):
        """The hosts' weights, by what is known of them."""
        spec = self.spec(1)
        hosts = []
        for name, uuid in self.hosts.items():
            host = host_manager.HostState(name, name, None)
            host.uuid = uuid
            host.aggregates = [objects.Aggregate(metadata=metadata)]
            host.allocation_candidates = [
                candidate
                for candidate in self.placement.candidates(spec)
                if uuid in candidate['allocations']
            ]
            hosts.append(host)
        filtered = candidate_filter.AcceleratorFilter().filter_all(hosts, spec)
        return self.weights(list(filtered), spec)

    def test_the_weighers_of_nova_choose_between_equal_ones(self):
        self.know()
        self.host('one', 4)
        self.host('other', 4)
        one, other = self.ranked().values()
        self.assertNotEqual(one, other)
        self.assertLess(abs(one - other), 0.1)

    def test_equal_ones_are_shuffled(self):
        self.host('one', 4)
        self.host('other', 4)
        self.assertEqual(
            {'one', 'other'},
            {
                max((weight, name) for name, weight in found.items())[1]
                for found in (self.ranked() for _request in range(30))
            },
        )

    def test_multipliers(self):
        self.know()
        self.host('fuller', 1)
        self.host('emptier', 4)

        def apart(**metadata):
            found = self.ranked(**metadata)
            return found['fuller'] - found['emptier']

        for multiplier in (100, 10, 0, -10):
            self.configure('accelerator_weight_multiplier', multiplier)
            self.assertAlmostEqual(multiplier, apart(), delta=0.1)
        self.assertAlmostEqual(
            3, apart(accelerator_weight_multiplier='3'), delta=0.1
        )

    def test_without_the_filter(self):
        """No one has looked at the candidates."""
        hosts = [
            host_manager.HostState(name, name, None) for name in ('a', 'b')
        ]
        for weight in self.weights(hosts, self.spec(1)).values():
            self.assertAlmostEqual(0, weight, delta=0.1)
        self.assertEqual(0, self.reads)

    def test_one_host_alone(self):
        host = host_manager.HostState('a', 'a', None)
        self.assertAlmostEqual(
            0,
            weigher.AcceleratorWeigher()._weigh_object(host, self.spec(1)),
            delta=0.1,
        )
