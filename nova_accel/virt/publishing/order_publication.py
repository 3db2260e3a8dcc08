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

"""Has Placement know soon which devices an administrator disables or enables.

Nova writes to Placement when it updates its resources, once a minute by
default. An administrator waits for that, so the worker has Nova do it at once.
No other order is worth it: an update looks at the whole host.
"""

from collections.abc import Callable

from nova_accel.model.providers import host_view
from nova_accel.virt.publishing import host_providers


class OrderPublication:
    """Compares the orders of a host with those that Placement has.

    :param update: has Nova update its resources, and waits for the end
    :param report: tells the API which orders Placement has
    """

    def __init__(
        self,
        current: host_view.CurrentState,
        providers: host_providers.Providers,
        update: Callable[[], None],
        report: Callable[[], None],
    ) -> None:
        self._current = current
        self._providers = providers
        self._update = update
        self._report = report

    def go_on(self) -> None:
        """Have Placement know of the orders, if it does not.

        :raises AcceleratorError: the API has not accepted the report.
        """
        orders, published = self._current.orders, self._current.published
        if orders is None or not self._providers.may_hurry:
            return
        if orders.disabled == (
            published.disabled if published else frozenset()
        ):
            return
        self._update()
        # Another update may have published newer ones meanwhile.
        if self._current.published is published:
            self._current.published = orders
        self._report()
