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

"""The parts of a running cloud that other processes use.

Nova's fixtures have its databases in files, but only this process knows which.
Placement is reached by this process alone, too.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import pathlib
from typing import Any

from keystonemiddleware import auth_token
from nova import context as nova_context
from nova import objects
from nova.db.api import api as api_db
from nova.db.main import api as main_db
from oslo_config import cfg
from placement import deploy

from nova_accel.db.sql import engine
from rig.loopback import control_plane
from rig.serving import nova_conf

CONF = cfg.CONF


def placement(fixture: Any) -> Any:
    """The WSGI application of Placement, behind Keystone.

    :param fixture: Nova's, whose Placement takes the user from the token
    """
    application = deploy.loadapp(fixture.conf_fixture.conf)

    def as_the_caller(
        environ: dict[str, Any], start_response: Any
    ) -> Iterable[bytes]:
        environ['HTTP_X_AUTH_TOKEN'] = environ.get('HTTP_X_USER_ID', '')
        answer: Iterable[bytes] = application(environ, start_response)
        return answer

    return auth_token.AuthProtocol(as_the_caller, {'oslo_config_config': CONF})


def write_configuration(cloud: control_plane.ControlPlane) -> pathlib.Path:
    """Write a configuration that nova-accel-manage works with."""
    urls = _name_cells()
    path = cloud.state_path / 'nova-accel-manage.conf'
    path.touch(mode=0o600)
    nova_conf.write(
        path,
        {
            **cloud.sections,
            'api_database': {'connection': _url(api_db.context_manager)},
            'database': {'connection': urls['cell1']},
            'nova_accel_database': {'connection': _url(engine.manager())},
            'placement': nova_conf.credentials(cloud.auth_url, cloud.nova),
        },
    )
    return path


def _name_cells() -> Mapping[str, str]:
    """Have the mappings of cells name their databases, as in a real cloud.

    Nova's fixture has names of its own for them. It knows both from then on.

    :returns: cell -> URL
    """
    known = main_db.create_context_manager.__self__._ctxt_mgrs
    found = {}
    for mapping in objects.CellMappingList.get_all(
        nova_context.get_admin_context()
    ):
        manager = known[mapping.database_connection]
        url = found[mapping.name] = _url(manager)
        known[url] = manager
        mapping.database_connection = url
        mapping.save()
    return found


def _url(manager: Any) -> str:
    url = manager.writer.get_engine().url
    return str(url.render_as_string(hide_password=False))
