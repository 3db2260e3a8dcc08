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

import logging
import signal

from rig.loopback import cloud
from rig.quickstart import kept_cloud
from rig.quickstart import report as quickstart_report

IMAGE_NAME = 'guest'

#: The one compute host.
HOST = 'compute1'

_KEPT = """
The cloud stays up at {url}; interrupt this to end it. Keystone and Glance are
stubs on loopback; networks and volumes do not exist. The log of all services
is {log}.

In another terminal, with the extra "client" of nova_accel installed:

  export OS_CLIENT_CONFIG_FILE={clouds} OS_CLOUD=demo
  openstack server create --image {image} --flavor {flavor} --nic none \
--wait my-server
  openstack accelerator server show my-server
  openstack --os-cloud admin accelerator fleet list
  openstack --os-cloud admin resource provider list
  openstack --os-cloud admin registered limit create --service nova \
--region RegionOne --default-limit 1 class:CUSTOM_QAT

In this checkout:

  .venv/bin/nova-accel-manage --config-file {configuration} fleet list
"""


class QuickstartCloud(cloud.Cloud):
    """A cloud whose casts and periodic tasks are as in a real cloud.

    :ivar image_id: an image to boot from, named ``IMAGE_NAME``
    """

    CAST_AS_CALL = False
    # Commands answer as in a cloud that nobody has prepared for them.
    CLIENT_MICROVERSION = None
    HAS_LIMITS = True

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
        log = self.state_path / 'nova.log'
        logging.getLogger().addHandler(logging.FileHandler(log))
        self.keystone.register(
            'placement',
            'placement',
            self.server.mount(
                '/placement', kept_cloud.placement(self.placement_fixture)
            ),
        )
        report.text(
            _KEPT.format(
                url=self.url,
                log=log,
                clouds=self.write_clouds(self.demo, self.admin),
                configuration=kept_cloud.write_configuration(self),
                image=IMAGE_NAME,
                flavor=flavor,
            )
        )
        while True:
            signal.pause()
