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

import json

import testtools

from nova_accel import exceptions
from nova_accel.model import host_contract
from nova_accel.model import host_rpc


class TestCallee(testtools.TestCase):
    def test_hosts_of_newer_contracts_serve_the_version(self):
        for contract in (host_contract.FIRST, host_contract.NEWEST + 1):
            self.assertEqual(
                host_rpc.VERSION,
                host_rpc.Callee('compute-1', contract).version,
            )


class TestRefusal(testtools.TestCase):
    def through(self, fault):
        return host_rpc.refused(host_rpc.refusal(fault))

    def test_has_both_texts(self):
        for kind in host_rpc.FAULTS.values():
            fault = self.through(kind('why', public='its why'))
            self.assertEqual(
                (kind, 'why', 'its why'),
                (type(fault), str(fault), fault.public),
            )

    def test_is_the_nearest_that_callers_know(self):
        for kind, nearest in (
            (exceptions.AcceleratorsBusy, exceptions.Conflict),
            (exceptions.InvalidName, exceptions.InvalidRequest),
            (exceptions.ConfigurationError, exceptions.DeviceError),
        ):
            fault = self.through(kind('compute-1'))
            self.assertIs(nearest, type(fault))
            self.assertEqual(kind.PUBLIC, fault.public)

    def test_any_other_text_is_a_failure_of_the_device(self):
        for text in (
            '',
            'why',
            '[]',
            '{}',
            '{"fault": "KeyError"}',
            json.dumps({'fault': [], 'text': '', 'public': ''}),
        ):
            self.assertIs(exceptions.DeviceError, type(host_rpc.refused(text)))
