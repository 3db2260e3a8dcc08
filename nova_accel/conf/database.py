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

"""``[nova_accel_database]``: the database of nova_accel."""

import copy

from oslo_config import cfg
from oslo_db import options as db_options

GROUP = cfg.OptGroup(
    'nova_accel_database',
    title='Accelerator database',
    help=(
        'The database of devices, device profiles and accelerator requests. '
        'connection must be set: sqlite:///<file> is for a single machine; '
        'MySQL, MariaDB and PostgreSQL are for a cloud. Set it for nova-api '
        'and nova-scheduler only, never for nova-compute.'
    ),
)

# The options are copied, because oslo.config cannot distinguish the deprecated
# names of one option object in two groups. nova.conf.database does the same.
# The omitted option promises reconnects that oslo.db does not do for
# enginefacade.
DATABASE_OPTS = [
    copy.deepcopy(option)
    for option in db_options.database_opts
    if option.name != 'use_db_reconnect'
]

for _option in DATABASE_OPTS:
    if _option.name == 'max_retries':
        # With oslo.db's default the first request of a process would wait for
        # ten times ten seconds.
        _option.default = 0

LIMIT_OPTS = [
    cfg.IntOpt(
        'deadline_s',
        default=12,
        min=1,
        help=(
            'Seconds after which a call stops waiting for the database and '
            'is answered with 503. They include all repetitions of a '
            'transaction. deadline_s plus twice answer_timeout_s should be '
            'less than the 30 seconds that clients wait.'
        ),
    ),
    cfg.IntOpt(
        'lock_wait_s',
        default=5,
        min=1,
        help=(
            'Seconds that a statement waits for the lock of another '
            'transaction. Then its own transaction is repeated, until '
            'deadline_s have passed.'
        ),
    ),
    cfg.IntOpt(
        'answer_timeout_s',
        default=8,
        min=1,
        help=(
            'Seconds that the server may take to accept a connection, and '
            'to answer a statement. The drivers pymysql and mysqldb get it '
            'as connect_timeout, read_timeout and write_timeout, psycopg2 '
            'as connect_timeout, and PostgreSQL as statement_timeout. Any '
            'of these in connection takes precedence. It is also the '
            'default of pool_timeout. "nova-accel-manage db sync" has no '
            'such limit.'
        ),
    ),
    cfg.IntOpt(
        'scheduler_deadline_s',
        default=3,
        min=1,
        help=(
            'Seconds after which nova-scheduler stops waiting for the '
            'database. A server that asks for accelerators is then refused, '
            'or placed without regard to what is known of them. Other '
            'servers never wait.'
        ),
    ),
    cfg.IntOpt(
        'scheduler_answer_timeout_s',
        default=1,
        min=1,
        help=(
            'The answer_timeout_s of nova-scheduler. The drivers of '
            'PostgreSQL wait two seconds at least for a connection.'
        ),
    ),
]

OPTS = [
    cfg.IntOpt(
        'host_silence_s',
        default=180,
        min=1,
        help=(
            'Seconds after which a host that does not report its devices '
            'counts as silent. The accelerator requests that are bound to '
            'it are then shown as Unknown. Set it to at least twice the '
            'time between two reports of a host, see report_interval_s.'
        ),
    ),
    cfg.IntOpt(
        'max_unbound_arqs',
        default=1000,
        min=0,
        help=(
            'How many accelerator requests of a project may be unbound; 0 '
            'sets no limit. With Cyborg\'s flavor key Nova creates one for '
            'each unit that a server is to get, and binds them when it has '
            'found a host. More are refused with 403.'
        ),
    ),
    cfg.IntOpt(
        'programmings_kept',
        default=1000,
        min=1,
        help=(
            'How many programmings of an FPGA region its history keeps. '
            'Older ones are deleted when a new one begins.'
        ),
    ),
    cfg.IntOpt(
        'usage_days',
        default=400,
        min=0,
        help=(
            'Days for which the history keeps who had a unit, after it was '
            'given back. "openstack accelerator usage show" tells of no '
            'longer time. 0 keeps all. Each unit that a server gets adds a '
            'row of about 400 bytes: 1,000 servers a day with two units each '
            'fill 300 MB in 400 days.'
        ),
    ),
    cfg.IntOpt(
        'bitstream_demand_half_life_s',
        default=21600,
        min=60,
        help=(
            'Seconds after which a server that wanted a bitstream counts '
            'half in the demand for it. A shorter time follows changes of '
            'the demand faster. A longer one remembers more servers. About '
            'a hundred servers with FPGAs should boot in that time.'
        ),
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    conf.register_opts(DATABASE_OPTS, group=GROUP)
    conf.register_opts(LIMIT_OPTS, group=GROUP)
    conf.register_opts(OPTS, group='nova_accel')


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP.name: DATABASE_OPTS + LIMIT_OPTS, 'nova_accel': OPTS}
