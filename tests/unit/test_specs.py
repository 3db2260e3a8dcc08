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
import pathlib
import re

import testtools

_TESTS = pathlib.Path(__file__).parents[1]
_TABLES = _TESTS.parent / 'doc/source/contributor/specs.rst'
_NAMED = re.compile(
    r'``((?:unit|db|functional|conformance|crash|libvirtd)\.[\w.]+)``'
)


def _names(source):
    """Classes, functions and what is assigned, at any depth."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (
                target.id
                for target in node.targets
                if isinstance(target, ast.Name)
            )


def _exists(name):
    path, parts = _TESTS, name.split('.')
    while parts and (path / parts[0]).is_dir():
        path /= parts.pop(0)
    if not parts:
        return True
    file = path / f'{parts.pop(0)}.py'
    return file.exists() and set(parts) <= set(_names(file.read_text()))


class TestSecurity(testtools.TestCase):
    """What ``tools/test security`` runs."""

    def test_the_tests_of_the_list_exist(self):
        named = [
            line
            for line in (_TESTS / 'security.txt').read_text().splitlines()
            if line and not line.startswith("#")
        ]
        self.assertEqual([], [name for name in named if not _exists(name)])
        self.assertEqual(sorted(set(named)), sorted(named))


class TestSpecs(testtools.TestCase):
    def test_the_tests_of_the_tables_exist(self):
        named = set(_NAMED.findall(_TABLES.read_text()))
        self.assertGreater(len(named), 100)
        self.assertEqual(
            [], sorted(name for name in named if not _exists(name))
        )
