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

"""What accelerators cost nova-scheduler, beside what Nova itself costs."""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import statistics
import time
from typing import Any

import fixtures
from nova import context as nova_context
from nova.scheduler import request_filter
from nova.scheduler import weights
from nova.scheduler.client import report

from nova_accel.db.sql import time_limits
from rig.benchmark import alternatives_cost
from rig.benchmark import availability_cost
from rig.benchmark import calls
from rig.benchmark import turns

#: The number of servers of a multi-create.
SERVERS = 50

#: How many requests go through our request filters in a round. The later half
#: of all counts: Python makes code quick that runs often, and a scheduler runs
#: for days.
_REQUESTS = 20

_OURS = 'nova_accel.'


class _EmptyWeigher(weights.BaseHostWeigher):
    """Costs what Nova itself does for each weigher."""

    def weigh_objects(
        self, weighed_obj_list: Sequence[Any], weight_properties: Any
    ) -> list[float]:
        return [0.0] * len(weighed_obj_list)

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        return 0.0


def figures(cloud: Any, rounds: int) -> dict[str, Any]:
    """The costs in a cloud.

    All times are CPU time: microseconds for each host in ``weigher_us`` and
    the like, milliseconds for a decision in ``decision_ms``. The weighers see
    all hosts of the cloud. A decision sees as many as Nova asks Placement for.
    ``empty_us`` is what Nova does for a weigher that does nothing.

    :param cloud: a :class:`rig.benchmark.scheduler_cloud.SchedulerCloud` that
        is set up
    :param rounds: how often each is measured; the median counts
    """
    return {
        **_hosts(cloud, rounds),
        **_request_filters(cloud, rounds),
        **_counts(cloud),
        **_decision(cloud, rounds),
        **alternatives_cost.figures(cloud, rounds),
        **availability_cost.figures(cloud.PROFILE, rounds),
    }


def by_hosts(found: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of several clouds, as one object.

    :param found: the number of hosts -> :func:`figures`
    :returns: a time, share or name by the number of hosts; of a count the
        largest
    """
    joined: dict[str, Any] = {}
    for hosts, of_cloud in found.items():
        for name, figure in of_cloud.items():
            if isinstance(figure, int):
                joined[name] = max(joined.get(name, 0), figure)
            else:
                joined.setdefault(name, {})[str(hosts)] = figure
    return joined


def _hosts(cloud: Any, rounds: int) -> dict[str, Any]:
    """What one host costs in the weighers and in our filter."""
    [ours] = filter(_is_ours, _weighers(cloud))
    subjects: dict[str, Callable[[], Any]] = {}
    for prefix, accelerated in (('plain_', False), ('', True)):
        spec = cloud.filtered_request(accelerated)
        hosts = cloud.hosts(spec)
        filtering = _filtering(cloud, hosts, spec)
        subjects[f'{prefix}filter'] = filtering
        # Our weigher weighs what our filter returns.
        subjects[f'{prefix}weigher'] = _weighing(ours, filtering(), spec)
    nova = {
        type(weigher).__name__: _weighing(weigher, hosts, spec)
        for weigher in _weighers(cloud)
        if not _is_ours(weigher)
    }
    subjects['empty'] = _weighing(_EmptyWeigher(), hosts, spec)
    seconds = turns.medians({**subjects, **nova}, rounds)
    each = {
        name: round(found / cloud.HOSTS * 1e6, 3)
        for name, found in seconds.items()
    }
    cheapest = min(nova, key=lambda name: each[name])
    return {
        **{
            f'{name}_us': each[name]
            for name in ('weigher', 'plain_weigher', 'filter', 'plain_filter')
        },
        'empty_us': each['empty'],
        'cheapest_us': each[cheapest],
        'cheapest': cheapest,
        'pci_us': each['PCIWeigher'],
    }


def _weighers(cloud: Any) -> Iterable[Any]:
    return cloud.manager.host_manager.weighers


def _weighing(weigher: Any, hosts: Any, spec: Any) -> Callable[[], Any]:
    """The whole of what one weigher costs Nova, with its multiplier."""
    handler = weights.HostWeightHandler()
    return lambda: handler.get_weighed_objects([weigher], hosts, spec)


def _filter(cloud: Any) -> Any:
    [found] = filter(_is_ours, cloud.manager.host_manager.enabled_filters)
    return found


def _filtering(cloud: Any, hosts: Any, spec: Any) -> Callable[[], Any]:
    accelerator_filter = _filter(cloud)
    return lambda: list(accelerator_filter.filter_all(hosts, spec))


def _is_ours(plugin: Any) -> bool:
    return type(plugin).__module__.startswith(_OURS)


def _request_filters(cloud: Any, rounds: int) -> dict[str, float]:
    """What our request filters cost, and their statements apart from that.

    The first adds the groups, the last checks the request. A statement is a
    whole call of ``nova_accel.db``.
    """
    database = turns.Stopwatch()
    context = nova_context.get_admin_context()
    names = 'request_filter', 'request_check'
    times: dict[str, list[float]] = collections.defaultdict(list)
    with _timed_database(database):
        for _request in range(_REQUESTS * rounds):
            spec = cloud.request(cloud.PROFILE)
            for name, our_filter in zip(
                names, _our_request_filters(), strict=True
            ):
                database.seconds = 0
                begin = time.thread_time()
                our_filter(context, spec)
                whole = time.thread_time() - begin
                times[f'{name}_us'].append(whole - database.seconds)
                times[f'{name}_statement_us'].append(database.seconds)
    return {
        name: round(statistics.median(each[len(each) // 2 :]) * 1e6, 1)
        for name, each in times.items()
    }


def _our_request_filters() -> list[Callable[..., bool]]:
    return [
        each
        for each in request_filter.ALL_REQUEST_FILTERS
        if each.__module__.startswith(_OURS)
    ]


@contextlib.contextmanager
def _timed_database(watch: turns.Stopwatch) -> Iterator[None]:
    """Time the calls of the database, each with its transaction and rows."""
    deadline = time_limits.deadline

    class Timed:
        """Takes hardly any time itself."""

        def __enter__(self) -> None:
            watch.__enter__()
            self._deadline = deadline()
            self._deadline.__enter__()

        def __exit__(self, *fault: Any) -> None:
            self._deadline.__exit__(*fault)
            watch.__exit__()

    with fixtures.MonkeyPatch('nova_accel.db.sql.time_limits.deadline', Timed):
        yield


def _counts(cloud: Any) -> dict[str, Any]:
    """How much we ask the database and Placement."""
    plain = _counted(cloud, accelerated=False)
    one = _counted(cloud, accelerated=True)
    many = _counted(cloud, accelerated=True, servers=SERVERS)
    return {
        'statements': one.statements,
        'plain_statements': plain.statements,
        'placement_calls': one.placement['ours'],
        'plain_placement_calls': plain.placement['ours'],
        'candidates_calls': one.candidates['ours'],
        'candidates_calls_of_50': many.candidates['ours'],
        'placement_calls_of_50': many.placement['ours'],
        'all_candidates_calls': one.candidates.total(),
    }


def _counted(cloud: Any, accelerated: bool, servers: int = 1) -> calls.Calls:
    profile = cloud.PROFILE if accelerated else None
    # The first decision fills caches.
    cloud.release(cloud.decide(cloud.request(profile)))
    spec = cloud.request(profile)
    with calls.counted() as counted:
        decided = cloud.decide(spec, servers)
    cloud.release(decided)
    return counted


def _decision(cloud: Any, rounds: int) -> dict[str, Any]:
    """Our share of the CPU time of a whole decision.

    It is the time in our request filters and our host filter, and all that
    Nova does to weigh by our weigher, measured alone over the same hosts.
    """
    found = [_timed_decision(cloud) for _round in range(rounds + 1)][1:]
    whole, ours, placement, our_placement = (
        statistics.median(column) for column in zip(*found, strict=True)
    )
    return {
        'decision_ms': {
            'all': round(whole * 1e3, 1),
            'placement': round(placement * 1e3, 1),
            'ours': round(ours * 1e3, 2),
            'our_placement': round(our_placement * 1e3, 2),
        },
        'our_share': round(ours / whole, 4),
        'our_share_without_placement': round(
            (ours - our_placement) / (whole - placement), 4
        ),
    }


def _timed_decision(cloud: Any) -> tuple[float, float, float, float]:
    """The seconds of all, of ours, of Placement, of Placement for us."""
    ours, placement, our_placement = (turns.Stopwatch() for _ in range(3))
    weighed: list[Any] = []
    spec = cloud.request(cloud.PROFILE)
    with contextlib.ExitStack() as stack:
        for name in ('get', 'put', 'post', 'delete'):
            _time_placement(stack, name, placement, our_placement)
        _time_filters(stack, cloud, ours)
        [weigher] = filter(_is_ours, _weighers(cloud))
        _note_hosts(stack, weigher, weighed)
        # Nova asks its cells in other threads.
        begin = time.process_time()
        servers = cloud.decide(spec)
        whole = time.process_time() - begin
    cloud.release(servers)
    hosts = [each.obj for each in weighed]
    begin = time.thread_time()
    _weighing(weigher, hosts, spec)()
    return (
        whole,
        ours.seconds + time.thread_time() - begin,
        placement.seconds,
        our_placement.seconds,
    )


def _time_placement(
    stack: contextlib.ExitStack,
    name: str,
    everybodys: turns.Stopwatch,
    ours: turns.Stopwatch,
) -> None:
    real = getattr(report.SchedulerReportClient, name)

    def timed(*args: Any, **kwargs: Any) -> Any:
        ours_too = (
            ours if calls.caller() == 'ours' else contextlib.nullcontext()
        )
        with everybodys, ours_too:
            return real(*args, **kwargs)

    stack.enter_context(
        fixtures.MonkeyPatch(
            f'nova.scheduler.client.report.SchedulerReportClient.{name}', timed
        )
    )


def _time_filters(
    stack: contextlib.ExitStack, cloud: Any, watch: turns.Stopwatch
) -> None:
    """Time our request filters and our host filter in place."""
    everybodys = request_filter.ALL_REQUEST_FILTERS
    before = list(everybodys)
    stack.callback(everybodys.__setitem__, slice(None), before)
    ours = _our_request_filters()
    everybodys[:] = [
        _timed(each, watch) if each in ours else each for each in before
    ]
    accelerator_filter = _filter(cloud)
    filter_all = accelerator_filter.filter_all
    stack.callback(delattr, accelerator_filter, 'filter_all')
    accelerator_filter.filter_all = _timed(
        lambda *args: list(filter_all(*args)), watch
    )


def _timed(
    function: Callable[..., Any], watch: turns.Stopwatch
) -> Callable[..., Any]:
    def timed(*args: Any) -> Any:
        with watch:
            return function(*args)

    return timed


def _note_hosts(
    stack: contextlib.ExitStack, weigher: Any, weighed: list[Any]
) -> None:
    weigh = weigher.weigh_objects

    def noted(objects: list[Any], spec: Any) -> Any:
        weighed[:] = objects
        return weigh(objects, spec)

    stack.callback(delattr, weigher, 'weigh_objects')
    weigher.weigh_objects = noted
