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

"""Start the programs, which need the extra ``services``.

An administrator's machine may have the client alone, and the programs all the
same. There each says what to install.
"""

import importlib


def manage() -> int:
    """``nova-accel-manage``

    :returns: the exit status
    :raises SystemExit: the services' requirements are not installed
    """
    return _run('manage')


def status() -> int:
    """``nova-accel-status``

    :returns: the exit status
    :raises SystemExit: the services' requirements are not installed
    """
    return _run('status')


def _run(name: str) -> int:
    try:
        program = importlib.import_module(f'nova_accel.cmd.{name}')
    except ModuleNotFoundError as error:
        raise SystemExit(
            f'nova-accel-{name} needs "{error.name}", which this machine '
            'lacks. Run it where Nova\'s services run, or install '
            'nova-accel[services].'
        ) from None
    exit_status: int = program.main()
    return exit_status
