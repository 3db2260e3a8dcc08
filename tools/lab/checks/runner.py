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

"""Runs checks, and shows what they found."""

import contextlib
import importlib
import pathlib
import re
import time
import traceback

from lab import processes
from lab import settings
from lab.checks import leftovers
from lab.checks import registry
from lab.checks import suite_hosts

#: The modules of each suite, in the order of their checks.
_MODULES = {
    'e2e': (
        'libvirt',
        'control_plane',
        'publishing',
        'boots',
        'bad_input',
        'parallel',
        'failures',
        'hosts',
    ),
    'devices': ('devices',),
    'fpga': ('fpga',),
    'operations': ('operations', 'taken_over'),
    'moves': ('moves',),
    'manual': ('manual',),
    'latency': ('latency',),
    'topology': ('topology',),
}

#: Suites that need no control plane, and leave nothing in one.
WITHOUT_CLOUD = frozenset({'topology'})


def run(
    suite: str, regex: str, quick: bool, results: pathlib.Path | None
) -> int:
    """Run the checks of a suite.

    :param regex: only those whose names it matches
    :param quick: leave the long ones out
    :param results: a file to append a line for each check to
    :returns: 0 if all have passed, else 1
    """
    for module in _MODULES[suite]:
        importlib.import_module(f'lab.checks.{module}')
    wanted = [
        check
        for check in registry.CHECKS
        if check.suite == suite and re.search(regex, check.name)
    ]
    chosen = [check for check in wanted if check.quick or not quick]
    report = _Report(settings.LOGS / f'{suite}.txt')
    failed = 0
    with (
        contextlib.nullcontext()
        if suite in WITHOUT_CLOUD
        else suite_hosts.only_of(suite)
    ):
        for check in chosen:
            passed = _run_one(check, report)
            failed += not passed
            if results is not None:
                with results.open('a') as lines:
                    lines.write(
                        f'{int(not passed)} lab {suite}: {check.name}\n'
                    )
    for check in wanted:
        if check not in chosen:
            report.line(f'LEFT OUT {check.name}')
    report.line(
        f'{len(chosen) - failed} passed, {failed} failed, '
        f'{len(wanted) - len(chosen)} left out'
    )
    return int(failed > 0 or not chosen)


def _run_one(check: registry.Check, report: '_Report') -> bool:
    evidence: list[str] = []
    begin = time.monotonic()
    try:
        check.function(evidence.append)
        if check.suite not in WITHOUT_CLOUD:
            leftovers.check()
    except (registry.Failed, processes.LabError) as error:
        failure = str(error)
    except Exception:
        failure = traceback.format_exc()
    else:
        failure = ''
    report.line(
        f'{"FAIL" if failure else "PASS"} {check.name} '
        f'({time.monotonic() - begin:.1f} s)'
    )
    for line in '\n'.join([*evidence, failure]).splitlines():
        report.line(f'     {line}')
    return not failure


class _Report:
    """What is shown, and kept in a file."""

    def __init__(self, path: pathlib.Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        path.write_text('')

    def line(self, text: str) -> None:
        print(text, flush=True)
        with self._path.open('a') as file:
            file.write(f'{text}\n')
