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

import datetime

import testtools

from nova_accel.model.fleet import host_drain

_END = datetime.datetime(2026, 11, 24, 6, tzinfo=datetime.UTC)


class TestWords(testtools.TestCase):
    def test_words(self) -> None:
        for drain, words in (
            (host_drain.HostDrain('fans', None, False), 'drained: fans'),
            (
                host_drain.HostDrain('fans', _END, False),
                'drained until 2026-11-24 06:00 UTC: fans',
            ),
            (
                host_drain.HostDrain('fans', _END, True),
                'drained until 2026-11-24 06:00 UTC, which is over: fans',
            ),
            (host_drain.HostDrain('a\nb', None, False), 'drained: a\\nb'),
        ):
            self.assertEqual(f'its host is {words}', drain.words)
