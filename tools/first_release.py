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
"""A Sphinx extension: the release notes before the first tag of git.

reno takes the titles of releases from tags, and without any it writes
``0.0.0``. The release that comes first has its version in ``setup.cfg``, from
which pbr takes it, too.
"""

import configparser
import pathlib
from typing import Any

from docutils import nodes

_SETUP = pathlib.Path(__file__).parents[1] / 'setup.cfg'

_WITHOUT_TAGS = '0.0.0'

#: Before Sphinx itself collects the titles.
_EARLY = 400


def version() -> str:
    """The version of the release that comes next."""
    parser = configparser.ConfigParser()
    parser.read(_SETUP)
    return parser['metadata']['version']


def name_first_release(_app: Any, doctree: nodes.document) -> None:
    """Give the notes without a tag the title of their release."""
    for title in doctree.findall(nodes.title):
        if title.astext() == _WITHOUT_TAGS:
            title.children = [nodes.Text(version())]


def setup(app: Any) -> dict[str, bool]:
    app.connect('doctree-read', name_first_release, priority=_EARLY)
    return {'parallel_read_safe': True}
