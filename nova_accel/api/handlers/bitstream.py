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

"""``/bitstreams``: hosts fetch them before servers need them."""

import webob

from nova_accel import exceptions
from nova_accel.api.compute import prefetching
from nova_accel.api.compute import programming
from nova_accel.api.http import request
from nova_accel.db import deployable as deployable_db


def prefetch(req: webob.Request) -> webob.Response:
    """Have hosts fetch a bitstream: the named ones, or all that can program.

    If none is named, the silent ones are left out.
    """
    context = request.authorize(req)
    bitstream_uuid = request.path_uuid(req, 'uuid')
    names = request.json_body(req).get('hostnames')
    hosts = deployable_db.get_hosts_of_regions()
    if names is None:
        hosts = prefetching.reporting(hosts)
    else:
        hosts = [host for host in hosts if host['hostname'] in names]
        _check_known(names, hosts)
        programming.check_not_silent(hosts)
    faults = prefetching.ask(context, hosts, [bitstream_uuid])
    if faults and (names is not None or len(faults) == len(hosts)):
        raise next(iter(faults.values()))
    return webob.Response(
        status=202,
        json_body={
            'hostnames': [
                host['hostname']
                for host in hosts
                if host['hostname'] not in faults
            ]
        },
    )


def _check_known(
    names: list[str], hosts: list[deployable_db.RegionHostRow]
) -> None:
    unknown = sorted(set(names) - {host['hostname'] for host in hosts})
    if unknown:
        raise exceptions.NotFound(
            '; '.join(
                f'Host {name} not found, or it has no region that can be '
                'programmed'
                for name in unknown
            )
        )
