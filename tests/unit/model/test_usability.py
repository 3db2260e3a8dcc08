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

import dataclasses

import testtools

from nova_accel.model import hardware
from nova_accel.model import usability

GOOD = usability.Condition(
    is_present=True,
    status=hardware.Status.ENABLED,
    fault=None,
    is_clean=True,
    unclean_reason=None,
)


class TestCondition(testtools.TestCase):
    def check(self, unclean, reason, **fields):
        condition = dataclasses.replace(GOOD, **fields)
        self.assertEqual(
            (unclean, reason), (condition.unclean, condition.reason)
        )

    def test_good(self):
        self.check(None, None)

    def test_each_reason(self):
        self.check(
            None,
            'disabled by an administrator',
            status=hardware.Status.MAINTAINING,
        )
        self.check(None, 'faulty: on fire', fault='on fire')
        self.check(None, 'gone from its host', is_present=False)
        self.check('being cleaned', 'being cleaned', is_clean=False)
        failed = 'not cleaned: sanitize: I/O error'
        self.check(
            failed,
            failed,
            is_clean=False,
            unclean_reason='sanitize: I/O error',
        )
        gone = 'gone from its host before it was cleaned'
        self.check(gone, gone, is_clean=False, is_present=False)

    def test_what_is_unclean_is_known_of_a_disabled_device_too(self):
        self.check(
            'being cleaned',
            'disabled by an administrator',
            is_clean=False,
            status=hardware.Status.MAINTAINING,
            fault='on fire',
        )


class TestPublic(testtools.TestCase):
    def test_without_the_words_of_a_host(self):
        for reason, public in (
            ('disabled by an administrator', 'disabled'),
            ('faulty: compute-1 is on fire', 'faulty'),
            ('being cleaned', 'not clean'),
            ('not cleaned: sanitize: I/O error', 'not clean'),
            ('in use', 'in use'),
        ):
            self.assertEqual(public, usability.public(reason))
