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

"""The hosts that no longer report: nobody there attaches devices.

Placement keeps what a host published last. It does so even if the host's
nova-compute is down or runs Nova's own driver again, which starts guests
without their devices.
"""

from oslo_db import exception as db_exc
from oslo_log import log as logging
from sqlalchemy import exc as sa_exc

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db import host

CONF = conf.CONF
LOG = logging.getLogger(__name__)


def nodenames() -> frozenset[str]:
    """The names of the silent hosts, none if the database does not answer."""
    try:
        return host.get_silent(CONF.nova_accel.host_silence_s)
    except (
        exceptions.AcceleratorError,
        db_exc.DBError,
        sa_exc.SQLAlchemyError,
    ) as error:
        LOG.warning(
            'Hosts that no longer report accelerators are not left out: %s',
            error,
        )
        return frozenset()
