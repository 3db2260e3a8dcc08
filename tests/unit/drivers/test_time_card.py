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

from nova_accel.drivers import time_card
from unit.drivers import base


class TestTimeCard(base.DriverTestCase):
    driver = time_card.TimeCardDriver
    spec = {'vendor_id': '1d9b'}
    takes_any = True

    def functions(self):
        self.sysfs.set(
            self.CARD,
            timecard__ocp0__serialnum='fc:c2:3d:2e:d7:c0',
            timecard__ocp0__gnss_sync='SYNC',
            timecard__ocp0__clock_source='PPS',
        )
        return [base.a_function(self.CARD, '1d9b', '0400')]

    def test_card(self):
        device = self.discover()
        self.assertEqual('TIME', device.type)
        self.assertEqual(
            {
                'serialnum': 'fc:c2:3d:2e:d7:c0',
                'gnss_sync': 'SYNC',
                'clock_source': 'PPS',
            },
            device.attributes,
        )
        self.assertEqual([{'CUSTOM_TIME_META_TIME_CARD'}], self.traits(device))

    def test_a_guest_has_it(self):
        self.sysfs.remove(self.CARD)
        self.assertEqual({}, self.discover().attributes)
