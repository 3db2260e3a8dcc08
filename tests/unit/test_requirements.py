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

import ast
import configparser
from importlib import metadata
import pathlib
import re
import sys

import linked_requirements
from packaging import requirements
import sqlalchemy
import testtools

import nova_accel
from nova_accel.model.profiles import nova_faults

_PACKAGE = pathlib.Path(nova_accel.__file__).parent
_REQUIREMENTS = pathlib.Path(__file__).parents[2] / 'requirements.txt'

_TEST_REQUIREMENTS = _REQUIREMENTS.with_name('test-requirements.txt')

_OF_NOVAS_FIXTURES = {
    'fixtures',
    'openstack-placement',
    'oslotest',
    'testtools',
    'wsgi-intercept',
}


def _canonical(name):
    return re.sub('[-_.]+', '-', name).lower()


def _modules():
    """The modules of the package by their names."""
    for path in _PACKAGE.rglob('*.py'):
        parts = path.relative_to(_PACKAGE.parent).with_suffix('').parts
        yield '.'.join(parts).removesuffix('.__init__'), path


def _names(path):
    """All that a module imports, and what may be a module of it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f'{node.module}.{each.name}' for each in node.names)


def _reached(modules, room):
    """The modules of a room, and all of ours that they import."""
    found = set()
    todo = {name for name in modules if f'{name}.'.startswith(room)}
    while todo:
        name = todo.pop()
        found.add(name)
        around = {name.rpartition('.')[0], *_names(modules[name])}
        todo |= (around & modules.keys()) - found
    return found


def _needed(paths):
    """The distributions that modules import."""
    imported = {name.split('.')[0] for path in paths for name in _names(path)}
    imported -= {*sys.stdlib_module_names, 'nova_accel'}
    distributions = metadata.packages_distributions()
    return {_canonical(distributions[name][0]) for name in imported}


def _named(lines):
    return {
        _canonical(re.match(r'[\w.-]+', line)[0])
        for line in lines
        if line and not line.startswith('#')
    }


class TestRequirements(testtools.TestCase):
    def setUp(self):
        super().setUp()
        modules = dict(_modules())
        self.client = _needed(
            modules[name] for name in _reached(modules, 'nova_accel.osc.')
        )
        services, fixtures = [], []
        for path in modules.values():
            room = path.relative_to(_PACKAGE).parts[0]
            if room == 'testing':
                fixtures.append(path)
            elif room != 'osc':
                services.append(path)
        self.services, self.fixtures = _needed(services), _needed(fixtures)
        self.stated = _named(_REQUIREMENTS.read_text().splitlines())
        setup = configparser.ConfigParser()
        setup.read(_REQUIREMENTS.with_name('setup.cfg'))
        self.extras = {
            name: [line for line in lines.splitlines() if line]
            for name, lines in setup['extras'].items()
        }

    def test_those_of_all(self):
        self.assertEqual(self.client & self.services, self.stated)

    def test_those_of_the_services(self):
        self.assertEqual(
            self.services - self.stated, _named(self.extras['services'])
        )

    def test_a_host_with_nova_lacks_nothing_but_the_base(self):
        """So the extra is for a new environment, and for the releases."""
        self.assertLessEqual(
            _named(self.extras['services']),
            linked_requirements.closure(metadata.distribution('nova')).keys()
            | {'nova'},
        )

    def test_no_release_of_nova_with_a_known_fault(self):
        [allowed] = [
            requirements.Requirement(line.partition('#')[0]).specifier
            for line in self.extras['services']
            if line.startswith('nova>')
        ]
        for version in ('33.0.0', '33.0.1'):
            self.assertIsNotNone(nova_faults.fault(version))
            self.assertFalse(allowed.contains(version), version)
        for name in ('constraints.txt', 'constraints-nova33.txt'):
            [tested] = re.findall(
                '^nova==(.*)$',
                _REQUIREMENTS.with_name(name).read_text(),
                re.MULTILINE,
            )
            self.assertTrue(allowed.contains(tested), name)
            self.assertIsNone(nova_faults.fault(tested), name)

    def test_those_of_the_client(self):
        self.assertEqual(
            # The program itself, which nothing imports.
            _named(self.extras['client']) - {'python-openstackclient'},
            self.client - self.stated,
        )

    def test_those_of_the_fixtures(self):
        services, *further = self.extras['test']
        self.assertEqual('nova-accel[services]', services)
        self.assertEqual(
            # Nova's own fixtures, which it does not require, import these.
            _named(further) - _OF_NOVAS_FIXTURES,
            self.fixtures - self.stated - self.services - _OF_NOVAS_FIXTURES,
        )

    def test_those_of_databases(self):
        """The tests run with the drivers that the extras install."""
        tested = _TEST_REQUIREMENTS.read_text().splitlines()
        for extra, url in (
            ('mysql', 'mysql+pymysql://'),
            ('postgresql', 'postgresql+psycopg2://'),
        ):
            [line] = self.extras[extra]
            self.assertIn(line, tested)
            module = sqlalchemy.make_url(url).get_dialect().import_dbapi()
            distributions = metadata.packages_distributions()
            self.assertIn(
                _canonical(distributions[module.__name__][0]), _named([line])
            )
