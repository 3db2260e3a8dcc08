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

"""A compute host's calls of the accelerator API.

Every call is idempotent, so the HTTP layer may repeat a call whose answer was
lost. An error of the API is raised here as the same exception.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

from keystoneauth1 import adapter as ks_adapter
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading as ks_loading
from keystoneauth1 import plugin as ks_plugin

from nova_accel import conf
from nova_accel import exceptions
from nova_accel import reason
from nova_accel.client import api_answer
from nova_accel.client import refusal
from nova_accel.client import report_contract
from nova_accel.conf import client as client_conf
from nova_accel.model import arq_types
from nova_accel.model import decoding
from nova_accel.model import host_binding
from nova_accel.model import host_orders
from nova_accel.model import report_parts
from nova_accel.model.fpga import programming_record
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import provider_allocation

CONF = conf.CONF

#: The most uuids in a URL. Web servers limit a request's headers, which
#: include the token, to a few KiB.
_IN_A_URL = 32


def auth_from_conf() -> ks_plugin.BaseAuthPlugin:
    """The host's own credentials.

    :raises ConfigurationError: ``[nova_accel_client]`` has none.
    """
    group = client_conf.GROUP.name
    try:
        auth = ks_loading.load_auth_from_conf_options(CONF, group)
    except ks_exceptions.AuthPluginException as error:
        raise exceptions.ConfigurationError(
            refusal.unusable_options(error)
        ) from error
    if auth is None:
        raise exceptions.ConfigurationError(
            f'[{group}] auth_type (or auth_section) is not set: nova-compute '
            'needs credentials for the accelerator API'
        )
    return auth


def adapter_from_conf() -> ks_adapter.Adapter:
    """An adapter with the host's own credentials.

    :raises ConfigurationError: ``[nova_accel_client]`` has none.
    """
    group = client_conf.GROUP.name
    auth = auth_from_conf()
    session = ks_loading.load_session_from_conf_options(CONF, group, auth=auth)
    return ks_loading.load_adapter_from_conf_options(
        CONF,
        group,
        session=session,
        auth=auth,
        min_version='2',
        max_version='2.latest',
        raise_exc=False,
    )


class AcceleratorApi:
    """The calls of one host.

    :param hostname: the host's Nova nodename
    """

    def __init__(self, adapter: ks_adapter.Adapter, hostname: str) -> None:
        self._adapter = adapter
        self._hostname = hostname
        self._agreement = report_contract.Agreement()
        # The digest of the devices that the API has for this host, and the
        # contract by which they were told.
        self._reported: tuple[str, int] | None = None

    def report(
        self,
        node_uuid: str,
        service_host: str,
        digest: str,
        devices: Sequence[Mapping[str, Any]],
        orders_seen: int | None = None,
        findings: Sequence[Mapping[str, Any]] = (),
        orders_published: int | None = None,
    ) -> host_orders.Orders | None:
        """Report the host's devices, and get its orders.

        :param service_host: the host's name in Nova's RPC
        :param digest: the digest of devices and findings; unchanged ones are
            not sent again, which costs the API one statement
        :param devices: see
            :meth:`nova_accel.model.devices.hardware.Device.to_report`
        :param orders_seen: the revision of the orders that the host has,
            None if it has none
        :param findings: see :func:`nova_accel.model.finding.to_dicts`
        :param orders_published: the revision of the orders that Placement has,
            None if that is not known
        :returns: the orders; None if neither orders nor devices changed
        :raises AcceleratorError: the report is refused (InvalidRequest,
            Conflict), or there was no usable answer (ServiceUnavailable).
        """
        facts = {
            'node_uuid': node_uuid,
            'service_host': service_host,
            'digest': digest,
            'orders_seen': orders_seen,
            'orders_published': orders_published,
        }
        if self._reported == (digest, self._agreement.contract):
            try:
                return self._report(facts)
            except (exceptions.NotFound, exceptions.InvalidRequest):
                # The API has other devices by now, or is older than this host.
                self._reported = None
        while True:
            contract = self._agreement.contract
            try:
                told = self._report_devices(facts, devices, findings)
            except exceptions.InvalidRequest:
                # The next try has fewer keys, so this ends.
                if self._agreement.contract < contract:
                    continue
                raise
            self._reported = digest, contract
            return told

    def _report_devices(
        self,
        facts: Mapping[str, Any],
        devices: Sequence[Mapping[str, Any]],
        findings: Sequence[Mapping[str, Any]],
    ) -> host_orders.Orders | None:
        *before, last = report_parts.split(devices)
        for number, part in enumerate(before):
            self._report({**facts, 'part': number, 'devices': part})
        others = [device['uuid'] for part in before for device in part]
        return self._report(
            {
                **facts,
                'devices': last,
                **({'part': len(before), 'others': others} if before else {}),
                'findings': findings,
            }
        )

    def _report(self, content: Mapping[str, Any]) -> host_orders.Orders | None:
        told = self._agreement.compose(content)
        response = self._request('PUT', f'/hosts/{self._hostname}', json=told)
        self._agreement.note_answer(response.status_code, response.headers)
        answer = api_answer.content(response)
        return (
            None
            if answer is None
            else api_answer.read(
                decoding.part('orders', host_orders.from_dict), answer
            )
        )

    def cleaning(
        self, cleaned: Iterable[str], failed: Mapping[str, str], revision: int
    ) -> None:
        """Report the results of cleaning attach handles.

        :param cleaned: the uuids of handles that the next guest may get
        :param failed: uuid -> why it could not be cleaned
        :param revision: the revision of the orders by which cleaning began; a
            handle that was released again since then stays unclean
        :raises AcceleratorError: the API noted nothing (NotFound, Conflict),
            or the result is unknown (ServiceUnavailable).
        """
        self._call(
            'PUT',
            f'/hosts/{self._hostname}/cleaning',
            json={
                'revision': revision,
                'cleaned': list(cleaned),
                'failed': {
                    uuid: reason.sanitize(why) for uuid, why in failed.items()
                },
            },
        )

    def provisioning(
        self, arq_uuids: Iterable[str], failed: Iterable[str] = ()
    ) -> None:
        """Report all ARQs whose devices the host is making again.

        :param failed: the uuids of ARQs for which that has just failed; their
            waiting servers are told
        :raises ServiceUnavailable: the API gave no usable answer.
        """
        self._call(
            'PUT',
            f'/hosts/{self._hostname}/provisioning',
            json={'arqs': list(arq_uuids), 'failed': list(failed)},
        )

    def programming(self, record: programming_record.Record) -> None:
        """Report that a programming has begun or ended.

        :raises AcceleratorError: it is refused (InvalidRequest, Conflict), or
            there was no usable answer (ServiceUnavailable).
        """
        self._call(
            'PUT',
            f'/hosts/{self._hostname}/programmings/{record.uuid}',
            json=record.to_report(),
        )

    def acquire(
        self,
        instance_uuid: str,
        role: arq_types.Role,
        attempt: int,
        project_id: str,
        asked: device_profile.Asked,
        allocations: Iterable[provider_allocation.ProviderAllocation],
        numa_nodes: frozenset[int] = frozenset(),
        is_new: bool = False,
    ) -> tuple[arq_types.Arq, ...]:
        """Create, match and bind the ARQs of an instance on this host.

        :param attempt: a number that grows with each attempt at the same
            binding; the API refuses an older one than it knows
        :param numa_nodes: those of this host that have the guest's cells, none
            if they do not matter
        :param is_new: whether the limits of the project matter: the instance
            does not have the ARQs already
        :returns: the bound ARQs, the same ones for the same attempt; ARQs of
            groups without a profile have an empty profile name
        :raises AcceleratorError: nothing is held (StaleAttempt, NotFound,
            NoAssignment, AcceleratorsBusy, OverQuota, InvalidRequest), or the
            result is unknown (ServiceUnavailable).
        """
        answer = self._call(
            'PUT',
            self._binding(instance_uuid, role),
            json=self._agreement.request(
                {
                    'attempt': attempt,
                    'project_id': project_id,
                    'device_profile_name'
                    if isinstance(asked, str)
                    else 'groups': asked,
                    'providers': provider_allocation.to_dict(allocations),
                    'numa_nodes': sorted(numa_nodes),
                    'is_new': is_new,
                }
            ),
        )
        return _arqs(answer)

    def additions(
        self,
        instance_uuid: str,
        role: arq_types.Role,
        attempt: int,
        project_id: str,
        wanted: Sequence[arq_types.WantedArq],
        kept: Collection[str] | None = None,
    ) -> tuple[arq_types.Arq, ...]:
        """Bind new ARQs beside those of a binding, which may have none.

        :param attempt: as for :meth:`acquire`; a number that another call has
            used binds nothing
        :param kept: the uuids of the ARQs that the instance keeps besides, if
            the limits of the project matter
        :returns: all bound ARQs, old and new
        :raises AcceleratorError: nothing new is held (StaleAttempt, NotFound,
            AcceleratorsBusy, OverQuota, InvalidRequest), or the result is
            unknown (ServiceUnavailable).
        """
        return _arqs(
            self._call(
                'PUT',
                f'{self._binding(instance_uuid, role)}/additions',
                json={
                    'attempt': attempt,
                    'project_id': project_id,
                    'arqs': [each.to_dict() for each in wanted],
                    **({} if kept is None else {'kept': list(kept)}),
                },
            )
        )

    def keep(
        self,
        instance_uuid: str,
        role: arq_types.Role,
        attempt: int,
        arqs: Collection[arq_types.Arq],
        leaving: Collection[str] = (),
    ) -> None:
        """Give back what a binding has besides these ARQs.

        :param attempt: as for :meth:`acquire`
        :param arqs: at least one, unless some are leaving; the API gets their
            device profiles' names and numbers of groups
        :param leaving: the uuids of further ARQs, of which the guest has not
            let go
        :raises AcceleratorError: nothing is given back (StaleAttempt,
            NotFound, Conflict, InvalidRequest), or the result is unknown
            (ServiceUnavailable).
        """
        self._call(
            'PUT',
            f'{self._binding(instance_uuid, role)}/arqs',
            json={
                'attempt': attempt,
                'arqs': [arq.uuid for arq in arqs],
                'names': {
                    arq.uuid: {
                        'device_profile_name': arq.device_profile_name,
                        'device_profile_group_id': arq.device_profile_group_id,
                    }
                    for arq in arqs
                },
                'leaving': list(leaving),
            },
        )

    def adopt(
        self,
        instance_uuid: str,
        role: arq_types.Role,
        attempt: int,
        arq_uuids: Iterable[str],
        is_new: bool = False,
    ) -> tuple[arq_types.Arq, ...]:
        """Take over ARQs that Nova's Cyborg client bound, for later release.

        :param attempt: as for :meth:`acquire`
        :param is_new: as for :meth:`acquire`
        :returns: the bound ARQs
        :raises AcceleratorError: none is adopted (StaleAttempt, NotFound,
            Conflict, OverQuota, InvalidRequest), or the result is unknown
            (ServiceUnavailable).
        """
        return _arqs(
            self._call(
                'PUT',
                f'{self._binding(instance_uuid, role)}/arqs',
                json=self._agreement.request(
                    {
                        'attempt': attempt,
                        'arqs': list(arq_uuids),
                        'is_new': is_new,
                    }
                ),
            )
        )

    def move(
        self,
        instance_uuid: str,
        source: arq_types.Role,
        target: arq_types.Role,
        attempt: int,
        arq_uuids: Iterable[str],
    ) -> None:
        """Change the role of an instance's ARQs on this host.

        :param attempt: as for :meth:`acquire`, for both roles
        :raises AcceleratorError: none has moved (StaleAttempt, NotFound,
            Conflict), or the result is unknown (ServiceUnavailable).
        """
        self._call(
            'PUT',
            f'{self._binding(instance_uuid, target)}/arqs',
            json={
                'attempt': attempt,
                'arqs': list(arq_uuids),
                'from_role': str(source),
            },
        )

    def held_on(
        self, hostname: str, instance_uuid: str, role: arq_types.Role
    ) -> tuple[arq_types.Arq, ...]:
        """The ARQs that an instance holds on any host, all or none.

        :param hostname: that host's Nova nodename
        :raises ServiceUnavailable: the API gave no usable answer.
        """
        return _arqs(
            self._call(
                'GET', f'/hosts/{hostname}/instances/{instance_uuid}/{role}'
            )
        )

    def release(
        self, instance_uuid: str, role: arq_types.Role, attempt: int
    ) -> None:
        """Free what this attempt or an earlier one took, if anything.

        :raises StaleAttempt: a newer attempt holds the binding.
        :raises ServiceUnavailable: it is not known whether it was freed.
        """
        self._call(
            'DELETE',
            self._binding(instance_uuid, role),
            params={'attempt': attempt},
        )

    def bindings(self) -> list[host_binding.Binding]:
        """All bindings of this host, adopted or not.

        :raises ServiceUnavailable: the API gave no usable answer.
        """
        return self.listing().bindings

    def listing(self) -> host_binding.Listing:
        """The same, and what else the API says of this host with them.

        :raises ServiceUnavailable: the API gave no usable answer.
        """
        answer = self._call('GET', f'/hosts/{self._hostname}/instances')
        return api_answer.read(host_binding.listing, answer)

    def delete_unadopted(
        self, instance_uuid: str, arq_uuids: Iterable[str]
    ) -> None:
        """Delete ARQs that Nova's Cyborg client has bound to this host.

        ARQs that are gone, or adopted by now, are ignored.

        :raises ServiceUnavailable: it is unknown which are deleted.
        """
        uuids = list(arq_uuids)
        for start in range(0, len(uuids), _IN_A_URL):
            self._call(
                'DELETE',
                f'/hosts/{self._hostname}/instances/{instance_uuid}',
                params={'arqs': ','.join(uuids[start : start + _IN_A_URL])},
            )

    def _binding(self, instance_uuid: str, role: arq_types.Role) -> str:
        return f'/hosts/{self._hostname}/instances/{instance_uuid}/{role}'

    def _call(self, method: str, path: str, **kwargs: Any) -> Any:
        return api_answer.content(self._request(method, path, **kwargs))

    def _request(self, method: str, path: str, **kwargs: Any) -> Any:
        try:
            return self._adapter.request(path, method, **kwargs)
        except ks_exceptions.ClientException as error:
            raise exceptions.ServiceUnavailable(
                refusal.unreachable(error)
            ) from error


def _arqs(answer: Any) -> tuple[arq_types.Arq, ...]:
    """:raises ServiceUnavailable: the answer is malformed."""
    return api_answer.read(
        decoding.part('arqs', decoding.listed(arq_types.Arq.from_dict)), answer
    )
