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

"""The source distribution, and the wheel that is made of it.

``tools/clean-installation`` installs it with all that it requires.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import fixtures
import testtools
from testtools import matchers

from nova_accel import conf
from nova_accel.testing import database
from rig.serving import nova_conf

_CHECKOUT = pathlib.Path(__file__).parents[2]
_FILES = (
    'LICENSE',
    'MANIFEST.in',
    'README.rst',
    'pyproject.toml',
    'requirements.txt',
    'setup.cfg',
    'setup.py',
)

_VERSION = '1.2.3'

#: Imports all but the fixtures; first what Nova's processes do.
_IMPORT = """
import importlib, pathlib, pkgutil, sys

class Refuses:
    names = {'ddt', 'fixtures', 'gabbi', 'hypothesis', 'oslotest',
             'placement', 'requests_mock', 'stestr', 'testresources',
             'testscenarios', 'testtools', 'wsgi_intercept'}

    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in self.names or name == 'nova.tests':
            raise ModuleNotFoundError(f'{name} is for tests', name=name)

sys.meta_path.insert(0, Refuses())

import nova_accel.api.wsgi
from nova import objects
import os_vif
from oslo_utils import importutils

objects.register_all()
os_vif.initialize()
importutils.import_class('nova.virt.nova_accel.LibvirtDriver')
importutils.import_class(
    'nova_accel.scheduler.candidate_filter.AcceleratorFilter')
importutils.import_class('nova_accel.scheduler.weigher.AcceleratorWeigher')
import nova_accel.scheduler.request_filter
import nova_accel.cmd.manage

from nova_accel.drivers import loading

for point in importlib.metadata.distribution('nova_accel').entry_points:
    point.load()
for module in pkgutil.walk_packages(nova_accel.__path__, 'nova_accel.'):
    if not module.name.startswith(('nova_accel.testing',
                                   'nova_accel.db.migrations.env')):
        importlib.import_module(module.name)
print('imported', pathlib.Path(nova_accel.__file__).parents[1])
"""


class TestWheel(testtools.TestCase):
    def directory(self):
        return pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def source(self):
        """The source distribution.

        It is made of a copy, as a build leaves its files where it is made.
        """
        copy, made = self.directory(), self.directory()
        for name in ('nova_accel', 'etc'):
            shutil.copytree(_CHECKOUT / name, copy / name)
        for name in _FILES:
            shutil.copy(_CHECKOUT / name, copy)
        self.run_python(
            ['-c', f'from pbr import build; build.build_sdist("{made}")'],
            copy,
            PBR_VERSION=_VERSION,
        )
        [path] = made.iterdir()
        return path

    def installed(self):
        """What the wheel has, in a directory of its own.

        It has its version from the source distribution: there is no git.
        """
        site = self.directory()
        self.run_python(
            [
                '-m',
                'pip',
                'install',
                '--no-deps',
                '--no-index',
                '--no-build-isolation',
                '--target',
                str(site),
                str(self.source()),
            ]
        )
        return site

    def run_python(self, arguments, directory=None, **environment):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=directory,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout

    def test_it_needs_nothing_of_the_tests(self):
        site, configuration = self.installed(), self.directory()
        self.useFixture(database.Database())
        nova_conf.write_api(
            configuration, conf.CONF.nova_accel_database.connection
        )
        self.assertEqual(
            {'bin', 'etc', 'nova_accel', f'nova_accel-{_VERSION}.dist-info'},
            {path.name for path in site.iterdir()},
        )
        self.assertIn(
            f'imported {site}',
            self.run_python(
                ['-c', _IMPORT],
                PYTHONPATH=str(site),
                OS_NOVA_CONFIG_DIR=str(configuration),
            ),
        )
        self.has_what_is_no_module(site)

    def has_what_is_no_module(self, site):
        for name in (
            'nova_accel/py.typed',
            'nova_accel/db/migrations/script.py.mako',
            'nova_accel/drivers/catalogue.json',
            'nova_accel/drivers/mig_places.json',
            'nova_accel/overview/templates/fleet_map.html',
            *(
                str(path.relative_to(_CHECKOUT))
                for path in (_CHECKOUT / 'etc').rglob('*')
                if path.is_file() and path.suffix != '.sample'
            ),
        ):
            self.assertThat(str(site / name), matchers.FileExists())
