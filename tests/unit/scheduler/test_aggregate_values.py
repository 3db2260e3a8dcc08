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
import testtools

from nova_accel.scheduler import aggregate_values


class TestOfHosts(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.looks = 0
        self.values = aggregate_values.OfHosts(1.0, self.read)

    def read(self, host):
        self.looks += 1
        return float(host.aggregates[0].metadata['key'])

    def host(self, *aggregates):
        found = host_manager.HostState('host', 'node', None)
        found.aggregates = list(aggregates)
        return found

    def test_of_an_aggregate(self):
        aggregate = objects.Aggregate(metadata={'key': '3'})
        self.assertEqual(3.0, self.values.of(self.host(aggregate)))
        self.assertEqual(1.0, self.values.of(self.host()))

    def test_one_look_however_many_hosts_are_in_it(self):
        aggregate = objects.Aggregate(metadata={'key': '3'})
        other = objects.Aggregate(metadata={'key': '4'})
        for _host in range(100):
            self.values.of(self.host(aggregate))
            self.values.of(self.host())
        self.assertEqual(1, self.looks)
        self.assertEqual(4.0, self.values.of(self.host(other)))
