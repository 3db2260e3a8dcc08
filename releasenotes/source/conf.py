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
"""Configuration of the release notes."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / 'tools'))

extensions = [
    'first_release',
    'openstackdocstheme',
    'reno.sphinxext',
]

project = 'nova_accel Release Notes'
copyright = 'the nova_accel developers'
master_doc = 'index'
version = release = ''

html_theme = 'openstackdocs'
html_static_path = ['_static']
pygments_style = 'native'

openstackdocs_auto_name = False
openstackdocs_auto_version = False
