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

import pathlib

import fixtures
from oslotest import base

from nova_accel import exceptions
from rig.serving import process


class TestProcess(base.BaseTestCase):
    def start(self, script: str) -> process.Process:
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        return self.useFixture(
            process.Process(
                ['sh', '-c', script],
                self.directory / 'log',
                {'DIRECTORY': str(self.directory)},
            )
        )

    def test_waits_until_it_is_so(self) -> None:
        started = self.start(': >$DIRECTORY/ready; exec sleep 60')
        started.wait_for((self.directory / 'ready').exists)
        used = started.usage()
        self.assertGreater(used.pss_mb, 0)
        self.assertGreaterEqual(used.rss_mb, used.pss_mb)

    def test_says_what_one_that_ended_wrote(self) -> None:
        started = self.start('echo no such frob >&2')
        fault = self.assertRaises(
            exceptions.ConfigurationError, started.wait_for, lambda: False
        )
        self.assertIn('no such frob', str(fault))

    def test_gives_up(self) -> None:
        started = self.start('exec sleep 60')
        self.assertRaises(
            exceptions.ConfigurationError,
            started.wait_for,
            lambda: False,
            seconds=0.2,
        )

    def test_is_ended_if_it_does_not_obey(self) -> None:
        self.useFixture(
            fixtures.MonkeyPatch('rig.serving.process._STOP_S', 0.1)
        )
        started = self.start(
            "trap '' TERM; touch $DIRECTORY/ready; while :; do sleep 1; done"
        )
        started.wait_for((self.directory / 'ready').exists)
        started.stop()
        fault = self.assertRaises(
            exceptions.ConfigurationError, started.wait_for, lambda: True
        )
        self.assertIn('does not start', str(fault))
