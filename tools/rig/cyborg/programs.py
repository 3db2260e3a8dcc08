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

"""The programs of the released Cyborg, in an environment of their own."""

import os
import pathlib

from nova_accel import exceptions

_ENVIRONMENT = 'NOVA_ACCEL_CYBORG_VENV'


def is_there() -> bool:
    """Whether the tool that runs this has made the environment."""
    return _ENVIRONMENT in os.environ


def prefix() -> pathlib.Path:
    """Where they are installed.

    :raises ConfigurationError: the environment is not named
    """
    try:
        return pathlib.Path(os.environ[_ENVIRONMENT])
    except KeyError:
        raise exceptions.ConfigurationError(
            f'{_ENVIRONMENT} does not name the environment that has Cyborg; '
            '"tools/bench api --peer" and "tools/test full" do'
        ) from None
