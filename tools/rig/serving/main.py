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

"""The accelerator API alone, over HTTP: ``tools/serve-api``.

It is for tests and benchmarks only. There is no Keystone: callers name
themselves in the headers X-User-Id, X-Project-Id, X-Roles and X-Service-Roles.
uWSGI serves it, as in a deployment, but on loopback only.
"""

import argparse
from collections.abc import Sequence
import signal
import sys
from typing import Any

from nova_accel import exceptions
from rig.serving import api as served_api


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until it is interrupted; the URL goes to standard output."""
    arguments = _parse(argv)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with served_api.ServedApi(
            arguments.db,
            processes=arguments.processes,
            address=arguments.address,
            port=arguments.port,
        ) as api:
            print(f'{api.url}/v2', flush=True)
            while True:
                signal.pause()
    except exceptions.ConfigurationError as fault:
        print(fault, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='serve-api',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--port',
        type=int,
        default=0,
        metavar='P',
        help=(
            'the TCP port (default: a free one); what is served, with it, '
            'is the first line of standard output'
        ),
    )
    parser.add_argument(
        '--address',
        default='127.0.0.1',
        metavar='A',
        help='of the loopback (default: 127.0.0.1)',
    )
    parser.add_argument(
        '--db',
        metavar='URL',
        help=(
            'the database, which gets the tables that it lacks (default: a '
            'new SQLite file, which is removed at the end)'
        ),
    )
    parser.add_argument(
        '--processes',
        type=int,
        default=1,
        metavar='N',
        help='that serve requests (default: 1)',
    )
    return parser.parse_args(argv)


def _interrupt(*_arguments: Any) -> None:
    raise KeyboardInterrupt


if __name__ == '__main__':
    sys.exit(main())
