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
import inspect
import os
import pathlib
import struct
import subprocess
import sys

import fixtures
import testtools

from nova_accel import exceptions
from nova_accel import i18n


def _catalogue(texts: dict[str, str]) -> bytes:
    """A catalogue of gettext, in its compiled form.

    https://www.gnu.org/software/gettext/manual/html_node/MO-Files.html
    """
    pairs = sorted(
        (each.encode(), translated.encode())
        for each, translated in {
            '': 'Content-Type: text/plain; charset=UTF-8\n',
            **texts,
        }.items()
    )
    places, data = [], b''
    begin = 28 + 16 * len(pairs)
    for column in (0, 1):
        for pair in pairs:
            places.append(
                struct.pack('<2I', len(pair[column]), begin + len(data))
            )
            data += pair[column] + b'\0'
    head = struct.pack(
        '<7I', 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, begin
    )
    return head + b''.join(places) + data


class TestTranslation(testtools.TestCase):
    def test_what_tenants_read(self) -> None:
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        path = directory / f'de/LC_MESSAGES/{i18n.DOMAIN}.mo'
        path.parent.mkdir(parents=True)
        path.write_bytes(
            _catalogue(
                {
                    exceptions.DeviceError.PUBLIC: 'Gerät gestört',
                    exceptions.NoAssignment.PUBLIC: 'passt nicht',
                }
            )
        )
        done = subprocess.run(
            [
                sys.executable,
                '-c',
                'from nova_accel import exceptions\n'
                'print(exceptions.DeviceError("sda1: dead").public)\n'
                'print(exceptions.DeviceError("sda1: dead"))\n'
                'print(exceptions.NoAssignment().public)\n',
            ],
            env={
                **os.environ,
                'LANGUAGE': 'de',
                'NOVA_ACCEL_LOCALEDIR': str(directory),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertEqual(
            'Gerät gestört\nsda1: dead\npasst nicht\n', done.stdout
        )

    def test_each_text_is_marked(self) -> None:
        texts = [
            node.value
            for node in ast.walk(ast.parse(inspect.getsource(exceptions)))
            if isinstance(node, ast.Assign | ast.AnnAssign)
            and ast.unparse(getattr(node, 'target', None) or node.targets[0])
            == 'PUBLIC'
            and ast.unparse(node.value) != 'None'
        ]
        self.assertTrue(texts)
        for text in texts:
            self.assertEqual('_', ast.unparse(getattr(text, 'func', text)))
