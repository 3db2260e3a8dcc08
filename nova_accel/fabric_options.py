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

"""The options that say what runs as root for an NVSwitch fabric.

The process of root reads them itself. So nova-compute, which an attacker may
have taken over, chooses neither the program nor whom it calls.
"""

from oslo_config import cfg

GROUP = 'nova_accel'

OPTS = [
    cfg.StrOpt(
        'fabric_manager',
        regex=(
            r'^(/[^\s]{1,240}|\[[0-9A-Fa-f:]{2,45}\](:[0-9]{1,5})?|'
            r'[0-9A-Za-z][0-9A-Za-z.-]{0,200}(:[0-9]{1,5})?)\Z'
        ),
        help="""
Where NVIDIA's Fabric Manager of this host's NVSwitches listens for commands:
``address:port``, for example ``127.0.0.1:6666``, or the absolute path of a
Unix socket (``FM_CMD_UNIX_SOCKET_PATH``). Fabric Manager must run with
``FABRIC_MODE=1`` for whole GPUs, or with ``FABRIC_MODE=2`` for vGPUs.

Then nova-compute activates the partition of a guest's GPUs before the guest
starts, and deactivates it when the guest is gone. A server whose partition
cannot be activated goes to another host. Without this option, nothing is ever
asked of Fabric Manager.
""",
    ),
    cfg.StrOpt(
        'fabric_manager_command',
        default='fmpm',
        help="""
The program by which Fabric Manager is asked, as a full path or as a name in
the path of root. It is NVIDIA's open-source tool
(https://github.com/NVIDIA/Fabric-Manager-Client). Take a version of April 2026
or later: ``--set-activated-list`` of earlier ones tells Fabric Manager an
empty list, which takes NVLink from running guests.
""",
    ),
    cfg.StrOpt(
        'fabric_manager_library',
        default='libnvfm.so.1',
        help="""
The library of Fabric Manager, as a full path or as a name that the loader
finds. It is used only to activate partitions of vGPUs, which
``fabric_manager_command`` cannot do. Its version must be that of Fabric
Manager.
""",
    ),
]

cfg.CONF.register_opts(OPTS, group=GROUP)
