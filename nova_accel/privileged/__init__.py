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

"""Functions that need root on a compute host, in oslo.privsep daemons.

Each context has only the capabilities that its work needs. Each function
checks its arguments, because an attacker may have taken over its caller.
"""

from oslo_concurrency import processutils
from oslo_privsep import capabilities
from oslo_privsep import comm
from oslo_privsep import daemon
from oslo_privsep import priv_context

#: The exceptions that callers of these functions have to expect.
ERRORS = (
    processutils.ProcessExecutionError,
    OSError,
    ValueError,
    daemon.FailedToDropPrivileges,
    daemon.ProtocolError,
    comm.PrivsepTimeout,
)

# The files in sysfs belong to root, which needs no capability to write them.
sysfs_pctxt = priv_context.PrivContext(
    'nova_accel',
    cfg_section='nova_accel_sysfs',
    pypath=f'{__name__}.sysfs_pctxt',
    capabilities=[],
)

# The kernel requires this capability for sending commands to a drive.
nvme_pctxt = priv_context.PrivContext(
    'nova_accel',
    cfg_section='nova_accel_nvme',
    pypath=f'{__name__}.nvme_pctxt',
    capabilities=[capabilities.CAP_SYS_ADMIN],
)

# Bitstreams are in a directory of nova-compute's user.
fpga_pctxt = priv_context.PrivContext(
    'nova_accel',
    cfg_section='nova_accel_fpga',
    pypath=f'{__name__}.fpga_pctxt',
    capabilities=[capabilities.CAP_DAC_READ_SEARCH],
)

processes_pctxt = priv_context.PrivContext(
    'nova_accel',
    cfg_section='nova_accel_processes',
    pypath=f'{__name__}.processes_pctxt',
    capabilities=[
        capabilities.CAP_SYS_PTRACE,
        capabilities.CAP_DAC_READ_SEARCH,
    ],
)

# NVIDIA's driver lets only an administrator divide a GPU (``NV_IS_SUSER`` of
# its nv-linux.h).
mig_pctxt = priv_context.PrivContext(
    'nova_accel',
    cfg_section='nova_accel_mig',
    pypath=f'{__name__}.mig_pctxt',
    capabilities=[capabilities.CAP_SYS_ADMIN],
)

# Fabric Manager listens on TCP, or on a socket that belongs to root.
fabric_pctxt = priv_context.PrivContext(
    'nova_accel',
    cfg_section='nova_accel_fabric',
    pypath=f'{__name__}.fabric_pctxt',
    capabilities=[],
)


def stay_in_process() -> None:
    """Start no daemon: call each function here, with this process' rights.

    A function that needs more raises one of :data:`ERRORS`, or sees less.
    """
    for context in list(globals().values()):
        if isinstance(context, priv_context.PrivContext):
            context.set_client_mode(False)
