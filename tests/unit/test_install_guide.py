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

"""The files that the installation guide shows, and that the lab runs with."""

import configparser
import pathlib

import ddt
from nova.api.openstack import wsgi_app
from nova.conf import CONF as NOVA_CONF
from oslo_config import cfg
from oslotest import base
from placement import conf as placement_conf

from nova_accel import conf  # noqa: F401  (registers options of ours)

_CHECKOUT = pathlib.Path(__file__).parents[2]

_GUIDE = _CHECKOUT / 'doc/source/install/snippets'

_INSTALLED = _CHECKOUT / 'etc/nova_accel'

_PASTE = _INSTALLED / 'api-paste.ini'


def _placement() -> cfg.ConfigOpts:
    options = cfg.ConfigOpts()
    placement_conf.register_opts(options)
    return options


def _read(path: pathlib.Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(
        strict=False, default_section='no section has defaults'
    )
    parser.read(path)
    return parser


@ddt.ddt
class InstallGuideTestCase(base.BaseTestCase):
    @ddt.data(*sorted(path.name for path in _GUIDE.glob('*.conf')))
    def test_options_exist(self, name):
        options = _placement() if name == 'placement.conf' else NOVA_CONF
        # Credentials are options of the plugin that auth_type names.
        credentials = {
            'auth_url',
            'username',
            'password',
            'project_name',
            'user_domain_name',
            'project_domain_name',
        }
        file = _read(_GUIDE / name)
        found = [
            (section, option)
            for section in file.sections()
            for option in file.options(section)
        ]
        self.assertTrue(found)
        for section, option in found:
            if section != 'nova_accel_client' or option not in credentials:
                group = options if section == 'DEFAULT' else options[section]
                self.assertIn(option, group)

    @ddt.data(_GUIDE / 'nova-api.ini', _INSTALLED / 'nova-accel-api-uwsgi.ini')
    def test_wsgi_server_names_the_paste_file(self, path):
        """Nova takes the first file; [wsgi] api_paste_config is not read."""
        variable, _, value = _read(path)['uwsgi']['env'].partition('=')
        files = wsgi_app._get_config_files({variable: value})
        self.assertEqual(
            ['/etc/nova_accel/api-paste.ini', '/etc/nova/nova.conf'], files
        )

    def test_paste_file_has_both_applications(self):
        sections = _read(_PASTE).sections()
        self.assertIn('composite:osapi_compute', sections)
        self.assertIn('composite:nova_accel', sections)
