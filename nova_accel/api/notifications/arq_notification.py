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

"""Notifications of ARQs: they are bound and unbound, and their devices fail.

Each context manager surrounds one change of the database. It notifies of the
start before the change, and of the end after the commit. The ARQs are read
only if notifications are sent.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
from typing import Any

from oslo_log import log as logging

from nova_accel.api.http import caller
from nova_accel.api.notifications import notifier
from nova_accel.db import client_arqs
from nova_accel.db import host_arqs
from nova_accel.db import usage
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import fence
from nova_accel.db.rows import judged_arqs
from nova_accel.model import arq_types
from nova_accel.model.units import unit_health

LOG = logging.getLogger(__name__)

Arqs = list[arq_rows.ArqRow]

_BIND = 'accelerator_request.bind'
_UNBIND = 'accelerator_request.unbind'
_FAIL = 'accelerator_request.fail'
_RECOVER = 'accelerator_request.recover'

#: The fields that all ARQs of one notification share.
_PLACE = ('instance_uuid', 'hostname', 'role', 'project_id')


@dataclasses.dataclass(frozen=True)
class _Change:
    """A change of the ARQs of one instance, host and role.

    :ivar place: the other fields of the payload
    :ivar periods: ARQ uuid -> what it holds, or has held, at the end
    """

    context: caller.Caller
    action: str
    place: Mapping[str, str | None]
    arqs: Sequence[Mapping[str, Any]]
    periods: Mapping[str, usage.PeriodRow] = dataclasses.field(
        default_factory=dict
    )

    def send(self, phase: notifier.Phase | None, fault: object = None) -> None:
        from nova_accel.api.notifications import payloads

        notifier.emit(
            self.context,
            self.action,
            phase,
            lambda: payloads.of_arqs(
                self.arqs,
                None if fault is None else str(fault),
                self.periods,
                **self.place,
            ),
        )

    def send_end(self, periods: Mapping[str, usage.PeriodRow]) -> None:
        """Notify of the end, with the ARQs as they are then.

        Each kind of units has a notification, since Ceilometer can give all
        samples that it makes of one only the same metadata.

        :param periods: ARQ uuid -> what it holds, or has held
        """
        arqs = (
            [{**arq, 'state': arq_types.State.UNBOUND} for arq in self.arqs]
            if self.action == _UNBIND
            else self.arqs
        )
        for of_kind in _by_kind(arqs, periods):
            dataclasses.replace(self, arqs=of_kind, periods=periods).send(
                notifier.Phase.END
            )


@contextlib.contextmanager
def acquiring(
    context: caller.Caller, request: host_arqs.AcquireRequest
) -> Iterator[Arqs]:
    """Surround an acquisition by a host; its body fills the list of ARQs."""
    bound: Arqs = []
    if not notifier.is_enabled():
        yield bound
        return
    before = _read(functools.partial(host_arqs.get, *request.key))
    change = _Change(
        context,
        _BIND,
        {
            name: getattr(request, name)
            for name in (*_PLACE, 'device_profile_name')
        },
        [],
    )
    with _started([change]):
        yield bound
    kept = {arq['uuid'] for arq in bound}
    replaced = _changes(
        context, _UNBIND, (arq for arq in before if arq['uuid'] not in kept)
    )
    for each in replaced:
        each.send(notifier.Phase.START)
    chosen = {arq['device_profile_name'] for arq in bound}
    if len(chosen) == 1:
        # The request may have named several.
        [name] = chosen
        change = dataclasses.replace(
            change, place={**change.place, 'device_profile_name': name}
        )
    _end([*replaced, dataclasses.replace(change, arqs=bound)])


@contextlib.contextmanager
def adding(
    context: caller.Caller,
    key: fence.Key,
    project_id: str,
    device_profile_name: str,
) -> Iterator[Arqs]:
    """Surround the binding of ARQs beside those of a binding.

    Its body fills the list with all ARQs of the binding.
    """
    bound: Arqs = []
    if not notifier.is_enabled():
        yield bound
        return
    kept = {
        arq['uuid'] for arq in _read(functools.partial(host_arqs.get, *key))
    }
    change = _Change(
        context,
        _BIND,
        {
            **dict(zip(_PLACE, (*key, project_id), strict=True)),
            'device_profile_name': device_profile_name,
        },
        [],
    )
    with _started([change]):
        yield bound
    new = [arq for arq in bound if arq['uuid'] not in kept]
    _end([dataclasses.replace(change, arqs=new)])


@contextlib.contextmanager
def binding(
    context: caller.Caller,
    bindings: Mapping[str, Mapping[str, str]],
) -> Iterator[Arqs]:
    """Surround a binding by Nova's client; its body fills the list of ARQs.

    :param bindings: as for :func:`nova_accel.db.client_arqs.bind`
    """
    bound: Arqs = []
    if not notifier.is_enabled():
        yield bound
        return
    changes = _changes(
        context,
        _BIND,
        (
            {**arq, **bindings[arq['uuid']]}
            for arq in _read(
                functools.partial(client_arqs.get_by_uuids, list(bindings))
            )
        ),
    )
    with _started(changes):
        yield bound
    ended = _changes(context, _BIND, bound)
    periods = _read_periods(ended)
    for change in ended:
        reasons = {
            arq['reason']
            for arq in change.arqs
            if arq['state'] == arq_types.State.BIND_FAILED
        }
        if reasons:
            change.send(notifier.Phase.ERROR, '; '.join(sorted(reasons)))
        else:
            change.send_end(periods)


@contextlib.contextmanager
def unbinding(
    context: caller.Caller, read: Callable[[], Arqs]
) -> Iterator[None]:
    """Surround an unbinding or a deletion of ARQs.

    :param read: gives the ARQs that are about to go; those that hold nothing
        are left out
    """
    if not notifier.is_enabled():
        yield
        return
    changes = _changes(context, _UNBIND, _holding(_read(read)))
    for change in changes:
        change.send(notifier.Phase.START)
    try:
        yield
    except Exception as fault:
        # A part of the named ARQs may be gone.
        left = {arq['uuid'] for arq in _holding(_read(read))}
        periods = _read_periods(changes)
        for change in changes:
            if any(arq['uuid'] in left for arq in change.arqs):
                change.send(notifier.Phase.ERROR, fault)
            else:
                change.send_end(periods)
        raise
    _end(changes)


def of_health(
    context: caller.Caller, arqs: Sequence[judged_arqs.JudgedRow]
) -> None:
    """Notify of ARQs whose devices have failed, or work again.

    The words of the host are for administrators alone.
    """
    if not notifier.is_enabled():
        return
    for verdict in dict.fromkeys(arq['health'] for arq in arqs):
        works = verdict.health is unit_health.Health.HEALTHY
        for change in _changes(
            context,
            _RECOVER if works else _FAIL,
            (arq for arq in arqs if arq['health'] == verdict),
        ):
            change.send(None, verdict.reason)


@contextlib.contextmanager
def _started(changes: Sequence[_Change]) -> Iterator[None]:
    """Notify of the start, and of the fault if the body raises one."""
    for change in changes:
        change.send(notifier.Phase.START)
    try:
        yield
    except Exception as fault:
        for change in changes:
            change.send(notifier.Phase.ERROR, fault)
        raise


def _changes(
    context: caller.Caller,
    action: str,
    arqs: Iterable[Mapping[str, Any]],
) -> list[_Change]:
    found: dict[tuple[str | None, ...], list[Mapping[str, Any]]] = {}
    for arq in arqs:
        found.setdefault(tuple(arq[name] for name in _PLACE), []).append(arq)
    return [
        _Change(
            context,
            action,
            {
                **dict(zip(_PLACE, place, strict=True)),
                'device_profile_name': of_one[0]['device_profile_name'],
            },
            of_one,
        )
        for place, of_one in found.items()
    ]


def _by_kind(
    arqs: Sequence[Mapping[str, Any]],
    periods: Mapping[str, usage.PeriodRow],
) -> Iterable[list[Mapping[str, Any]]]:
    """The ARQs by resource class, product and shape; nothing for none."""
    found: dict[object, list[Mapping[str, Any]]] = {}
    for arq in arqs:
        period = periods.get(arq['uuid'])
        found.setdefault(
            (
                arq_types.resource_class(arq['group']),
                period and (period['product'], period['shape']),
            ),
            [],
        ).append(arq)
    return found.values() or [[]]


def _end(changes: Sequence[_Change]) -> None:
    """Notify of the ends of all changes."""
    periods = _read_periods(changes)
    for change in changes:
        change.send_end(periods)


def _read_periods(changes: Sequence[_Change]) -> dict[str, usage.PeriodRow]:
    """The last periods of their ARQs, by one statement."""
    try:
        return usage.get_last(
            [arq['uuid'] for change in changes for arq in change.arqs]
        )
    except Exception:
        LOG.exception('What the ARQs of a notification hold cannot be read')
        return {}


def _holding(arqs: Arqs) -> Arqs:
    return [arq for arq in arqs if arq['attach_handle_uuid'] is not None]


def _read(read: Callable[[], Arqs]) -> Arqs:
    try:
        return read()
    except Exception:
        LOG.exception('The ARQs of a notification cannot be read')
        return []
