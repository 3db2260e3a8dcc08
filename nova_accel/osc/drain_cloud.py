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

"""The servers of one host, by Nova and by the accelerator API."""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import datetime
from typing import Any
from typing import NamedTuple
from urllib import parse

from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import exceptions as ks_exceptions
from osc_lib import exceptions

from nova_accel.model.fleet import drain_plan
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import extra_specs
from nova_accel.osc import accelerator_calls
from nova_accel.osc import nova_calls

#: The actions of a server by which it leaves a host.
_ACTIONS = frozenset({'live-migration', 'migrate', 'resize', 'confirmResize'})

#: The states of a migration that waits for its owner, or has just ended so.
_FINISHED = 'finished'

_BODIES: Mapping[drain_plan.Way, dict[str, Any]] = {
    drain_plan.Way.LIVE: {
        'os-migrateLive': {'host': None, 'block_migration': 'auto'}
    },
    drain_plan.Way.COLD: {'migrate': None},
    drain_plan.Way.CONFIRM: {'confirmResize': None},
}


class Holding(NamedTuple):
    """The kinds of units that a server has of a host, and the profiles."""

    kinds: frozenset[str]
    profiles: frozenset[str]


class DrainCloud:
    """Both APIs, for the drain of one host.

    :param nova: of the service type ``compute``
    :param accelerator: of the service type ``accelerator``
    :param hostname: Nova's name of the hypervisor
    :param user_id: the user whose cold migrations are confirmed, whenever they
        have begun; None for those of anybody that the drain has caused
    """

    def __init__(
        self,
        nova: ks_adapter.Adapter,
        accelerator: ks_adapter.Adapter,
        hostname: str,
        user_id: str | None = None,
    ) -> None:
        self._nova = nova
        self._accelerator = accelerator
        self._hostname = hostname
        self._user_id = user_id
        self._began: datetime.datetime | None = None

    def drain(self) -> dict[str, Any] | None:
        """The drain of the host as the API has it, None if there is none.

        :raises CommandError: the host is unknown, or the API away.
        """
        found = [
            drain
            for drain in accelerator_calls.call(
                self._accelerator, 'GET', '/drains'
            )['drains']
            if drain['hostname'] == self._hostname
        ]
        return self._kept(found[0]) if found else None

    def begin(
        self, reason: str, until: str | None, start: str | None = None
    ) -> dict[str, Any]:
        """Disable the devices of the host; the drain as the API has it.

        :param start: the beginning to announce
        :raises CommandError: the API refuses it.
        """
        return self._kept(
            accelerator_calls.call(
                self._accelerator,
                'PUT',
                drain_path(self._hostname),
                json={'reason': reason, 'from': start, 'until': until},
            )['drain']
        )

    def _kept(self, drain: dict[str, Any]) -> dict[str, Any]:
        began = drain['requested_at']
        self._began = None if began is None else _time(began)
        return drain

    def holdings(self) -> dict[str, Holding]:
        """Server uuid -> what it has of the host.

        :raises CommandError: the API refuses it.
        """
        found: dict[str, list[Mapping[str, Any]]] = {}
        for page in accelerator_calls.pages(
            self._accelerator,
            '/accelerator_requests',
            'arqs',
            {'hostname': self._hostname},
        ):
            for arq in page:
                if arq['instance_uuid'] and arq['attach_handle_uuid']:
                    found.setdefault(arq['instance_uuid'], []).append(arq)
        return {uuid: holding_of(arqs) for uuid, arqs in found.items()}

    def no_room(self, profile: str) -> str | None:
        """Why no other host can serve a device profile now, None if one can.

        If the API does not say, a migration will show it.
        """
        path = f'/device_profiles/{parse.quote(profile, "")}/explain'
        try:
            for page in accelerator_calls.pages(
                self._accelerator, path, 'explain'
            ):
                groups = page['groups']
                hosts = set.intersection(
                    *({*group['hostnames']} for group in groups)
                )
                if hosts - {self._hostname}:
                    return None
        except (exceptions.CommandError, ks_exceptions.ClientException):
            return None
        return (
            f'no other host has free units for device profile {profile}: '
            f'"openstack accelerator device profile explain {profile}" says '
            'why'
        )

    def server(
        self, uuid: str, holding: Holding
    ) -> drain_plan.DrainedServer | None:
        """The server as Nova has it, None if Nova has none.

        :raises CommandError: Nova is in trouble.
        """
        try:
            found = nova_calls.call(self._nova, 'GET', f'/servers/{uuid}')
        except nova_calls.NotFound:
            return None
        server = parse_server(found['server'], self._hostname, holding)
        if server.is_here or server.status != 'VERIFY_RESIZE':
            return server
        return server._replace(resize=self._resize(uuid))

    def _resize(self, uuid: str) -> drain_plan.Resize:
        """The newest resize or cold migration of a server."""
        migrations = [
            migration
            for migration in nova_calls.call(
                self._nova,
                'GET',
                '/os-migrations',
                params={'instance_uuid': uuid},
            )['migrations']
            if migration['migration_type'] in ('migration', 'resize')
        ]
        if not migrations:
            return drain_plan.Resize.NONE
        newest = max(migrations, key=lambda found: found['id'])
        if newest['status'] != _FINISHED:
            return drain_plan.Resize.ENDING
        if (
            newest['migration_type'] == 'migration'
            and newest['source_node'] == self._hostname
            and self._is_ours(newest)
        ):
            return drain_plan.Resize.OURS
        return drain_plan.Resize.OTHERS

    def _is_ours(self, migration: Mapping[str, Any]) -> bool:
        if self._began is None:
            return migration['user_id'] == self._user_id is not None
        return _time(migration['created_at']) >= self._began

    def act(
        self, uuid: str, way: drain_plan.Way, target: str | None = None
    ) -> None:
        """Have Nova begin it.

        :param target: the service host to move to, None for any
        :raises Refused: Nova does not begin it
        :raises CommandError: Nova is in trouble.
        """
        body = _BODIES[way]
        if target is not None:
            body = {
                action: {**(wanted or {}), 'host': target}
                for action, wanted in body.items()
            }
        nova_calls.call(
            self._nova, 'POST', f'/servers/{uuid}/action', json=body
        )

    def why_failed(self, uuid: str) -> str:
        """Nova's words on why the last move of a server has failed.

        :raises CommandError: Nova is in trouble.
        """
        path = f'/servers/{uuid}/os-instance-actions'
        try:
            actions = [
                action
                for action in nova_calls.call(self._nova, 'GET', path)[
                    'instanceActions'
                ]
                if action['action'] in _ACTIONS
            ]
            if not actions:
                return _UNSAID
            newest = max(actions, key=lambda action: action['start_time'])
            action = nova_calls.call(
                self._nova, 'GET', f'{path}/{newest["request_id"]}'
            )['instanceAction']
        except nova_calls.Refused as error:
            return f'{_UNSAID}, and nothing of its actions: {error}'
        return _details(action.get('events') or ()) or _UNSAID


_UNSAID = 'Nova does not say why; the logs of nova-compute do'


def holding_of(arqs: Collection[Mapping[str, Any]]) -> Holding:
    """The holding of a server that has these ARQs, as the API shows them."""
    return Holding(
        frozenset(arq['attach_handle_type'] for arq in arqs),
        frozenset(arq['device_profile_name'] for arq in arqs),
    )


def parse_server(
    shown: Mapping[str, Any], hostname: str, holding: Holding
) -> drain_plan.DrainedServer:
    """A server as Nova's API shows it, without its resize.

    :param hostname: of the host that it is to leave
    """
    extra_specs_of = shown['flavor'].get('extra_specs', {})
    return drain_plan.DrainedServer(
        uuid=shown['id'],
        name=nova_calls.words(shown['name']),
        status=shown['status'],
        task=shown['OS-EXT-STS:task_state'],
        is_here=shown['OS-EXT-SRV-ATTR:hypervisor_hostname'] == hostname,
        is_mediated=holding.kinds == {'MDEV'},
        has_cyborgs_key=device_profile.CYBORG_FLAVOR_KEY in extra_specs_of,
        alternatives=extra_specs.profiles(extra_specs_of),
    )


def drain_path(hostname: str) -> str:
    """The path of the drain of a host in the accelerator API."""
    return f'/hosts/{parse.quote(hostname, "")}/drain'


def _details(events: Iterable[Mapping[str, Any]]) -> str:
    """The words of the events that have failed, the hosts' own ones first.

    nova-conductor only says that no host is left.
    """
    found = [
        (not str(event['event']).startswith('compute_'), details)
        for event in events
        if event.get('result') == 'Error'
        and (details := nova_calls.words(event.get('details') or ''))
    ]
    ours = [details for is_others, details in found if not is_others]
    return '; '.join(
        dict.fromkeys(ours or [details for _is_others, details in found])
    )


def _time(text: str) -> datetime.datetime:
    """A time of Nova's, which is in UTC and does not say so."""
    time = datetime.datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
