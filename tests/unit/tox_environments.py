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

"""The environments that ``tox.ini`` has."""

import configparser
import itertools
import pathlib
import re

_FILE = pathlib.Path(__file__).parents[2] / 'tox.ini'


def read() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    parser.read(_FILE)
    return parser


def names() -> set[str]:
    """Those with a section, and ``py3``."""
    found = {'py3'}
    for section in read().sections():
        _testenv, colon, name = section.partition(':')
        if colon:
            parts = [
                part.strip('{}').split(',')
                for part in re.findall(r'{[^}]*}|[^{]+', name)
            ]
            found |= {''.join(each) for each in itertools.product(*parts)}
    return found
