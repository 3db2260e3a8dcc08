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

"""Options of the metrics, in ``[nova_accel]``."""

from oslo_config import cfg

GROUP = 'nova_accel'

OPTS: list[cfg.Opt] = [
    cfg.ListOpt(
        'metrics_allowed_networks',
        default=[],
        help="""
The addresses and networks of the monitoring systems that may read
``/metrics`` of the API's own process pool, for example
``192.0.2.7,2001:db8::/64``. They need no token. Without this option there is
no ``/metrics``, and each request for it is answered with 404. nova-api never
has it.

The address is that of the socket's other end. No header can change it. A
request with a header that proxies add is refused at any address. Do not name
the address of a proxy that tenants use: some proxies add no header. The
metrics name all hosts, devices, servers and projects.
""",
    ),
    cfg.ListOpt(
        'metrics_device_profiles',
        default=[],
        help="""
Names of the device profiles for which ``nova_accel_profile_servers`` says how
many servers could start now, and how many if all servers were packed anew. The
difference is lost to fragmentation. A process counts them each five minutes.
That takes about two seconds for each profile in a cloud of 1,000 hosts.
""",
    ),
    cfg.IntOpt(
        'metrics_kept_s',
        default=10,
        min=1,
        max=600,
        help="""
Seconds for which a process of the API gives the same metrics. So no number of
requests for metrics loads the database.
""",
    ),
    cfg.IntOpt(
        'metrics_max_series',
        default=20000,
        min=1,
        max=1000000,
        help="""
How many series a metric may have that has one for each host, for each bound
accelerator request or for each kind of units of a project.
``nova_accel_metrics_left_out`` says how many are missing.
""",
    ),
    cfg.IntOpt(
        'metrics_window_s',
        default=3600,
        min=60,
        max=604800,
        help="""
How far the metrics of bindings and programmings look back, in seconds. They
look at the newest 1000 of each at most.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
