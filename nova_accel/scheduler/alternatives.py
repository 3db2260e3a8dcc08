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

"""The choice between the device profiles that a flavor names.

The first one is chosen of which units are known to be free, beside those that
other requests have been promised and have not claimed yet. Nova asks Placement
afterwards, and for that profile alone. So Placement is asked here before, if
there is a doubt: known units say nothing of the CPUs and the memory of a host,
nor of its availability zone. After a good answer the same question is not
asked again for a while.
"""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import copy
import threading
import time
from typing import Any
from typing import NamedTuple

from nova import context as nova_context
from nova import exception
from nova import objects
from nova.compute import task_states
from nova.scheduler import request_filter as nova_filters
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.db import client_arqs
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import host_fit
from nova_accel.model.units import known_units
from nova_accel.model.units import unit_claims
from nova_accel.scheduler import candidates
from nova_accel.scheduler import known_stock
from nova_accel.scheduler import our_group
from nova_accel.scheduler import ownership
from nova_accel.scheduler import requested_profile
from nova_accel.scheduler import scheduled_server
from nova_accel.scheduler import timed_cache
from nova_accel.scheduler import unified_limits

LOG = logging.getLogger(__name__)

#: The kinds of requests for which Placement had candidates lately.
_PROVEN: timed_cache.ShortMemory[bool] = timed_cache.ShortMemory()

#: The name of a device profile -> why it is not chosen.
_Refused = dict[str, exceptions.AcceleratorError | exception.NovaException]

#: Seconds for which a request waits until others have asked Placement.
_PATIENCE_S = 10.0

_ASKING = threading.Lock()


class _Alternative(NamedTuple):
    """A device profile, and the request with it alone."""

    name: str
    spec: 'objects.RequestSpec'
    groups: Sequence[our_group.OurGroup]
    promise: unit_claims.Promise


def choose(
    ctxt: nova_context.RequestContext,
    request_spec: 'objects.RequestSpec',
    names: Sequence[str],
) -> str:
    """The name of the first device profile that can be served.

    Its units are promised to the server. A server that is live-migrated keeps
    the profile that it has.

    :param names: of the device profiles, the best one first
    :raises RequestFilterFailed: none of them can be served; the reason has
        that of each
    :raises TooManyInstances: likewise, and each is over a limit
    :raises ServiceUnavailable: the database gives no answer
    """
    known = known_stock.current(known_stock.FRESH_S)
    if known is None:
        raise exceptions.ServiceUnavailable.for_all(
            'the database of accelerators gave no answer'
        )
    server = request_spec.instance_uuid
    refused: _Refused = {}
    doubted = []
    possible, servers = _possible(ctxt, request_spec, names)
    for name in possible:
        with _noting(refused, name, known, server):
            alternative = _read(ctxt, request_spec, name, servers)
            now = time.monotonic()
            if not known.promise(server, alternative.promise, now):
                doubted.append(alternative)
                continue
            unified_limits.enforce(
                ctxt,
                alternative.spec,
                alternative.groups,
                known.promises.units_before(
                    server, request_spec.project_id, now
                ),
            )
            _prove(ctxt, known, alternative)
            return _chosen(alternative, names)
    # A promise may never be claimed, and known units may be too few.
    for alternative in doubted:
        with _noting(refused, alternative.name, known, server):
            _ask(ctxt, alternative)
            known.promises.note(server, alternative.promise, time.monotonic())
            return _chosen(alternative, names)
    raise _failure(refused)


def is_chosen(
    request_spec: 'objects.RequestSpec',
    groups: 'Sequence[objects.RequestGroup]',
) -> bool:
    """Whether :func:`choose` has chosen the profile of the request.

    :param groups: the groups of the request that are ours
    """
    known = known_stock.current()
    return known is not None and known.promises.has(
        request_spec.instance_uuid,
        map(our_group.to_group, groups),
        time.monotonic(),
    )


def _possible(
    ctxt: nova_context.RequestContext,
    request_spec: 'objects.RequestSpec',
    names: Sequence[str],
) -> tuple[Sequence[str], int]:
    """The names that matter, and for how many servers.

    A guest that is to be migrated live keeps what it has. For a server in a
    cell, ``num_instances`` is still the number of the multi-create that made
    it.
    """
    had = {
        arq['device_profile_name']
        for arq in client_arqs.get_of_instance(request_spec.instance_uuid)
    }
    if not had and request_spec.num_instances == 1:
        return names, 1
    instance = scheduled_server.find(ctxt, request_spec)
    if instance is None:
        return names, request_spec.num_instances
    if instance.task_state == task_states.MIGRATING and had & {*names}:
        return [name for name in names if name in had], 1
    return names, 1


def _read(
    ctxt: nova_context.RequestContext,
    request_spec: 'objects.RequestSpec',
    name: str,
    servers: int,
) -> _Alternative:
    """:raises AcceleratorError: see :func:`requested_profile.read`"""
    asked = requested_profile.read(ctxt, name)
    spec = copy.copy(request_spec)
    ownership.add_extra_specs(spec, {device_profile.FLAVOR_KEY: name})
    policy = ownership.extra_specs(spec).get('group_policy')
    groups = tuple(each.group for each in asked.groups)
    return _Alternative(
        name,
        spec,
        [group for group in asked.request_groups() if group.resources],
        unit_claims.Promise(
            host_fit.Request(
                groups,
                policy == 'isolate' and len(groups) > 1,
                _only(spec),
                frozenset(_field(spec, 'ignore_hosts') or ()),
            ),
            servers,
            spec.project_id,
            _kind(spec, groups),
        ),
    )


def _kind(
    spec: 'objects.RequestSpec', groups: Sequence[device_profile.Group]
) -> str:
    """Equal for requests with one answer of Placement; empty if unlike all."""
    if spec.requested_resources or _only(spec):
        return ''
    return repr(
        (
            [
                _field(spec.flavor, name)
                for name in (
                    'vcpus',
                    'memory_mb',
                    'root_gb',
                    'ephemeral_gb',
                    'swap',
                )
            ],
            sorted(ownership.extra_specs(spec).items()),
            groups,
            spec.project_id,
            _field(spec, 'availability_zone'),
            _field(_field(spec, 'image'), 'id'),
        )
    )


def _only(spec: 'objects.RequestSpec') -> str | None:
    """The host that the request is for, None if any may serve it."""
    target = _field(spec, 'requested_destination')
    named = (
        *(_field(spec, 'force_nodes') or ()),
        *(_field(spec, 'force_hosts') or ()),
        _field(target, 'node'),
        _field(target, 'host'),
    )
    return next((str(name) for name in named if name), None)


def _field(of: Any, name: str) -> Any:
    """A field of one of Nova's objects, None if it is not set."""
    return getattr(of, name) if of is not None and name in of else None


def _is_proven(
    known: known_units.KnownUnits, promise: unit_claims.Promise
) -> bool:
    """Whether Placement has had candidates for the same, and still has."""
    return _PROVEN.get(promise.kind) is True and not known.promises.is_late(
        promise.kind, time.monotonic()
    )


def _prove(
    ctxt: nova_context.RequestContext,
    known: known_units.KnownUnits,
    alternative: _Alternative,
) -> None:
    """Ask Placement, unless that was done for the same lately.

    If several requests want to know the same, one of them asks.

    :raises RequestFilterFailed, TooManyInstances, NotFound: see :func:`_ask`
    """
    if _is_proven(known, alternative.promise):
        return
    is_alone = _ASKING.acquire(timeout=_PATIENCE_S)
    try:
        if not _is_proven(known, alternative.promise):
            _ask(ctxt, alternative)
    finally:
        if is_alone:
            _ASKING.release()


def _ask(ctxt: nova_context.RequestContext, alternative: _Alternative) -> None:
    """Try the whole request, as Nova will.

    If it is for one host, Placement is not asked: this host is looked up in
    what is known.

    :raises RequestFilterFailed: a filter refuses it
    :raises TooManyInstances: likewise
    :raises NotFound: Placement has no candidate
    """
    spec = alternative.spec.obj_clone()
    nova_filters.process_reqspec(ctxt, spec)
    if _only(spec):
        return
    found = candidates.ask_all(ctxt, spec)
    if found == []:
        raise exceptions.NotFound.for_all(
            'no host that has units free has all else that the server needs'
        )
    if found and alternative.promise.kind:
        _PROVEN.put(alternative.promise.kind, True)


def _chosen(alternative: _Alternative, names: Sequence[str]) -> str:
    if alternative.name != names[0]:
        LOG.info(
            'Server %s is to get device profile %s, which is an alternative '
            'to %s',
            alternative.spec.instance_uuid,
            alternative.name,
            ', '.join(names[: names.index(alternative.name)]),
        )
    return alternative.name


@contextlib.contextmanager
def _noting(
    refused: _Refused,
    name: str,
    known: known_units.KnownUnits,
    server: str,
) -> Iterator[None]:
    """Note why the body refuses a device profile, and promise nothing."""
    try:
        yield
    except BaseException as error:
        known.promises.end(server)
        if isinstance(error, exceptions.ServiceUnavailable) or not isinstance(
            error,
            exceptions.AcceleratorError
            | exception.RequestFilterFailed
            | exception.TooManyInstances,
        ):
            raise
        LOG.info('Device profile %s is not chosen: %s', name, error)
        refused[name] = error


def _failure(refused: _Refused) -> exception.NovaException:
    reason = '; '.join(
        f'device profile {name}: {error.public}'
        if isinstance(error, exceptions.AcceleratorError)
        else str(error.kwargs.get('reason', error))
        for name, error in refused.items()
    )
    if all(
        isinstance(error, exception.TooManyInstances)
        for error in refused.values()
    ):
        return exception.TooManyInstances(reason, code=403)
    return exception.RequestFilterFailed(reason=reason)
