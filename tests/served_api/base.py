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

"""What the tests of clients have in common."""

from functional import base
from nova_accel.api import routes
from rig.loopback import fpga_cloud

GROUPS = [{'resources:FPGA': '1'}]


class ClientTestCase(fpga_cloud.FpgaCloud, base.AcceleratorTestCase):
    """A cloud with a host, and its ``clouds.yaml``.

    :ivar clouds: the file; its clouds have the names of the users
    """

    def setUp(self):
        super().setUp()
        self.clouds = self.write_clouds(self.demo, self.admin, self.nova)

    def need(self, path, *methods):
        """Skip a test of what is not served."""
        for method in methods:
            if method not in routes.API.get(path, ()):
                self.skipTest(f'{method} {path} is not served')

    def a_deployable(self):
        """An FPGA region of the host that can be programmed."""
        self.accelerator.microversion = '2.4'
        return next(
            deployable
            for deployable in self.accelerator.get('/deployables')[
                'deployables'
            ]
            if deployable['region'] is not None
        )
