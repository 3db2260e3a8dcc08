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

"""The cloud of the quickstart."""

import signal

from rig.loopback import cloud
from rig.quickstart import report as quickstart_report

IMAGE_NAME = 'guest'

#: The one compute host.
HOST = 'compute1'

_KEPT = """
The cloud stays up at {url}; interrupt this to end it. Keystone and Glance are
stubs on loopback; networks and volumes do not exist. In another terminal,
with python-openstackclient and python-cyborgclient installed:

  export OS_CLIENT_CONFIG_FILE={path} OS_CLOUD=demo
  openstack server create --image {image} --flavor {flavor} --nic none \
--wait my-server
  openstack --os-cloud admin accelerator device profile list
  openstack --os-cloud admin accelerator arq list

{path}:

{content}"""


class QuickstartCloud(cloud.Cloud):
    """A cloud whose casts and periodic tasks are as in a real cloud.

    :ivar image_id: an image to boot from, named ``IMAGE_NAME``
    """

    CAST_AS_CALL = False

    def __init__(self, port: int) -> None:
        super().__init__()
        self.PORT = port

    def runTest(self) -> None:
        """Not run: the quickstart only needs what setUp() makes."""

    def _setup_configuration(self) -> None:
        super()._setup_configuration()
        # Nova's driver reads "host", which all services here share.
        self.flags(
            periodic_enable=True, allow_resize_to_same_host=True, host=HOST
        )
        self.flags(cyborg_compatible=True, group='nova_accel')

    def _setup_image(self) -> None:
        super()._setup_image()
        image = {**self.glance.image1, 'name': IMAGE_NAME}
        del image['id']
        self.image_id: str = self.glance.create(None, image)['id']

    def keep(self, report: quickstart_report.Report, flavor: str) -> None:
        """Say how to use the cloud, and wait.

        :raises KeyboardInterrupt: when the user ends it
        """
        path = self.write_clouds(self.demo, self.admin)
        report.text(
            _KEPT.format(
                url=self.url,
                path=path,
                image=IMAGE_NAME,
                flavor=flavor,
                content=path.read_text(),
            )
        )
        while True:
            signal.pause()
