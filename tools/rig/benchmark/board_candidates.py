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

"""Placement's work for joined GPUs, ``tools/bench candidates --boards``."""

# Its __init__ decides between eventlet and native threads. If another module
# of Nova is imported before it, the process is half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import gc
from typing import Any

from rig.benchmark import candidates
from rig.loopback import board_cloud
from rig.loopback import board_host

SIZES = (1, 2, 4, 8)


def figures(hosts: int, times: int) -> dict[str, Any]:
    """Placement's CPU time for a server, by its number of GPUs.

    :param hosts: the number of hosts, none of which has any server
    :param times: how often each request is measured; the fastest counts
    """
    placement = candidates.TimedPlacement()
    host = board_host.BoardHost('compute')
    found, milliseconds = {}, {}
    with board_cloud.BoardCloud([host], placement) as cloud:
        candidates.copy_host(hosts - 1)
        # Garbage is not looked for in what Nova has imported.
        gc.collect()
        gc.freeze()
        for size in SIZES:
            profile = f'gpus-{size}'
            cloud.profile(
                profile,
                {
                    f'resources:{board_host.GPU_CLASS}': str(size),
                    **({} if size == 1 else {'accel:link': 'nvlink'}),
                },
            )
            found[size], milliseconds[size] = candidates.asked(
                placement, cloud.request(profile), times
            )
    return {
        'hosts': hosts,
        'providers_of_a_host': len(host.layout().providers),
        'candidates': found,
        'cpu_ms': milliseconds,
        'times_of_one_gpu': {
            size: round(milliseconds[size] / milliseconds[1], 2)
            for size in SIZES
        },
    }
