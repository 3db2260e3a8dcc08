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
"""The commands of the manual are typed in a cloud; none has a blank answer."""

import os
import pathlib
import shlex
import subprocess
import sys

from functional import base
from rig import typed_commands
from rig.quickstart import kept_cloud

_MANUAL = pathlib.Path(__file__).parents[2] / 'doc/source'

#: What stands for a value of the reader's.
_BLANK = 'BLANK'

#: Beginning of a command -> why this cloud cannot do it.
_LEFT_OUT = {
    'accelerator deployable program': 'no device of it is programmed',
    'accelerator server replace': 'no device of it has failed',
    'device-spec': 'it needs a libvirt',
    'discover': 'it needs a libvirt',
    'import-cyborg': 'there is no Cyborg',
}

#: The device profiles that pages name and do not create.
_PROFILES = {
    'h200': {'resources:CUSTOM_QAT': '1'},
    'h200-8': {'resources:CUSTOM_QAT': '2'},
    'a100-pair': {'resources:FPGA': '1'},
    'fpga': {'resources:FPGA': '1'},
    'gpu': {'resources:VGPU': '1'},
}

#: Beginning of a command -> why it is refused, as its pages are typed one
#: after the other.
_REFUSED = {
    'openstack accelerator host drain compute-7 --reason "new fans" --from': (
        'is drained already'
    ),
    'openstack accelerator room': 'No moves of these servers make room.',
    'openstack accelerator server show my-server': 'has no accelerators',
    'nova-accel-manage host forget': 'stop its nova-compute',
}

#: Who forbids it: a policy of ours, Nova's, or Placement's.
_FORBIDDEN = (
    'which needs the role',
    'whom the rule nova_accel:usage:all_projects allows',
    "Policy doesn't allow os_compute_api:",
    'Placement answers GET /traits?name=in:CUSTOM_NOVA_ACCEL with 403',
)

#: Not ours: python-openstackclient shows an empty list by a blank line.
_BLANK_BY_OTHERS = 'openstack accelerator arq list'

#: The drains of the manual are of a year that is over sooner or later.
_YEAR = '2026-', '2126-'


class TestTypedCommands(base.AcceleratorTestCase):
    CAST_AS_CALL = False
    CLIENT_MICROVERSION = None
    hosts = ('compute-7',)

    def setUp(self):
        super().setUp()
        self.keystone.register(
            'placement',
            'placement',
            self.server.mount(
                '/placement', kept_cloud.placement(self.placement_fixture)
            ),
        )
        for name, group in _PROFILES.items():
            self.create_profile(name, [group])
        [self.profile_uuid] = [
            each['uuid']
            for each in self.accelerator.get('/device_profiles')[
                'device_profiles'
            ]
            if each['name'] == 'fpga'
        ]
        self.its_server = self.boot(self.create_accel_flavor('h200'))
        self.configuration = kept_cloud.write_configuration(self)
        self.environment = {
            **os.environ,
            'OS_CLIENT_CONFIG_FILE': str(
                self.write_clouds(self.demo, self.admin)
            ),
        }
        [self.device, *_others] = self.accelerator.get('/devices')['devices']

    def test_an_administrator(self):
        told = self.typed('admin')
        self.assertGreater(len(told), 40)
        self.assertEqual(
            {},
            {
                words: text
                for words, (status, text) in told.items()
                if _is_blank(text)
                or (
                    status
                    and not any(
                        words.startswith(beginning) and why in text
                        for beginning, why in _REFUSED.items()
                    )
                )
            },
        )

    def test_an_owner(self):
        """Whatever is refused is so with a reason."""
        told = self.typed('demo', only='openstack')
        refused = {words: text for words, (bad, text) in told.items() if bad}
        self.assertGreater(len(refused), 10)
        self.assertEqual(
            {},
            {
                words: text
                for words, text in refused.items()
                if not any(why in text for why in _FORBIDDEN)
            },
        )
        self.assertEqual(
            [],
            [words for words, (_, text) in told.items() if _is_blank(text)],
        )

    def typed(self, cloud, only=''):
        """Command -> its exit status, and what it prints."""
        told = {}
        for command in _commands():
            program, *words = shlex.split(
                typed_commands.BLANK.sub(_BLANK, command)
            )
            if not program.startswith(only or ('openstack', 'nova-accel-')):
                continue
            at = next(
                (
                    place
                    for place, word in enumerate(words)
                    if not word.startswith('-') and '.' not in word
                ),
                0,
            )
            name = ' '.join(words[at:])
            if (
                (program == 'openstack' and not name.startswith('accelerator'))
                or name.startswith(tuple(_LEFT_OUT))
                or 'RegionTwo' in words
            ):
                continue
            words = [self.meant(name, word) for word in words]
            if program == 'openstack':
                words = ['--os-cloud', cloud, *words]
            elif program == 'nova-accel-manage':
                words = ['--config-file', self.configuration, *words]
            else:
                continue
            told[command] = self.run_program(program, words)
        return told

    def meant(self, name, word):
        """What a reader types for a word of the manual."""
        if word in ('SERVER', 'my-server') or (
            word == _BLANK and 'server show' in name
        ):
            return self.its_server['id']
        if word == _BLANK:
            if 'device profile' in name:
                return self.profile_uuid
            if name.startswith('host'):
                return 'compute-7'
            if '=' not in word:
                return self.device['uuid']
        if word.endswith(('.html', '.prom')):
            return str(self.state_path / pathlib.Path(word).name)
        return word.replace(*_YEAR).replace(_BLANK, self.device['uuid'])

    def run_program(self, program, words):
        done = subprocess.run(
            [pathlib.Path(sys.executable).with_name(program), *words],
            capture_output=True,
            check=False,
            env=self.environment,
            text=True,
            cwd=self.state_path,
        )
        return done.returncode, done.stdout + done.stderr


def _is_blank(text):
    """Whether it is a blank line; silence is none."""
    return bool(text) and not text.strip()


def _commands():
    """Of the guides for administrators and owners, each once."""
    pages = [
        path.read_text()
        for guide in ('admin', 'user')
        for path in sorted((_MANUAL / guide).glob('*.rst'))
    ]
    return dict.fromkeys(
        ' '.join(command.split())
        for text in pages
        for _prompt, command in typed_commands.of_page(text)
        if command.startswith(('openstack ', 'nova-accel-'))
        and _BLANK_BY_OTHERS not in command
    )
