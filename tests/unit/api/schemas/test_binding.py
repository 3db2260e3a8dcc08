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


import testtools

from nova_accel.api.schemas import binding
from nova_accel.model import host_contract

#: The keys of the first contract. A newer one has to have a contract: without
#: it, an API of the release before would refuse servers.
_FIRST = {
    'attempt',
    'project_id',
    'device_profile_name',
    'groups',
    'image_uuid',
    'providers',
    'numa_nodes',
    'is_new',
}


class TestAcquire(testtools.TestCase):
    def test_each_newer_key_has_a_contract_and_is_optional(self) -> None:
        newer = host_contract.SINCE.get(host_contract.REQUEST, {}).keys()
        self.assertEqual(_FIRST | newer, set(binding.ACQUIRE['properties']))
        self.assertEqual(set(), newer & set(binding.ACQUIRE['required']))
