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

"""pre-commit checks what CI checks, with the same versions."""

import pathlib
import re

import testtools
import yaml

_CHECKOUT = pathlib.Path(__file__).parents[2]

#: The end of a repository's URL -> the package that it runs.
_PACKAGES = {
    'ruff-pre-commit': 'ruff',
    'hacking': 'hacking',
    'doc8': 'doc8',
}

#: Required for the sake of another tool, or of the tool's plugins.
_NO_TOOLS = {'flake8', 'types-jsonschema'}


class TestPreCommit(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.repositories = yaml.safe_load(
            (_CHECKOUT / '.pre-commit-config.yaml').read_text()
        )['repos']

    def test_versions(self) -> None:
        tested = dict(
            re.findall(
                r'^([^#=\s]+)==(.+)$',
                (_CHECKOUT / 'constraints.txt').read_text(),
                re.M,
            )
        )
        found = {
            _PACKAGES[name]: repository['rev'].removeprefix('v')
            for repository in self.repositories
            if (name := repository['repo'].rpartition('/')[2]) in _PACKAGES
        }
        self.assertEqual(set(_PACKAGES.values()), found.keys())
        self.assertEqual({name: tested[name] for name in found}, found)

    def test_each_tool_of_ci(self) -> None:
        wanted = set(
            re.findall(
                r'^([\w-]+)',
                (_CHECKOUT / 'lint-requirements.txt').read_text(),
                re.M,
            )
        )
        hooks = {
            hook['id']
            for repository in self.repositories
            for hook in repository['hooks']
        }
        self.assertLessEqual({'ruff-check', 'ruff-format'}, hooks)
        self.assertEqual(
            wanted - _NO_TOOLS,
            ({'ruff'} | hooks) & wanted,
        )
