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

"""The API does some work once in a while. There is no service for it.

Any report of a host is the occasion.
"""

import threading
import time


class Occasion:
    """Tells once in a while that it is time, to one thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = float('-inf')

    def is_due(self, interval_s: int) -> bool:
        with self._lock:
            now = time.monotonic()
            if now < self._at + interval_s:
                return False
            self._at = now
            return True
