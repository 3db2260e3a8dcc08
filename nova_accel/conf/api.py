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

"""Options of the accelerator API, in ``[nova_accel]``."""

from oslo_config import cfg

GROUP = 'nova_accel'

OPTS: list[cfg.Opt] = [
    cfg.IntOpt(
        'max_unpaged',
        default=10000,
        min=1,
        help="""
The longest list of the accelerator API that clients cannot ask for in pages:
lists of attributes, and all lists with microversions before 2.4. A longer list
is refused with 400, so that no request fills the memory of a process. A page
has 1000 entries at most.
""",
    ),
    cfg.IntOpt(
        'waiting_calls',
        min=0,
        help="""
How many calls of one process of the accelerator API may wait for compute hosts
at the same time: programmings of FPGA regions, changes of what servers have,
and orders to fetch bitstreams. A further one is refused at once, with 503 and
Retry-After, so that threads are left for all other calls. 0 refuses all.

By default it is half of the threads that uWSGI gives the process. A process
with one thread, or under another server, lets one call wait. If uWSGI has
several such processes, it does so only while another one of them is idle.
""",
    ),
    cfg.IntOpt(
        'stock_programmings_per_minute',
        default=0,
        min=0,
        max=1000,
        help="""
How many idle FPGA regions of the whole cloud are programmed in a minute with
bitstreams that servers will probably ask for, at most one on each host. These
servers then boot without a programming. 0 turns this off.

Only bitstreams that device profiles name by ``accel:bitstream_id`` are put
into regions, and only if their images are the operator's, and public or
community images. The demand for each is counted from the servers that have got
regions, see bitstream_demand_half_life_s. A programming wears the memory of
some cards, so start with a small number.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
