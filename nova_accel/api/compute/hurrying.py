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

"""Hosts report at once after an administrator's change of their devices."""

from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.api.compute import waiting
from nova_accel.db import host as host_db
from nova_accel.model import host_rpc

CONF = conf.CONF
LOG = logging.getLogger(__name__)

_LATER = 'Host %s is not told to report now, and reports later: %s'


def order(hostname: str) -> None:
    """Tell a host to report now, if it reports at all.

    Does not raise, since the change is made by now. It is not waited for what
    the host does. A host that is not reached learns of the change by its next
    report.
    """
    try:
        host = host_db.get_called(hostname, CONF.nova_accel.host_silence_s)
        if host is None or host['is_silent']:
            return
        from nova_accel.api.compute import rpc

        with waiting.place():
            rpc.hurry(host_rpc.Callee(host['service_host'], host['contract']))
    except exceptions.AcceleratorError as error:
        LOG.warning(_LATER, hostname, error)
    except Exception as error:
        LOG.exception(_LATER, hostname, error)
