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

"""Runs the API tests of cyborg-tempest-plugin by Tempest.

They ask the accelerator API in uWSGI, with the tokens of a stub of Keystone.
"""

import argparse
from collections.abc import Sequence
import pathlib
import subprocess
import sys
import tempfile

from rig.tempest import cloud as tempest_cloud

_TEMPEST, _STESTR = (
    pathlib.Path(sys.executable).with_name(name)
    for name in ('tempest', 'stestr')
)

_TESTS = r'^cyborg_tempest_plugin\.tests\.api\.'


def main(argv: Sequence[str] | None = None) -> int:
    """:returns: 0 if no test failed, also if none matches the expression"""
    arguments = _parse(argv)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        with tempest_cloud.TempestCloud(
            directory, arguments.new_defaults
        ) as cloud:
            command = [
                _TEMPEST,
                'run',
                '--config-file',
                cloud.tempest_conf,
                '--regex',
                f'{_TESTS}.*({arguments.regex})',
                '--exclude-list',
                arguments.exclude_list.absolute(),
            ]
            status = subprocess.run(
                [*command, '--serial'], cwd=directory, check=False
            ).returncode
        if status and not _lists_any(command, directory):
            return 0
        if arguments.subunit:
            with arguments.subunit.open('wb') as stream:
                subprocess.run(
                    [_STESTR, 'last', '--subunit'],
                    cwd=directory,
                    stdout=stream,
                    check=True,
                )
    return status


def _lists_any(
    command: Sequence[str | pathlib.Path], directory: pathlib.Path
) -> bool:
    """Whether the command has any test to run, or cannot list them."""
    listed = subprocess.run(
        [*command, '--list-tests'],
        cwd=directory,
        stdout=subprocess.PIPE,
        check=False,
    )
    return bool(listed.returncode or listed.stdout.strip())


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='run-tempest',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--new-defaults',
        action='store_true',
        help=(
            "with oslo.policy's new defaults and scopes enforced, and a "
            'token of the least role for each call'
        ),
    )
    parser.add_argument(
        '--exclude-list',
        type=pathlib.Path,
        required=True,
        metavar='FILE',
        help='a file with expressions: tests that are left out',
    )
    parser.add_argument(
        '--subunit',
        type=pathlib.Path,
        metavar='FILE',
        help='where the results go, as a stream of subunit',
    )
    parser.add_argument(
        'regex',
        nargs='?',
        default='',
        metavar='REGEX',
        help='only tests whose names have it',
    )
    return parser.parse_args(argv)


if __name__ == '__main__':
    sys.exit(main())
