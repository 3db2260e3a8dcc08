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

"""A device driver that no package has installed, for one test."""

from importlib import metadata
from typing import Any

import fixtures

from nova_accel.drivers import loading


class InstalledDriver(fixtures.Fixture):
    """An entry point beside those of the installed packages.

    :param name: the ``driver`` of a line of ``device_spec``
    :param value: as a package states it: ``module:Class``
    """

    def __init__(self, name: str, value: str) -> None:
        super().__init__()
        self._points = metadata.EntryPoints(
            [metadata.EntryPoint(name, value, loading.NAMESPACE)]
        )

    def _setUp(self) -> None:
        installed = metadata.entry_points
        # They are read once: that takes longer than most that ask for them.
        drivers = metadata.EntryPoints(
            [*installed(group=loading.NAMESPACE), *self._points]
        )

        def entry_points(**selection: Any) -> Any:
            # Before Python 3.12 the answer without a group is another type.
            if selection.get('group') != loading.NAMESPACE:
                return installed(**selection)
            return drivers.select(**selection)

        self.useFixture(
            fixtures.MonkeyPatch(
                'importlib.metadata.entry_points', entry_points
            )
        )
