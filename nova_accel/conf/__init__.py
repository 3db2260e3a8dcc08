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

"""The configuration: our options beside Nova's own."""

import nova.conf

from nova_accel.conf import api
from nova_accel.conf import bitstreams
from nova_accel.conf import client
from nova_accel.conf import compute
from nova_accel.conf import database
from nova_accel.conf import fabric
from nova_accel.conf import metrics
from nova_accel.conf import scheduler

CONF = nova.conf.CONF

api.register_opts(CONF)
bitstreams.register_opts(CONF)
client.register_opts(CONF)
compute.register_opts(CONF)
database.register_opts(CONF)
fabric.register_opts(CONF)
metrics.register_opts(CONF)
scheduler.register_opts(CONF)
