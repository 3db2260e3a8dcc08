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

"""Why other services refuse this host: who is the culprit, and the cure.

The texts are for administrators.
"""

import json
from typing import Any

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading as ks_loading
from oslo_config import cfg

from nova_accel import conf
from nova_accel.conf import client as client_conf

CONF = conf.CONF

_GROUP = client_conf.GROUP.name


def unusable_options(error: ks_exceptions.AuthPluginException) -> str:
    """Why no credentials can be made of ``[nova_accel_client]``."""
    match error:
        case ks_exceptions.NoMatchingPlugin():
            known = ', '.join(sorted(ks_loading.get_available_plugin_names()))
            return (
                f'[{_GROUP}] auth_type = {error.name} does not exist: set it '
                f'to password, or another one of {known}'
            )
        case ks_exceptions.MissingRequiredOptions():
            return f'[{_GROUP}]: {error}'
        case _:
            return f'[{_GROUP}] has no usable credentials: {error}'


def unreachable(error: ks_exceptions.ClientException) -> str:
    """Why there is no answer of the accelerator API at all."""
    match error:
        case ks_exceptions.Unauthorized():
            return (
                f'Keystone refuses {_user()} (401): correct username, '
                'password, project and domains there'
            )
        case _:
            return f'the accelerator API cannot be reached: {error}'


def answered(response: Any) -> str:
    """The accelerator API's answer, with its reason and the cure."""
    text = (
        f'the accelerator API answered {response.status_code} to '
        f'{response.request.method} {response.url}'
    )
    return ': '.join(filter(None, [text, _cure(response)]))


def _cure(response: Any) -> str:
    match response.status_code:
        case 401:
            return (
                f'it does not accept the token of {_user()}. Its '
                '[keystone_authtoken] has to name the same Keystone, and a '
                'user of its own that may log in'
            )
        case 403:
            reason = _reason(response)
            return (
                f'{reason}. Give that role to {_user()}'
                if reason
                else f'{_user()} may lack the role service'
            )
        case _:
            return _reason(response)


def _reason(response: Any) -> str:
    """The API's own words; none if something else has answered."""
    try:
        return str(json.loads(response.json()['error_message'])['faultstring'])
    except (ValueError, KeyError, TypeError):
        return ''


def _user() -> str:
    section = CONF[_GROUP].auth_section or _GROUP
    try:
        name = CONF[section].username
    except cfg.Error:
        # Another kind of credentials has no name of a user.
        name = None
    return f'the user {f"{name} " if name else ""}of [{section}]'
