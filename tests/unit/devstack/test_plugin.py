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

"""The DevStack plugin: the files that it writes, read by those who need them.

``double.sh`` stands for DevStack. With ``DEVSTACK_DIR``, a checkout of
DevStack, the files are written by DevStack's own functions.
"""

import configparser
import json
import os
import pathlib
import re
import subprocess
import sys

import fixtures
import testtools

_CHECKOUT = pathlib.Path(__file__).parents[3]

_PLUGIN = _CHECKOUT / 'devstack'

_GUIDE = _CHECKOUT / 'doc/source/install/snippets'

_DOUBLE = pathlib.Path(__file__).with_name('double.sh')

_MANAGE, _STATUS = (
    pathlib.Path(sys.executable).with_name(name)
    for name in ('nova-accel-manage', 'nova-accel-status')
)

#: What differs from cloud to cloud.
_EXAMPLES = {
    'auth_url',
    'connection',
    'device_spec',
    'enabled_filters',
    'password',
    'state_path',
}

#: A file of the installation guide -> where the plugin writes the same.
_FILES = {
    'nova-scheduler.conf': '.nova/nova.conf',
    'nova-scheduler-compat.conf': '.nova/nova.conf',
    'nova-compute.conf': '.nova/nova.conf',
    'nova-database.conf': 'nova_accel/database.conf',
    'placement.conf': 'placement.conf',
}

_SPECS = (
    '{"vendor_id": "8086", "product_id": "37c9", "driver": "qat"}',
    '{"address": "0000:3b:00.*", "driver": "nvidia_gpu"}',
)

#: A service of Nova that has read its configuration.
_SERVICE = """
import json, sys

from keystoneauth1 import loading
from nova import config

from nova_accel import conf
from nova_accel.model.devices import device_spec

sys.argv[0] = PROGRAM
config.parse_args([PROGRAM, *ARGUMENTS], configure_db=False, init_rpc=False)
conf = conf.CONF
print(json.dumps({
    'database': conf.nova_accel_database.connection,
    'driver': conf.compute_driver,
    'lines': conf.nova_accel.device_spec,
    'drivers': [
        spec.driver for spec in device_spec.parse(
            conf.nova_accel.device_spec, ['nvidia_gpu', 'qat'])
    ],
    'filters': conf.filter_scheduler.enabled_filters,
    'user': loading.load_auth_from_conf_options(
        conf, 'nova_accel_client').get_cache_id_elements()['username'],
    'interfaces': conf.nova_accel_client.valid_interfaces,
    'cyborg': conf.nova_accel.cyborg_compatible,
}))
"""

#: The pool, which has its paste file and its policy loaded.
_POOL = """
import json, logging

from nova_accel.api import wsgi

print(json.dumps({'database': wsgi.CONF.nova_accel_database.connection}))
"""


class PluginTestCase(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.home = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.nova = self.home / '.nova'
        self.environment = {
            **os.environ,
            'HOME': str(self.home),
            'NOVA_BIN_DIR': str(pathlib.Path(sys.executable).parent),
        }
        self.bash('write_devstacks_files')

    def bash(self, script: str, **environment: str) -> str:
        """What it prints, as DevStack runs the plugin's scripts."""
        done = subprocess.run(
            ['bash', '-e', '-c', f'source {_DOUBLE}; {script}'],
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stdout)
        return done.stdout

    def stack(self, **environment: str) -> None:
        phases = 'pre-install install post-config extra test-config'
        self.bash(f'devstack {_PLUGIN} stack {phases}', **environment)

    def calls(self) -> list[str]:
        """What the plugin has asked DevStack for, in this order."""
        path = self.home / 'calls'
        return path.read_text().splitlines() if path.exists() else []

    def python(self, script: str, **environment: str) -> dict[str, object]:
        done = subprocess.run(
            [sys.executable, '-c', script],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def service(self, program: str, file: pathlib.Path) -> dict[str, object]:
        """What a service says of the configuration that it has read."""
        arguments = ['--config-file', str(file)]
        return self.python(
            f'PROGRAM, ARGUMENTS = {program!r}, {arguments!r}\n{_SERVICE}'
        )


class TestStack(PluginTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.stack(NOVA_ACCEL_DEVICE_SPEC='\n'.join(_SPECS))
        self.database = f'sqlite:///{self.home}/nova_accel.sqlite'

    def test_written(self) -> None:
        self.calls_are_right()
        self.scheduler()
        self.compute()
        self.pool()
        self.api()
        self.status_finds_what_it_looks_for()
        self.an_operator_needs_to_name_no_file()

    def status_finds_what_it_looks_for(self) -> None:
        done = subprocess.run(
            [
                _STATUS,
                '--config-file',
                self.nova / 'nova.conf',
                '--placement-config',
                self.home / 'placement.conf',
                'upgrade',
                'check',
                '--json',
            ],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        results = {
            check['check']: check['result']
            for check in json.loads(done.stdout)['checks']
        }
        for name in (
            'Database of accelerators',
            'Filter and weigher of nova-scheduler',
            'Allocation candidates of Placement',
        ):
            self.assertEqual(0, results[name], (name, done.stdout))

    def scheduler(self) -> None:
        found = self.service('nova-scheduler', self.nova / 'nova.conf')
        self.assertEqual(self.database, found['database'])
        self.assertEqual(
            ['ComputeFilter', 'SameHostFilter', 'AcceleratorFilter'],
            found['filters'],
        )
        self.assertFalse(found['cyborg'])

    def compute(self) -> None:
        """It gets no access to the database, as DevStack copies nova.conf."""
        found = self.service('nova-compute', self.nova / 'nova.conf')
        self.assertIsNone(found['database'])
        self.assertEqual('nova_accel.LibvirtDriver', found['driver'])
        self.assertCountEqual(_SPECS, found['lines'])
        self.assertCountEqual(['qat', 'nvidia_gpu'], found['drivers'])
        self.assertEqual('nova', found['user'])
        self.assertEqual(['internal'], found['interfaces'])
        self.assertEqual(
            (
                _CHECKOUT / 'etc/nova_accel/rootwrap.d/nova_accel.filters'
            ).read_text(),
            (self.nova / 'rootwrap.d/nova_accel.filters').read_text(),
        )

    def pool(self) -> None:
        installed, written = (
            self.uwsgi(path)
            for path in (
                _CHECKOUT / 'etc/nova_accel/nova-accel-api-uwsgi.ini',
                self.home / 'nova_accel/nova-accel-api-uwsgi.ini',
            )
        )
        variable, _, files = written.pop('env').partition('=')
        sockets = self.home / 'nova_accel/sockets'
        del installed['env']
        self.assertEqual(
            {
                **installed,
                'http': '0.0.0.0:6666',
                'sockets': str(sockets),
                'processes': '3',
                'plugins': 'http,fastrouter,python3',
            },
            written,
        )
        self.assertEqual(0o700, sockets.stat().st_mode & 0o777)
        found = self.python(
            _POOL, OS_NOVA_CONFIG_DIR=str(self.nova), **{variable: files}
        )
        self.assertEqual(self.database, found['database'])

    def api(self) -> None:
        files = self.uwsgi(self.nova / 'nova-api-uwsgi.ini')['env']
        self.assertEqual(
            self.uwsgi(self.home / 'nova_accel/nova-accel-api-uwsgi.ini')[
                'env'
            ],
            files,
        )
        paste = pathlib.Path(files.partition('=')[2].split(';')[0])
        self.assertEqual(
            (_CHECKOUT / 'etc/nova_accel/api-paste.ini').read_text(),
            paste.read_text(),
        )

    def uwsgi(self, path: pathlib.Path) -> dict[str, str]:
        parser = configparser.RawConfigParser()
        parser.read(path)
        return dict(parser['uwsgi'])

    def calls_are_right(self) -> None:
        accelerator = 'http://192.0.2.1/compute/accelerator/v2'
        self.assertEqual(
            [
                f'setup_develop {_CHECKOUT} services',
                'async_wait configure_neutron_nova',
                'recreate_database nova_accel',
                'service nova-accel accelerator Accelerators of Nova',
                'endpoint accelerator RegionOne '
                f'{accelerator} {accelerator} '
                'http://192.0.2.1:6666/accelerator/v2',
                'run_process nova-accel-api /usr/bin/uwsgi --procname-prefix '
                f'nova-accel-api --ini {self.home}/nova_accel/'
                'nova-accel-api-uwsgi.ini',
                'wait_for_service 60 http://192.0.2.1:6666/accelerator',
            ],
            self.calls(),
        )

    def an_operator_needs_to_name_no_file(self) -> None:
        done = subprocess.run(
            [_MANAGE, 'db', 'version'],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertRegex(
            done.stdout, r'^\w+ \(the tables of this release\)\n$'
        )

    def test_once_more(self) -> None:
        """DevStack makes its own files anew, others it leaves."""
        (self.nova / 'nova.conf').unlink()
        (self.nova / 'nova-api-uwsgi.ini').unlink()
        before = self.written()
        self.bash('write_devstacks_files')
        self.stack(NOVA_ACCEL_DEVICE_SPEC='\n'.join(_SPECS))
        after = self.written()
        for path, text in before.items():
            self.assertEqual(text, after[path], path)
        self.clean()

    def written(self) -> dict[pathlib.Path, str]:
        return {
            path: path.read_text()
            for path in self.home.rglob('*')
            if path.suffix in ('.conf', '.ini', '.filters')
        }

    def clean(self) -> None:
        self.bash(f'devstack {_PLUGIN} unstack; devstack {_PLUGIN} clean')
        self.assertEqual('stop_process nova-accel-api', self.calls()[-1])
        self.assertFalse((self.home / 'nova_accel').exists())
        self.assertEqual([], [*self.nova.glob('*.conf.d/*')])


class TestGuide(PluginTestCase):
    def test_it_is_followed(self) -> None:
        """The plugin does what the guide tells an operator to do."""
        self.stack(
            NOVA_ACCEL_DEVICE_SPEC=_SPECS[0],
            NOVA_ACCEL_CYBORG_COMPATIBLE='True',
        )
        for snippet, written in _FILES.items():
            wanted = _options((_GUIDE / snippet).read_text())
            found = _options((self.home / written).read_text())
            for name, values in wanted.items():
                self.assertIn(name, found, snippet)
                if name[1] not in _EXAMPLES:
                    self.assertEqual(
                        [each.lower() for each in values],
                        [each.lower() for each in found[name]],
                        (snippet, name),
                    )


class TestOneHostOfMany(PluginTestCase):
    def test_compute_alone(self) -> None:
        """The devices are told, and nothing of the control plane is there."""
        self.stack(
            ENABLED_SERVICES='n-cpu',
            DISABLED_SERVICES='nova-accel-api',
            NOVA_ACCEL_DEVICE_SPEC=_SPECS[0],
        )
        found = self.service('nova-compute', self.nova / 'nova.conf')
        self.assertEqual([_SPECS[0]], found['lines'])
        self.assertEqual(['ComputeFilter', 'SameHostFilter'], found['filters'])
        self.assertEqual(
            ['async_wait configure_neutron_nova'], self.calls()[1:]
        )

    def test_another_hypervisor(self) -> None:
        self.assert_refused(
            'works with VIRT_DRIVER=libvirt alone, and it is fake',
            VIRT_DRIVER='fake',
        )

    def test_beside_cyborg(self) -> None:
        self.assert_refused(
            'remove the plugin of one of them',
            ENABLED_SERVICES='n-api,cyborg',
        )

    def assert_refused(self, text: str, **environment: str) -> None:
        error = self.assertRaises(
            testtools.TestCase.failureException, self.stack, **environment
        )
        self.assertIn(text, re.sub(r'\s+', ' ', str(error)))
        self.assertEqual([], self.calls())


def _options(text: str) -> dict[tuple[str, str], list[str]]:
    """(section, option) -> its values, which may be several."""
    found: dict[tuple[str, str], list[str]] = {}
    section = ''
    for line in text.splitlines():
        if line.startswith('['):
            section = line.strip('[]')
        elif '=' in line:
            option, _, value = line.partition('=')
            found.setdefault((section, option.strip()), []).append(
                value.strip()
            )
    return found


class TestReadme(testtools.TestCase):
    def test_each_setting(self) -> None:
        readme, settings = (
            (_PLUGIN / name).read_text() for name in ('README.rst', 'settings')
        )
        self.assertEqual(
            set(re.findall('^(NOVA_ACCEL_[A-Z_]+)=', settings, re.M))
            - {'NOVA_ACCEL_DIR'},
            set(re.findall('``(NOVA_ACCEL_[A-Z_]+)``', readme)),
        )
