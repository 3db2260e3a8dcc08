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

import logging
import pathlib
import re
import sys

import fixtures
from oslo_config import cfg
from oslo_config import generator
import testtools

from nova_accel import conf
from nova_accel.conf import opts


class TestListOpts(testtools.TestCase):
    def test_each_group_once(self) -> None:
        groups = [group for group, _options in opts.list_opts()]
        self.assertEqual(sorted(set(groups)), sorted(groups))
        for group in (
            'nova_accel',
            'nova_accel_client',
            'nova_accel_database',
        ):
            self.assertIn(group, groups)

    def test_each_option_once(self) -> None:
        for group, options in opts.list_opts():
            names = [option.dest for option in options]
            self.assertEqual(sorted(set(names)), sorted(names), group)

    def test_what_is_listed_is_registered(self) -> None:
        for group, options in opts.list_opts():
            # What keystoneauth loads depends on auth_type.
            if group != 'nova_accel_client':
                for option in options:
                    self.assertIn(option.dest, conf.CONF[group])

    def test_options_of_the_database_are_not_those_of_nova(self) -> None:
        listed = dict(opts.list_opts())['nova_accel_database']
        self.assertIn('connection', [option.name for option in listed])
        conf.CONF.set_override(
            'connection', 'sqlite://', 'nova_accel_database'
        )
        self.addCleanup(
            conf.CONF.clear_override, 'connection', 'nova_accel_database'
        )
        self.assertNotEqual('sqlite://', conf.CONF.database.connection)

    def test_defaults_are_those_that_apply(self) -> None:
        for group, options in opts.list_opts():
            for option in options:
                # What keystoneauth loads depends on auth_type.
                if option.dest in conf.CONF[group]:
                    self.assertEqual(
                        option.default,
                        conf.CONF._get_opt_info(option.dest, group).get(
                            'default', option.default
                        ),
                        (group, option.dest),
                    )

    def test_sample(self) -> None:
        """It tells of no fault, and nothing of the machine that makes it."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'file'
        log = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        generated = cfg.ConfigOpts()
        generator.register_cli_opts(generated)
        generated(
            ['--namespace', 'nova_accel', '--output-file', str(path)],
            default_config_files=[],
        )
        generator.generate(generated)
        self.assertEqual('', log.output)
        text = path.read_text()
        for word in (
            'Warning',
            'Failed',
            '<object',
            sys.prefix,
            str(pathlib.Path.cwd()),
        ):
            self.assertNotIn(word, text)
        for line in (
            '#timeout = 30',
            '#connect_retries = 3',
            '#max_retries = 0',
            '#bitstream_cache_directory = $state_path/nova_accel_bitstreams',
            '#unit_policies =',
        ):
            self.assertRegex(text, f'(?m)^{re.escape(line)} *$')
