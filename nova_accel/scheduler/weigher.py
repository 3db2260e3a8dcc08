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

"""The weigher: keep accelerators for servers that ask for them."""

from collections.abc import Sequence

from nova import objects
from nova.scheduler import host_manager
from nova.scheduler import utils
from nova.scheduler import weights
from oslo_db import exception as db_exc
from oslo_log import log as logging
from sqlalchemy import exc as sa_exc

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db import capacity
from nova_accel.scheduler import ownership
from nova_accel.scheduler import request_filter  # noqa: F401 registers itself

CONF = conf.CONF
LOG = logging.getLogger(__name__)


class AcceleratorWeigher(weights.BaseHostWeigher):
    """Weighs hosts by their free accelerators.

    More of the asked resource classes are better for a server that asks for
    accelerators, fewer of all classes are better for any other server. While
    the database of accelerators gives no answer, all hosts weigh the same.
    """

    def weight_multiplier(self, host_state: host_manager.HostState) -> float:
        multiplier: float = utils.get_weight_multiplier(
            host_state,
            'accelerator_weight_multiplier',
            CONF.nova_accel.accelerator_weight_multiplier,
        )
        return multiplier

    def weigh_objects(
        self,
        weighed_obj_list: Sequence[weights.WeighedHost],
        weight_properties: 'objects.RequestSpec',
    ) -> list[int]:
        hosts = [weighed.obj for weighed in weighed_obj_list]
        if not any(self.weight_multiplier(host) for host in hosts):
            return [0] * len(hosts)
        asked = {
            resource_class
            for group in ownership.our_groups(weight_properties)
            for resource_class in group.resources
        }
        try:
            free = capacity.free_by_host(asked or None)
        except (
            exceptions.AcceleratorError,
            db_exc.DBError,
            sa_exc.SQLAlchemyError,
        ) as error:
            LOG.warning(
                'Hosts are not weighed by their accelerators: %s', error
            )
            return [0] * len(hosts)
        sign = 1 if asked else -1
        return [sign * free.get(host.nodename, 0) for host in hosts]

    def _weigh_object(
        self,
        obj: host_manager.HostState,
        weight_properties: 'objects.RequestSpec',
    ) -> int:
        return self.weigh_objects(
            [weights.WeighedHost(obj, 0)], weight_properties
        )[0]
