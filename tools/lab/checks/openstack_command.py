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

"""``openstack`` commands, without the second or two that each takes to load.

Each is a process of its own, forked from one that has the command's modules.
"""

import concurrent.futures
import contextlib
import io
import multiprocessing
import os
import sys
from typing import NamedTuple

# What a command loads beside these is its own.
_MODULES = (
    'openstackclient.shell',
    'osc_lib.api.auth',
    'openstackclient.common.clientmanager',
    'openstack.connection',
)

_context = multiprocessing.get_context('forkserver')
_context.set_forkserver_preload(list(_MODULES))


class Result(NamedTuple):
    """What a command leaves behind."""

    returncode: int
    stdout: str
    stderr: str


def run(
    words: tuple[str, ...], environment: dict[str, str], timeout_s: float
) -> Result:
    """Run ``openstack`` with these words.

    :param environment: all of it
    :raises TimeoutError: it has not ended by then; it is left to itself.
    """
    pool = concurrent.futures.ProcessPoolExecutor(1, _context)
    try:
        return pool.submit(_main, words, environment).result(timeout_s)
    finally:
        pool.shutdown(wait=False)


def _main(words: tuple[str, ...], environment: dict[str, str]) -> Result:
    from openstackclient import shell

    sys.argv[:] = ['openstack']
    os.environ.clear()
    os.environ.update(environment)
    with (
        contextlib.redirect_stdout(io.StringIO()) as stdout,
        contextlib.redirect_stderr(io.StringIO()) as stderr,
    ):
        try:
            returncode = shell.main(list(words))
        except SystemExit as end:
            returncode = end.code
    return Result(returncode or 0, stdout.getvalue(), stderr.getvalue())
