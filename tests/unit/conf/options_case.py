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

from collections.abc import Mapping
from typing import Any

from oslo_config import cfg
import testtools


class OptionsTestCase(testtools.TestCase):
    """The options of a module of ``nova_accel.conf``, as they are by default.

    :cvar module: registers them
    """

    module: Any

    def setUp(self) -> None:
        super().setUp()
        self.options = cfg.ConfigOpts()
        self.module.register_opts(self.options)
        self.options([])

    def assert_bounds(self, bounds: Mapping[str, tuple[int, int]]) -> None:
        """:param bounds: option -> the least and the most that it may be"""
        for name, (least, most) in bounds.items():
            for value in (least, most):
                self.options.set_override(name, value, self.module.GROUP)
            for value in (least - 1, most + 1):
                self.assertRaises(
                    ValueError,
                    self.options.set_override,
                    name,
                    value,
                    self.module.GROUP,
                )
