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

"""``[nova_accel_database]``: where devices and accelerator requests stand."""

import copy

from oslo_config import cfg
from oslo_db import options as db_options

GROUP = cfg.OptGroup(
    'nova_accel_database',
    title='Accelerator database',
    help='The database of devices, device profiles and accelerator requests. '
         'connection must be set: a sqlite:///<file> serves one machine, '
         'MySQL, MariaDB or PostgreSQL a cloud. Only nova-api and '
         'nova-scheduler may have it, never nova-compute.')

# Copied, because oslo.config cannot tell apart deprecated names of one
# option object in two groups (nova.conf.database does the same). The option
# left out promises reconnects that oslo.db does not do for enginefacade.
DATABASE_OPTS = [copy.deepcopy(option) for option in db_options.database_opts
                 if option.name != 'use_db_reconnect']

OPTS = [
    cfg.IntOpt(
        'host_silence_s', default=180, min=1,
        help='Seconds after which a host that does not report its devices '
             'counts as silent: accelerator requests that are bound to it '
             'then read Unknown. Make it two reports of a host at least, '
             'see report_interval_s.'),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    conf.register_opts(DATABASE_OPTS, group=GROUP)
    conf.register_opts(OPTS, group='nova_accel')


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP.name: DATABASE_OPTS, 'nova_accel': OPTS}
