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

"""The cost of the choice between the device profiles of a flavor."""

import functools
from typing import Any

import fixtures
from nova import context as nova_context

from nova_accel.db import device_profile as device_profile_db
from nova_accel.scheduler import candidates
from nova_accel.scheduler import known_stock
from nova_accel.scheduler import request_filter
from rig.benchmark import turns

#: How many requests make the choice.
_REQUESTS = 300

#: No host has so many free at once, although each has enough for a group.
_TWICE = 'twice'


def figures(cloud: Any, rounds: int) -> dict[str, Any]:
    """The costs in a cloud, all of whose devices are free.

    ``alternatives_ms`` is CPU time of the request filter that adds the groups,
    with its statements: for a flavor with one profile, for one whose first
    profile can be served, and for one whose first profile no host can serve.
    ``alternatives_questions`` says of how many of 300 requests of the last one
    Placement was asked before Nova asks it.

    :param cloud: a :class:`rig.benchmark.scheduler_cloud.SchedulerCloud` that
        is set up
    :param rounds: how often each is measured; the median counts
    """
    group = {'resources:CUSTOM_QAT': str(cloud.DEVICES)}
    device_profile_db.create(_TWICE, [group, group])
    questions: list[Any] = []
    ask = candidates.ask_all

    def note(*arguments: Any) -> Any:
        questions.append(arguments)
        return ask(*arguments)

    subjects = {
        name: functools.partial(_merge, cloud, profiles)
        for name, profiles in (
            ('one', cloud.PROFILE),
            ('first', f'{cloud.PROFILE},{_TWICE}'),
            ('second', f'{_TWICE},{cloud.PROFILE}'),
        )
    }
    with fixtures.MonkeyPatch('nova_accel.scheduler.candidates.ask_all', note):
        for _request in range(_REQUESTS):
            subjects['second']()
    seconds = turns.medians(subjects, rounds)
    return {
        'alternatives_ms': {
            name: round(found * 1e3, 2) for name, found in seconds.items()
        },
        'alternatives_questions': len(questions),
    }


def _merge(cloud: Any, profiles: str) -> None:
    """Have the groups of a request added, which claims nothing afterwards."""
    spec = cloud.request(profiles)
    request_filter.merge_device_profile(nova_context.get_admin_context(), spec)
    known = known_stock.current()
    if known is not None:
        known.promises.end(spec.instance_uuid)
