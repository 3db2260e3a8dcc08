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
import subprocess

import testtools

from nova_accel.testing import fabric_manager
from nova_accel.testing import fmpm


class TestFmpm(testtools.TestCase):
    """The program as its callers know NVIDIA's."""

    def setUp(self):
        super().setUp()
        self.daemon = self.useFixture(fabric_manager.FabricManager())

    def ask(self, *arguments, endpoint=fabric_manager.ENDPOINT):
        done = subprocess.run(
            [self.daemon.command, '--hostname', endpoint, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def refused(self, status, *arguments, **kwargs):
        found, output = self.ask(*arguments, **kwargs)
        self.assertEqual(status & 0xFF, found)
        self.assertNotEqual('', output)
        return output

    def test_list(self):
        self.assertEqual(0, self.ask('-a', '3')[0])
        status, output = self.ask('-l')
        self.assertEqual(0, status)
        listed = json.loads(output)
        self.assertEqual(15, listed['numPartitions'])
        [pair] = [
            each
            for each in listed['partitionInfo']
            if each['partitionId'] == 3
        ]
        self.assertEqual(
            (1, 2, [1, 3]),
            (
                pair['isActive'],
                pair['numGpus'],
                [gpu['physicalId'] for gpu in pair['gpuInfo']],
            ),
        )

    def test_conflicts(self):
        self.ask('-a', '3')
        for number in (3, 1, 0, 7):
            self.assertEqual(
                'Failed to activate partition. fmReturn: -7\n',
                self.refused(fmpm.IN_USE, '-a', str(number)),
            )
        self.assertEqual(0, self.ask('-a', '4')[0])
        self.refused(fmpm.BADPARAM, '-a', '15')
        self.assertEqual(0, self.ask('-d', '3')[0])
        self.refused(fmpm.UNINITIALIZED, '-d', '3')
        self.refused(fmpm.BADPARAM, '-d', '15')

    def test_it_says_its_faults_on_stdout(self):
        self.daemon.be_not_ready_for(1)
        self.assertEqual(
            'Failed to get partition list. fmReturn: -8\n',
            self.refused(fmpm.NOT_CONFIGURED, '-l'),
        )
        self.assertEqual(0, self.ask('-l')[0])
        self.refused(fmpm.CONNECTION_NOT_VALID, '-l', endpoint='10.0.0.1')
        self.daemon.stop()
        self.refused(fmpm.CONNECTION_NOT_VALID, '-l')

    def test_a_restart_that_waits(self):
        self.ask('-a', '3')
        self.ask('-a', '4')
        self.refused(fmpm.NOT_SUPPORTED, '--set-activated-list', '3')
        self.daemon.restart()
        for call in (['-l'], ['-a', '5'], ['-d', '3']):
            self.refused(fmpm.NOT_CONFIGURED, *call)
        self.refused(fmpm.BADPARAM, '--set-activated-list', '3,77')
        self.assertEqual(0, self.ask('--set-activated-list', '3')[0])
        self.assertEqual({3: (1, 3)}, self.daemon.active)
        self.refused(fmpm.NOT_SUPPORTED, '--get-nvlink-failed-devices')

    def test_a_usual_start(self):
        self.ask('-a', '3')
        self.daemon.reset()
        self.assertEqual({}, self.daemon.active)
        self.assertEqual(0, self.ask('-l')[0])

    def test_links_that_are_down(self):
        self.daemon.break_link(3, 2)
        self.refused(fmpm.NVLINK_ERROR, '-a', '3')
        self.assertEqual(0, self.ask('-a', '9')[0])
        failed = json.loads(self.ask('--get-nvlink-failed-devices')[1])
        self.assertEqual([0, 1], failed['gpuInfo'][0]['portNum'])

    def test_unsupported(self):
        self.daemon.call_unsupported([1])
        listed = json.loads(self.ask('--list-unsupported-partitions')[1])
        self.assertEqual(
            [1, 2, 3, 4], listed['partitionInfo'][0]['gpuPhysicalIds']
        )
        self.refused(fmpm.BADPARAM, '-a', '1')

    def test_without_an_nvswitch(self):
        with self.daemon.changed() as state:
            state['mode'] = 0
        self.refused(fmpm.NOT_SUPPORTED, '-l')

    def test_malformed(self):
        self.assertEqual(255, self.ask('--reboot')[0])
