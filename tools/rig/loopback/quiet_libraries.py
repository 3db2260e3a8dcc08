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

"""Debug messages that only nova_accel and its tests write.

Nova's test case formats the debug messages of all libraries, and keeps none.
That was a twentieth of a functional test's time. Ours are still formatted, so
that a malformed one is found.
"""

import logging
import os

import fixtures

_OURS = ('nova_accel', 'rig', 'functional')


class QuietLibraries(fixtures.Fixture):
    """Use it after Nova's fixture, which lets all loggers write all.

    With ``OS_DEBUG``, by which Nova's fixture keeps all messages, it does
    nothing.
    """

    def _setUp(self) -> None:
        if os.environ.get('OS_DEBUG', '0').lower() in ('true', '1', 'yes'):
            return
        self._set('', logging.INFO)
        for name in _OURS:
            self._set(name, logging.DEBUG)

    def _set(self, name: str, level: int) -> None:
        logger = logging.getLogger(name)
        self.addCleanup(logger.setLevel, logger.level)
        logger.setLevel(level)
