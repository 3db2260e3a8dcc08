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

"""``[nova_accel_client]``: how compute hosts reach the accelerator API."""

from keystoneauth1 import loading as ks_loading
from nova.conf import utils as confutils
from oslo_config import cfg

GROUP = cfg.OptGroup(
    'nova_accel_client',
    title='Client of the accelerator API',
    help=(
        'How nova-compute reaches the accelerator API. It needs the '
        'credentials of a user with the service role; auth_section may name '
        'another group that has them, for example service_user. The other '
        'options say where the service catalogue has the API.'
    ),
)

SERVICE_TYPE = 'accelerator'

#: Seconds after which an unanswered call counts as failed.
TIMEOUT_S = 30

#: All calls are idempotent, so they can be repeated after a lost answer.
RETRIES = 3


_DEFAULTS = {
    'timeout': TIMEOUT_S,
    'connect_retries': RETRIES,
    'status_code_retries': RETRIES,
}


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_group(GROUP)
    confutils.register_ksa_opts(conf, GROUP, SERVICE_TYPE)
    for option, default in _DEFAULTS.items():
        conf.set_default(option, default, GROUP.name)


def list_opts() -> dict[str, list[cfg.Opt]]:
    options = (
        ks_loading.get_session_conf_options()
        + ks_loading.get_auth_common_conf_options()
        + ks_loading.get_auth_plugin_conf_options('v3password')
        + ks_loading.get_auth_plugin_conf_options('v3applicationcredential')
        + confutils.get_ksa_adapter_opts(SERVICE_TYPE)
    )
    cfg.set_defaults(options, **_DEFAULTS)
    # The two kinds of credentials have most options in common.
    return {GROUP.name: [*{each.dest: each for each in options}.values()]}
