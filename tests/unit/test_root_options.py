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

import pathlib
import subprocess
import sys

import fixtures
from oslo_config import cfg
import testtools

from nova_accel import root_options
from nova_accel.conf import bitstreams
from nova_accel.conf import compute

_PROGRAM = """
import sys
from nova_accel.privileged import bitstream_file, offered
from oslo_config import cfg
cfg.CONF(['--config-file', sys.argv[1]], project='privsep')
print(cfg.CONF.nova_accel.device_spec, bitstream_file._cache())
assert not [name for name in sys.modules if name.split('.')[0] == 'nova']
"""


class TestRootOptions(testtools.TestCase):
    def test_nova_compute_has_the_same(self):
        for options, all_options in (
            (root_options.DEVICE_OPTS, compute.OPTS),
            (root_options.BITSTREAM_OPTS, bitstreams.OPTS),
        ):
            for option in options:
                self.assertIn(option, all_options)

    def test_by_default_there_is_no_device(self):
        options = cfg.ConfigOpts()
        options.register_opts(root_options.DEVICE_OPTS, root_options.GROUP)
        options([])
        self.assertEqual([], options[root_options.GROUP].device_spec)

    def test_the_process_of_root_reads_nova_computes_file(self):
        """Nova's own options are not known there."""
        directory = self.useFixture(fixtures.TempDir()).path
        path = pathlib.Path(directory, 'nova.conf')
        for text, expected in (
            ('[DEFAULT]\nstate_path = /var/lib/nova\n', '/var/lib/nova/'),
            ('[DEFAULT]\n', None),
        ):
            path.write_text(f'{text}[nova_accel]\ndevice_spec = {{}}\n')
            ended = subprocess.run(
                [sys.executable, '-c', _PROGRAM, str(path)],
                capture_output=True,
                text=True,
                check=False,
            )
            if expected is None:
                self.assertIn('set it, or [DEFAULT] state_path', ended.stderr)
            else:
                self.assertEqual(
                    f"['{{}}'] {expected}nova_accel_bitstreams\n",
                    ended.stdout,
                    ended.stderr,
                )
