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
"""Counts what the parts of tools/test left in a directory.

``<part>.subunit`` holds a part's tests, ``<part>.status`` its exit status, and
``checks`` one line ``<exit status> <name>`` for each check that is no test,
``skipped`` one line ``<part>: <reason>`` for each part that is skipped. Lists
failures, with the end of each traceback, and skips; the last line is ``N
passed, N failed, N skipped``. Exits with 1 when something failed or nothing
ran.
"""

from collections.abc import Iterator
import pathlib
import sys
from typing import Any

import subunit
import testtools

OUTCOMES = {
    'success': 'passed',
    'xfail': 'passed',
    'skip': 'skipped',
    'fail': 'failed',
    'uxsuccess': 'failed',
    # Begun and never ended: its worker died.
    'inprogress': 'failed',
}

#: Lines of a traceback that are shown once more.
TRACEBACK_LINES = 15


def read_tests(stream: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    """The (outcome, test id, why) of each test in a stream."""
    tests: list[dict[str, Any]] = []
    result = testtools.StreamToDict(tests.append)
    result.startTestRun()
    with stream.open('rb') as source:
        subunit.ByteStreamToStreamResult(
            source, non_subunit_name='stdout'
        ).run(result)
    result.stopTestRun()
    for test in tests:
        outcome = OUTCOMES.get(test['status'])
        if outcome:
            yield outcome, test['id'], why(test['details'])


def why(details: dict[str, Any]) -> str:
    """The reason of a skip, or the end of the tracebacks."""
    if 'reason' in details:
        return details['reason'].as_text().strip()
    return '\n'.join(
        line
        for name, content in details.items()
        if name.startswith('traceback')
        for line in content.as_text().splitlines()[-TRACEBACK_LINES:]
    )


def read_part(status: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    stream = status.with_suffix('.subunit')
    results = list(read_tests(stream)) if stream.exists() else []
    yield from results
    code = int(status.read_text())
    if code and not any(outcome == 'failed' for outcome, _, _ in results):
        yield 'failed', f'{status.stem}: ended with status {code}', ''


def read_checks(checks: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    for line in checks.read_text().splitlines():
        code, name = line.split(maxsplit=1)
        yield 'failed' if int(code) else 'passed', name, ''


def read_skipped(skipped: pathlib.Path) -> Iterator[tuple[str, str, str]]:
    for line in skipped.read_text().splitlines():
        part, reason = line.split(': ', maxsplit=1)
        yield 'skipped', part, reason


def main(directory: str) -> int:
    root = pathlib.Path(directory)
    results = []
    for status in sorted(root.glob('*.status')):
        results.extend(read_part(status))
    if (root / 'checks').exists():
        results.extend(read_checks(root / 'checks'))
    if (root / 'skipped').exists():
        results.extend(read_skipped(root / 'skipped'))
    print()
    for outcome, name, reason in results:
        if outcome == 'failed':
            print(f'failed: {name}\n{reason}'.rstrip())
    for outcome, name, reason in results:
        if outcome == 'skipped':
            print(f'skipped: {name}: {reason}')
    passed, failed, skipped = (
        sum(outcome == kind for outcome, _, _ in results)
        for kind in ('passed', 'failed', 'skipped')
    )
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    return 1 if failed or not passed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
