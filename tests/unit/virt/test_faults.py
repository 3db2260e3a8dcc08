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

from nova import exception
import testtools

from nova_accel import exceptions
from nova_accel.virt import faults


class TestAsUnavailable(testtools.TestCase):

    def raised(self, error):
        with faults.as_unavailable():
            raise error

    def test_ours_are_translated_with_their_text(self):
        error = self.assertRaises(
            exception.ComputeResourcesUnavailable, self.raised,
            exceptions.AcceleratorsBusy('none is free'))
        self.assertIn('none is free', str(error))

    def test_others_are_not(self):
        self.assertRaises(KeyError, self.raised, KeyError('key'))
