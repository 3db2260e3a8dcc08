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

"""Each command of the manual is one that its program accepts."""

import datetime
import re
import types

import fixtures
import testtools

from docs import commands
from docs import pages
from nova_accel.osc import host_drain
from rig import typed_commands

#: Program -> why its arguments are not checked here.
_OF_THE_HOST = {
    '/usr/lib/nvidia/sriov-manage': "NVIDIA's, comes with its driver",
    'aa-status': 'shows what AppArmor confines',
    'apparmor_parser': 'loads a profile of a host',
    'apt-cache': 'shows packages of a host',
    'apt-get': 'installs packages of a host',
    'audit2allow': 'makes a policy of what a host has denied',
    'ausearch': 'shows what is on a host or in a guest',
    'base64': 'encodes a file',
    'cat': 'shows what is on a host or in a guest',
    'dcgmi': "NVIDIA's, needs a GPU",
    'dnf': 'installs packages of a host',
    'dracut': 'makes the initramfs of a host',
    'echo': 'of the shell',
    'export': 'of the shell',
    'fmpm': "NVIDIA's: unit.privileged.test_fabric_manager has its options",
    'fpgaport': "OPAE's, needs an FPGA",
    'getenforce': 'shows what is on a host or in a guest',
    'gnocchi': 'needs the services of the cloud',
    'grep': 'reads what another command shows',
    'grubby': "sets the parameters of a host's kernel",
    'ip': 'shows what is on a host or in a guest',
    'journalctl': 'shows what is on a host or in a guest',
    'ls': 'shows what is on a host or in a guest',
    'lsblk': 'shows what is on a host or in a guest',
    'lsmod': 'shows what is on a host or in a guest',
    'lspci': 'shows what is on a host or in a guest',
    'mlxprivhost': "NVIDIA's, needs a BlueField",
    'modprobe': 'loads a module of the kernel',
    'mysql': 'the lab runs it',
    'mysqldump': 'needs the database server of the cloud',
    'nvidia-smi': "NVIDIA's, comes with its driver",
    'nvme': 'shows what is on a host or in a guest',
    'openssl': "signs as Nova's manual says",
    'pg_dump': 'needs the database server of the cloud',
    'pip': 'tools/test installs the package so',
    'ps': 'shows what is on a host or in a guest',
    'readlink': 'shows what is on a host or in a guest',
    'restorecon': 'labels files of a host',
    'semanage': 'changes the policy of a host',
    'semodule': 'changes the policy of a host',
    'setsebool': 'changes the policy of a host',
    'systemctl': 'needs the services of the cloud',
    'tar': 'copies files of a host',
    'tools/record-host': 'unit.test_record_host runs it',
    'tools/serve-api': 'served_api.test_serve_api runs it',
    'tox': 'needs an environment of its own',
    'update-grub': "sets the parameters of a host's kernel",
    'update-initramfs': 'makes the initramfs of a host',
    'virsh': "libvirt's, shows its devices",
}

#: Commands in the text, such as ``openstack server show``.
_IN_TEXT = re.compile(r'(openstack|nova-accel-manage) ([a-z][a-z -]*)')


class _EarlyDateTime(datetime.datetime):
    """The time at which the manual's examples are typed."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> '_EarlyDateTime':
        return cls(2026, 1, 1, tzinfo=tz)


class CommandTest(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        # "host drain" refuses an end that is over.
        self.useFixture(
            fixtures.MockPatchObject(
                host_drain,
                'datetime',
                types.SimpleNamespace(
                    datetime=_EarlyDateTime, UTC=datetime.UTC
                ),
            )
        )

    def test_each_program_accepts_its_arguments(self) -> None:
        wrong = []
        for command in commands.all_commands():
            program, *arguments = command.words
            check = commands.CHECKED.get(program)
            try:
                if check is not None:
                    check(tuple(arguments))
                elif program not in _OF_THE_HOST:
                    raise commands.WrongCommandError('an unknown program')
            except commands.WrongCommandError as fault:
                wrong.append(f'{command}: {fault}')
        self.assertEqual([], wrong)

    def test_no_reason_is_left_over(self) -> None:
        used = {command.words[0] for command in commands.all_commands()}
        self.assertEqual(set(), _OF_THE_HOST.keys() - used)

    def test_commands_in_the_text_exist(self) -> None:
        wrong = []
        known = {
            'openstack': commands.openstack_commands(),
            'nova-accel-manage': commands.manage_commands(),
        }
        for page in pages.all_pages().values():
            for literal in page.literals():
                found = _IN_TEXT.match(literal)
                if not found or literal.endswith(' ...'):
                    continue
                program, name = found[1], found[2].split(' --')[0].strip()
                if not any(
                    f'{name} '.startswith(f'{each} ')
                    or f'{each} '.startswith(f'{name} ')
                    for each in known[program]
                ):
                    wrong.append(f'{page.name}: {literal}')
        self.assertEqual([], wrong)


class ReadingTest(testtools.TestCase):
    """What is wrong in a page is seen."""

    def _refused(self, text: str) -> str:
        [command] = commands._commands('here', text)
        check = commands.CHECKED[command.words[0]]
        return str(
            self.assertRaises(
                commands.WrongCommandError, check, command.words[1:]
            )
        )

    def test_an_option_that_openstack_does_not_have(self) -> None:
        self.assertIn(
            '--colour',
            self._refused('openstack flavor create --colour red small'),
        )

    def test_a_command_that_openstack_does_not_have(self) -> None:
        self._refused('openstack accelerator device paint <uuid>')

    def test_an_extra_spec_that_nova_does_not_check(self) -> None:
        for version in ('', '--os-compute-api-version 2.85 '):
            self.assertIn(
                '--os-compute-api-version 2.86',
                self._refused(
                    f'openstack {version}flavor set small '
                    '--property nova_accel:device_profile=gold'
                ),
            )

    def test_an_option_before_the_command(self) -> None:
        self._refused('openstack --os-acelerator 2.3 accelerator device list')

    def test_a_command_of_ours_that_does_not_exist(self) -> None:
        self._refused('nova-accel-manage db synch')

    def test_a_path_that_the_api_does_not_have(self) -> None:
        self._refused('curl -X PATCH "$ACCELERATOR/devices/<uuid>"')

    def test_a_command_that_does_not_end(self) -> None:
        self.assertRaises(
            typed_commands.OpenCommandError,
            list,
            typed_commands.typed('$ openstack server create \\\n'),
        )

    def test_answers_and_comments_are_not_typed(self) -> None:
        self.assertEqual(
            [('#', 'ls /sys'), ('$', "echo 'a\nb'")],
            list(
                typed_commands.typed(
                    "# ls /sys  # the devices\ndevices\n$ echo 'a\nb'\na\nb"
                )
            ),
        )

    def test_what_stands_beside_pipes_and_in_brackets(self) -> None:
        self.assertEqual(
            [('date',), ('echo', commands.PLACEHOLDER, 'b c'), ('cat',)],
            [
                each.words
                for each in commands._commands(
                    'here', 'A=1 echo "$(date)" "b c" | cat > <file>'
                )
            ],
        )
