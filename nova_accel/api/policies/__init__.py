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

"""The policy rules and their defaults, one module per resource."""

from nova_accel.api.policies import accelerator_request
from nova_accel.api.policies import attribute
from nova_accel.api.policies import binding
from nova_accel.api.policies import bitstream
from nova_accel.api.policies import deployable
from nova_accel.api.policies import device
from nova_accel.api.policies import device_profile
from nova_accel.api.policies import drain
from nova_accel.api.policies import host
from nova_accel.api.policies import programming
from nova_accel.api.policies import server
from nova_accel.api.policies import topology
from nova_accel.api.policies import usage

#: In the order of the sample policy file.
RULES = (
    *device_profile.RULES,
    *accelerator_request.RULES,
    *device.RULES,
    *deployable.RULES,
    *attribute.RULES,
    *programming.RULES,
    *bitstream.RULES,
    *host.RULES,
    *drain.RULES,
    *binding.RULES,
    *topology.RULES,
    *server.RULES,
    *usage.RULES,
)
