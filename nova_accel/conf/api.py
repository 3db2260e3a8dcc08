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
lists of attributes, and all lists with microversions before 2.6. A longer list
is refused with 400, so that no request fills the memory of a process. A page
has 1000 entries at most.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
