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

"""Owners are told when a device of a server fails, and when it works again.

Nova's list of the server's actions says so, and a notification. The report of
a host has the news, and waits for neither. The reports of others are the
occasion to look for hosts that have fallen silent.
"""

from collections.abc import Sequence
from concurrent import futures
import threading

from oslo_log import log as logging

from nova_accel import conf
from nova_accel import exceptions
from nova_accel import reason
from nova_accel.api.compute import occasion
from nova_accel.api.http import caller
from nova_accel.api.notifications import arq_notification
from nova_accel.db import lease
from nova_accel.db import silence
from nova_accel.db.rows import judged_arqs
from nova_accel.model.units import unit_health

CONF = conf.CONF
LOG = logging.getLogger(__name__)

#: Seconds after which a process tries again to be the one that looks.
_TRY_S = 30

#: How many servers are told of for one report, or for one silent host.
_MOST_SERVERS = 64

#: How many reports wait to be told of. They do while Nova's database hangs.
_MOST_REPORTS = 256

#: One thread, so that the news of a device keep their order.
_TELLER = futures.ThreadPoolExecutor(1, 'news')

_ROOM = threading.Semaphore(_MOST_REPORTS)

_TO_LOOK = occasion.Occasion()


def tell(
    context: caller.Caller, arqs: Sequence[judged_arqs.JudgedRow]
) -> None:
    """Tell owners soon. Does not raise, and waits for nothing.

    :param arqs: those whose devices have just failed, or just work again
    """
    servers = list(dict.fromkeys(arq['instance_uuid'] for arq in arqs))
    told, untold = servers[:_MOST_SERVERS], servers[_MOST_SERVERS:]
    why = f'no report is told of more than {_MOST_SERVERS} servers'
    try:
        if told:
            _begin(
                context, [arq for arq in arqs if arq['instance_uuid'] in told]
            )
    except Exception as fault:
        untold, why = servers, str(fault)
    if untold:
        LOG.warning(
            'The owners of servers %s are not told that devices have failed, '
            'or work again: %s',
            reason.some(untold, _MOST_SERVERS),
            why,
        )


def look_for_silence(context: caller.Caller) -> None:
    """Tell owners of hosts that have fallen silent, if it is time to look.

    One process looks in each time of silence. Does not raise, since it has
    nothing to do with what its caller does.
    """
    if not _TO_LOOK.is_due(_TRY_S):
        return
    silence_s = CONF.nova_accel.host_silence_s
    try:
        if lease.take('silence', silence_s):
            for arqs in silence.find(silence_s).values():
                tell(context, arqs)
    except Exception as fault:
        LOG.warning(
            'Silent hosts are not looked for: %s',
            reason.printable(str(fault) or type(fault).__name__),
        )


def _begin(
    context: caller.Caller, arqs: Sequence[judged_arqs.JudgedRow]
) -> None:
    if not _ROOM.acquire(blocking=False):
        raise exceptions.TooBusy(f'{_MOST_REPORTS} reports are told of before')
    _TELLER.submit(_tell, context, arqs)


def _tell(
    context: caller.Caller, arqs: Sequence[judged_arqs.JudgedRow]
) -> None:
    try:
        from nova_accel.api.compute import server_action

        for name, works in (
            ('accelerator_failed', False),
            ('accelerator_recovered', True),
        ):
            servers = {
                arq['instance_uuid']
                for arq in arqs
                if (arq['health'].health is unit_health.Health.HEALTHY)
                is works
            }
            if servers:
                server_action.add(name, servers)
        arq_notification.of_health(context, arqs)
    except Exception as fault:
        LOG.warning(
            'Owners are not told of devices of their servers: %s',
            reason.printable(str(fault) or type(fault).__name__),
        )
    finally:
        _ROOM.release()
