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

"""The cost of telling how many servers could start."""

import functools
from typing import Any

import webob

from nova_accel.api import app
from nova_accel.api.middleware import context
from rig.benchmark import calls
from rig.benchmark import turns


def figures(profile: str, rounds: int) -> dict[str, Any]:
    """The costs of an answer, without HTTP, tokens and quotas.

    ``availability_ms`` is CPU time: for a reader, who learns a range, and for
    an admin, who learns the hosts.

    :param profile: the name of the device profile
    :param rounds: how often each is measured; the median counts
    """
    api = context.Context(app.factory({}))
    subjects = {
        role: functools.partial(_ask, api, profile, role)
        for role in ('reader', 'admin')
    }
    seconds = turns.medians(subjects, rounds)
    with calls.counted() as counted:
        subjects['admin']()
    return {
        'availability_ms': {
            role: round(found * 1e3, 2) for role, found in seconds.items()
        },
        'availability_statements': counted.statements,
    }


def _ask(api: Any, profile: str, role: str) -> None:
    request = webob.Request.blank(
        f'/device_profiles/{profile}/availability',
        base_url='http://api/accelerator/v2',
        headers={'OpenStack-API-Version': 'accelerator 2.5'},
    )
    request.environ.update(
        {
            'HTTP_X_USER_ID': 'user',
            'HTTP_X_PROJECT_ID': 'project',
            'HTTP_X_ROLES': role if role == 'reader' else f'{role},reader',
        }
    )
    answer = request.get_response(api)
    if answer.status_int != 200:
        raise RuntimeError(answer.text)
