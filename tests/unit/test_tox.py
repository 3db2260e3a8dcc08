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

"""What OpenStack's CI, and the manual, expect of ``tox.ini``."""

import pathlib
import re

import testtools

from unit import tox_environments

_CHECKOUT = pathlib.Path(__file__).parents[2]

#: OpenStack's CI names the file with its versions in this variable.
_CONSTRAINTS = '-c{env:TOX_CONSTRAINTS_FILE:{toxinidir}/constraints.txt}'


class TestTox(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.sections = tox_environments.read()

    def requirements(self, section: str) -> list[str]:
        """All lines of ``deps``, with those of the sections it includes."""
        found = []
        for line in self.sections[section]['deps'].split():
            included = re.fullmatch(r'{\[(.+)]deps}', line)
            found += self.requirements(included[1]) if included else [line]
        return found

    def test_versions_are_those_of_the_caller(self) -> None:
        for section in self.sections.sections():
            if self.sections[section].get('deps'):
                self.assertEqual(
                    _CONSTRAINTS, self.requirements(section)[0], section
                )
        self.assertEqual(
            'true', self.sections['testenv']['constrain_package_deps']
        )

    def test_the_manual_needs_its_own_requirements_alone(self) -> None:
        self.assertEqual(
            [_CONSTRAINTS, '-r{toxinidir}/doc/requirements.txt'],
            self.requirements('testenv:docs'),
        )

    def test_environments_of_the_manual_exist(self) -> None:
        page = _CHECKOUT / 'doc/source/contributor/testing.rst'
        named = set(re.findall(r'tox\s+-e\s+([\w-]+)', page.read_text()))
        self.assertIn('py313', named)
        self.assertEqual(
            set(),
            {name for name in named if not re.fullmatch(r'py3\d+', name)}
            - tox_environments.names(),
        )
