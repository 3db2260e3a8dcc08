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

"""Nova's parts that the API asks, ready when the first request needs them.

nova-api has them ready when it starts. In a pool of the API few requests need
them, and they would be a third of its memory: Nova's context and objects, its
database layer, oslo.messaging and openstacksdk. So nothing that a pool loads
imports them. Import the modules that ask Nova in the functions that use them.
"""

import contextlib
import threading

from oslo_db.sqlalchemy import enginefacade

from nova_accel import conf

CONF = conf.CONF

_LOCK = threading.Lock()


def ensure() -> None:
    """Have Nova's RPC and databases configured, as ``nova.config`` does."""
    from nova import config
    from nova import rpc
    from nova.db.api import api as api_db
    from nova.db.main import api as main_db

    with _LOCK:
        if rpc.NOTIFIER is not None:
            return
        if config.profiler:
            config.profiler.set_defaults(CONF)
        rpc.set_defaults(control_exchange='nova')
        for database in (main_db, api_db):
            # A request whose RPC could not be set up may have come this far.
            with contextlib.suppress(enginefacade.AlreadyStartedError):
                database.configure(CONF)
        rpc.init(CONF)
