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

"""Typical mistakes: what whoever makes one reads.

Each text names the culprit, as the person wrote it, and the cure.
"""

from typing import Any

import testtools


def mistake(
    name: str, culprit: str, cure: str, **facts: Any
) -> tuple[str, dict[str, Any]]:
    """A scenario.

    :param culprit: the words that name it
    :param cure: the words that help
    :param facts: what the test does wrong
    """
    return name, {'culprit': culprit, 'cure': cure, **facts}


class MistakeTestCase(testtools.TestCase):
    """A test whose scenarios are mistakes."""

    culprit: str
    cure: str

    #: What no text shows: the words of a library, or of Python.
    _RAW = (
        'Traceback',
        'Additional properties',
        'does not match',
        'is not of type',
        'sqlalche.me',
        r'\Z',
    )

    def assert_told(self, text: str) -> None:
        self.assertIn(self.culprit, text)
        self.assertIn(self.cure, text)
        for raw in self._RAW:
            self.assertNotIn(raw, text)

    def assert_told_to_a_tenant(self, text: str) -> None:
        """Neither hosts nor addresses are named."""
        self.assert_told(text)
        self.assertNotRegex(text, r'compute-\d|\d:\d\d[.]\d|127[.]0')
