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

"""Files, options and rules that the manual names exist."""

import re

from nova.conf import CONF as NOVA_CONF
from oslo_config import cfg
import testtools

from docs import pages
from nova_accel import conf  # noqa: F401  (registers options of ours)
from nova_accel.api import policies

#: Directories of the checkout whose files are named by their paths.
_TOP = re.compile(r'(doc|etc|nova_accel|releasenotes|tests|tools)/[\w./*-]+$')

_IN_README = re.compile(r'``([\w./-]+/[\w./-]*)``')

_OPTION = re.compile(r'\[(?P<group>nova_accel\w*)\] (?P<option>[a-z]\w+)')

_RULE = re.compile(r'nova_accel:[a-z_]+:[a-z_]+$')

#: Names that are made when something is built, or are a form of names.
_MADE = ('doc/build', 'nova_accel/<')

#: Rooms of the code, which contributors' pages name without "nova_accel/".
_ROOMS = re.compile(r'[a-z_]+/[\w/]+\.(py|json|yaml)$')


class PlacesTest(testtools.TestCase):
    def test_files_exist(self) -> None:
        missing = []
        for page in pages.all_pages().values():
            for literal in page.literals():
                if _TOP.match(literal) and not literal.startswith(_MADE):
                    if not list(pages.ROOT.glob(literal.rstrip('/'))):
                        missing.append(f'{page.name}: {literal}')
                elif _ROOMS.match(literal) and not any(
                    (pages.ROOT / top / literal).exists()
                    for top in ('', 'nova_accel', 'tools', 'tests')
                ):
                    missing.append(f'{page.name}: {literal}')
        self.assertEqual([], missing)

    def test_files_that_the_readme_names_exist(self) -> None:
        found = _IN_README.findall((pages.ROOT / 'README.rst').read_text())
        self.assertEqual(
            [], [name for name in found if not (pages.ROOT / name).exists()]
        )

    def test_options_exist(self) -> None:
        """Those that are named with a section of ours."""
        missing = []
        for page in pages.all_pages().values():
            for literal in page.literals():
                for group, option in _OPTION.findall(literal):
                    try:
                        NOVA_CONF[group][option]
                    except (cfg.NoSuchOptError, cfg.NoSuchGroupError):
                        missing.append(f'{page.name}: {literal}')
        self.assertEqual([], missing)

    def test_policy_rules_exist(self) -> None:
        known = {rule.name for rule in policies.RULES}
        self.assertEqual(
            [],
            [
                f'{page.name}: {literal}'
                for page in pages.all_pages().values()
                for literal in page.literals()
                if _RULE.match(literal) and literal not in known
            ],
        )
