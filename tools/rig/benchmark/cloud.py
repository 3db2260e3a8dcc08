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

"""The cloud that the benchmark measures."""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

from collections.abc import Callable
import copy
import functools
import json
from typing import Any

from nova import context as nova_context

from nova_accel.testing import devices
from rig.loopback import cloud


class BenchmarkCloud(cloud.Cloud):
    """One host with many interchangeable devices.

    :param backend: see :class:`nova_accel.testing.database.Database`
    """

    ADMIN_API = True

    def __init__(self, backend: str = 'sqlite') -> None:
        super().__init__()
        self.DATABASE = backend

    def runTest(self) -> None:
        """Not run: the benchmark only needs what setUp() makes."""

    def start(self, host: str, cards: int, vfs: int, is_pooled: bool) -> None:
        """Start nova-compute.

        :param cards: the number of cards
        :param vfs: the number of virtual functions of each card
        """
        self.start_accelerated_compute(
            host,
            devices.pci_info(gpus=0, fpgas=0, qats=cards, qat_vfs=vfs),
            [json.dumps({**json.loads(devices.QAT_SPEC), 'pool': is_pooled})],
        )
        self.create_profile('qat', [{'resources:CUSTOM_QAT': '1'}])
        # The key says whether the flavor asks for an accelerator.
        self._flavors = {
            True: self.create_accel_flavor('qat'),
            False: self._create_flavor(),
        }

    def boot(self, accelerated: bool) -> dict[str, Any]:
        server: dict[str, Any] = self._create_server(
            flavor_id=self._flavors[accelerated], networks='none'
        )
        return server

    def delete(self, server: dict[str, Any]) -> None:
        self._delete_server(server)

    def boot_and_delete(self, accelerated: bool) -> None:
        self.delete(self.boot(accelerated))

    def report(self, host: str) -> None:
        """Run one cycle of the worker."""
        self._accelerators(host).cycle.run()

    def update(self, host: str) -> None:
        """Run Nova's periodic update of its resources."""
        self.computes[host].manager.update_available_resource(
            nova_context.get_admin_context()
        )

    def provider_update(self, host: str) -> Callable[[], bool]:
        """Our part of ``update_provider_tree``, with what Nova has now."""
        tree = copy.deepcopy(self.computes[host].driver.provider_tree)
        return functools.partial(
            self._accelerators(host).providers.update, tree, None
        )

    def _accelerators(self, host: str) -> Any:
        return self.computes[host].driver._accelerators
