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
"""Configuration of the manual."""

import logging
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).parent
TOOLS = SOURCE.parents[1] / 'tools'

sys.path.insert(0, str(TOOLS))

extensions = [
    'cliff.sphinxext',
    'first_release',
    'openstackdocstheme',
    'oslo_config.sphinxconfiggen',
    'oslo_config.sphinxext',
    'oslo_policy.sphinxext',
    'oslo_policy.sphinxpolicygen',
    'reno.sphinxext',
]

project = 'nova_accel'
copyright = 'the nova_accel developers'
master_doc = 'index'
exclude_patterns = ['**/*.inc.rst']
templates_path = ['_templates']

html_theme = 'openstackdocs'
html_static_path = ['_static']
pygments_style = 'native'

openstackdocs_auto_name = False
openstackdocs_auto_version = False
version = release = ''

config_generator_config_file = (
    '../../etc/nova_accel/nova_accel-config-generator.conf'
)
sample_config_basename = '_static/nova_accel'

policy_generator_config_file = (
    '../../etc/nova_accel/nova_accel-policy-generator.conf'
)
sample_policy_basename = '_static/nova_accel'


def write_pictures(app):
    from pictures import all_pictures

    all_pictures.draw(SOURCE / '_static')


def write_api_examples(app):
    import api_examples_to_rst

    (SOURCE / 'reference' / 'api-examples.inc.txt').write_text(
        api_examples_to_rst.text()
    )


def write_states(app):
    import states_to_svg

    transitions = states_to_svg.arq_types.TRANSITIONS
    (SOURCE / '_static' / 'arq-states.svg').write_text(
        states_to_svg.svg(transitions)
    )
    (SOURCE / 'contributor' / 'arq-states.inc.rst').write_text(
        states_to_svg.table(transitions)
    )


def write_operations(app):
    # Nova's test modules change the process that imports them.
    for arguments, table in (
        ([], 'contributor/tested-operations.inc.rst'),
        (['--changes'], 'admin/changes-by-state.inc.rst'),
    ):
        subprocess.run(  # noqa: S603
            [
                sys.executable,
                TOOLS / 'operations_to_rst.py',
                *arguments,
                '--output',
                SOURCE / table,
            ],
            check=True,
        )


def write_status_help(app):
    """What nova-accel-status says of itself, which is no program of cliff."""
    done = subprocess.run(  # noqa: S603
        [
            pathlib.Path(sys.executable).with_name('nova-accel-status'),
            '--help',
        ],
        env={**os.environ, 'COLUMNS': '79'},
        stdout=subprocess.PIPE,
        check=True,
    )
    (SOURCE / 'reference' / 'nova-accel-status.inc.txt').write_bytes(
        done.stdout
    )


def write_openapi(app):
    import yaml

    from openapi import document

    class WithoutAliases(yaml.SafeDumper):
        """What several places share is written in each of them."""

        def ignore_aliases(self, data):
            return True

    (SOURCE / '_static' / 'openapi.yaml').write_text(
        yaml.dump(document.document(), Dumper=WithoutAliases, sort_keys=False)
    )


def setup(app):
    app.connect('builder-inited', write_openapi)
    app.connect('builder-inited', write_api_examples)
    app.connect('builder-inited', write_pictures)
    app.connect('builder-inited', write_states)
    app.connect('builder-inited', write_operations)
    app.connect('builder-inited', write_status_help)
    # python-cyborgclient and python-openstackclient have the same commands,
    # of which none is shown here.
    logging.getLogger('cliff.commandmanager').setLevel(logging.ERROR)
