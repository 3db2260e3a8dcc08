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

"""How NVIDIA's vGPUs behave: ``enable_uvm=1,frame_rate_limiter=0``.

See "Setting vGPU Plugin Parameters" at https://docs.nvidia.com/vgpu.
"""

_PARAMETER = r'[A-Za-z0-9_.]+=[A-Za-z0-9_.:/-]+'

#: A list of parameters. The vGPU type is none of them: nova_accel sets it, and
#: counts by it. NVIDIA's driver puts it before the others, and has 1024 bytes
#: for all (``VGPU_CONFIG_PARAMS_MAX_LENGTH``).
PATTERN = (
    r'(?=.{3,960}\Z)(?!(.*,)? *vgpu_type_id=)'
    rf'{_PARAMETER}(, *{_PARAMETER})*'
)


def normalised(text: str) -> str:
    """The list as both hosts of a live migration must have it.

    In NVIDIA's own example it has a space.
    """
    return text.replace(' ', '')
