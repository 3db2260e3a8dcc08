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

"""Unit tests; HYPOTHESIS_PROFILE says how long properties are searched.

The quick search is the same each time, so that no change is refused for what
it has not done. The full one goes elsewhere each time.
"""

# Its __init__ decides between eventlet and native threads; anything else of
# Nova imported before it leaves the process half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import os

import hypothesis

# A shared, busy machine must not fail a property for being slow.
_SLOW_IS_FINE = [hypothesis.HealthCheck.too_slow]

hypothesis.settings.register_profile(
    'quick',
    max_examples=50,
    deadline=None,
    derandomize=True,
    suppress_health_check=_SLOW_IS_FINE,
)
hypothesis.settings.register_profile(
    'full',
    max_examples=2000,
    deadline=None,
    suppress_health_check=_SLOW_IS_FINE,
)
hypothesis.settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'quick'))
