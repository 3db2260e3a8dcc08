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

"""Our section in the guru meditation report of Nova's services.

A service writes that report when somebody sends it SIGUSR2, often because it
hangs. The section is made in the signal's handler. So what it tells comes from
memory alone, and nothing may wait there for a lock or for a database.
"""

from collections.abc import Callable
from collections.abc import Mapping
import functools
from typing import Any

from oslo_reports import guru_meditation_report
from oslo_reports.models import with_default_views

TITLE = 'Accelerators (nova_accel)'

_Facts = Callable[[], Mapping[str, Any]]

_FACTS: dict[str, _Facts] = {}


def add_section(title: str, facts: _Facts) -> None:
    """Put a section into the reports of this process.

    A further section of the same title replaces the one before.

    :param facts: gives what the section tells, as plain values; it must not
        wait
    """
    if title not in _FACTS:
        guru_meditation_report.TextGuruMeditation.register_section(
            title, functools.partial(_section, title)
        )
    _FACTS[title] = facts


def _section(title: str) -> with_default_views.ModelWithDefaultViews:
    try:
        told = dict(_FACTS[title]())
    except Exception as fault:
        # The rest of the report is Nova's, and is needed now.
        told = {'error': f'{type(fault).__name__}: {fault}'}
    return with_default_views.ModelWithDefaultViews(told)
