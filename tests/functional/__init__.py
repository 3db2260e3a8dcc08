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

"""Tests through Nova's own API, with every layer real but the hardware."""

# It decides between eventlet and native threads, so it has to come first.
import nova.tests.functional  # noqa: F401

# isort: split
import logging

from nova import test  # noqa: F401

# A test keeps its own log. Nova's base of tests writes the rest to the output:
# what is logged before a test, and while its services end.
for _handler in logging.getLogger().handlers:
    _handler.setLevel(logging.WARNING)
