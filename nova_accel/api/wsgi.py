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

"""The API in a process pool of its own, without nova-api.

COMPAT clouds need it: there ``POST /servers`` calls this API from inside
nova-api, and a pool that calls itself can run out of workers. It is started
as Nova's own ``nova.wsgi.osapi_compute`` is, for example with
``uwsgi --module nova_accel.api.wsgi``, and reads the same files.

It needs little of Nova, and loads nothing else: see
:mod:`nova_accel.api.compute.nova_setup`.
"""

# Before anything else is imported, as Nova's entry points do.
# ruff: noqa: E402, I001
from nova import monkey_patch

monkey_patch.patch(backend='threading')

import gc
import os
import sys
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
from typing import Any

from nova import middleware
from nova import version
from oslo_log import log as logging
from oslo_reports import guru_meditation_report
from oslo_reports import opts as report_opts
from paste import deploy

from nova_accel import conf
from nova_accel.api.middleware import clean_path
from nova_accel.api.compute import nova_setup
from nova_accel.api.middleware import whole_body
from nova_accel.api.notifications import notifier

CONF = conf.CONF

#: The composite of ``api-paste.ini`` that is served.
NAME = 'nova_accel'


def init_application() -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    """The application, from the files that ``OS_NOVA_CONFIG_DIR`` and
    ``OS_NOVA_CONFIG_FILES`` name, as for nova-api.

    :raises ConfigurationError: the database is not configured.
    """
    directory = os.environ.get('OS_NOVA_CONFIG_DIR', '/etc/nova')
    names = os.environ.get('OS_NOVA_CONFIG_FILES') or 'api-paste.ini;nova.conf'
    files = [os.path.join(directory, name) for name in names.split(';')]
    _configure(files)
    # Paste's urlmap, which the file names first, fails for "GET *".
    return clean_path.CleanPath(
        deploy.loadapp(f'config:{files[0]}', name=NAME)
    )


def _configure(files: Sequence[str]) -> None:
    """Read the files, and set up what Nova sets up for all its services.

    It is what ``nova.config.parse_args`` does, but Nova's RPC and databases
    wait for a request that needs them, unless notifications are sent.
    """
    logging.register_options(CONF)
    middleware.set_defaults()
    CONF(
        sys.argv[1:],
        project='nova',
        prog='nova-accel-api',
        version=version.version_string(),
        default_config_files=files,
    )
    if notifier.is_format_sent():
        nova_setup.ensure()
    logging.setup(CONF, 'nova')
    report_opts.set_defaults(CONF)
    guru_meditation_report.TextGuruMeditation.setup_autorun(
        version, conf=CONF, service_name=NAME
    )


application = whole_body.wrapped(init_application())

# The objects that exist by now stay. Forked processes then need not scan them
# in each collection, and keep sharing their memory.
gc.collect()
gc.freeze()
