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

"""Shows nova_accel at work, with no accelerator, no cloud and no root.

It runs nova-api, nova-scheduler, nova-conductor, nova-compute over a simulated
host, Placement and the accelerator API. All are in one process, on loopback,
with an operator's configuration. Keystone and Glance are stubs. Each result is
compared with the one that the simulated hardware must give.
"""

import argparse
from collections.abc import Sequence
import contextlib
import logging
import signal
import sys
import tempfile
from typing import Any
import warnings

from rig.quickstart import report as quickstart_report

_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the quickstart.

    :returns: 0 if all results are as expected, 1 if one is not, 2 if a step
        failed
    """
    arguments = _parse(argv)
    report = quickstart_report.Report(arguments.json)
    # eventlet warns while Nova is imported, so the imports have to come later.
    warnings.simplefilter('ignore')
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from rig.quickstart import cloud as quickstart_cloud
    from rig.quickstart import scenario

    cloud = quickstart_cloud.QuickstartCloud(arguments.port)
    status = _INTERRUPTED
    try:
        status = _run(cloud, report)
        if arguments.keep and status == 0:
            cloud.keep(report, scenario.TWO_GROUPS)
    except KeyboardInterrupt:
        report.text('interrupted')
    finally:
        # Otherwise Nova would log to the terminal from here on.
        logging.disable()
        cloud.doCleanups()
    return status


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='quickstart',
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        '--keep',
        action='store_true',
        help=(
            'then leave the cloud running for the openstack client, until '
            'it is interrupted'
        ),
    )
    parser.add_argument(
        '--json',
        action='store_true',
        help=(
            'print one JSON document on standard output, and the progress '
            'on standard error'
        ),
    )
    parser.add_argument(
        '--port',
        type=int,
        default=0,
        metavar='N',
        help='the port on 127.0.0.1 to listen on (default: a free one)',
    )
    return parser.parse_args(argv)


def _run(cloud: Any, report: quickstart_report.Report) -> int:
    from rig.quickstart import scenario

    # Nova's fixtures replace the temporary directory, and remove their own.
    temporary = tempfile.gettempdir()
    failure = None
    try:
        with report.busy('starting the services'):
            cloud.setUp()
        scenario.Scenario(cloud, report).run()
    except Exception as error:
        failure = error
    log = None
    if failure is not None or report.differences:
        log = _save_log(cloud, temporary)
    report.finish(failure, log)
    return 2 if failure is not None else 1 if report.differences else 0


def _save_log(cloud: Any, directory: str) -> str:
    """Write Nova's log to a file that stays.

    :returns: its path
    """
    text = ''
    with contextlib.suppress(AttributeError):
        text = cloud.stdlog.logger.output
    with tempfile.NamedTemporaryFile(
        'w',
        dir=directory,
        prefix='nova-accel-quickstart-',
        suffix='.log',
        delete=False,
    ) as file:
        file.write(text)
    return file.name


if __name__ == '__main__':
    sys.exit(main())
