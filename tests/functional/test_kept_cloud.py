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
"""Other processes use the cloud that the quickstart leaves running."""

import json
import os
import pathlib
import subprocess
import sys

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1.identity import v3

from functional import base
from rig.quickstart import kept_cloud


class TestKeptCloud(base.AcceleratorTestCase):
    HAS_LIMITS = True

    def test_nova_accel_manage(self):
        server = self.boot_with({'resources:CUSTOM_QAT': '1'})
        path = kept_cloud.write_configuration(self)
        units = self.manage(path, 'fleet', 'list', '-f', 'json')
        self.assertEqual(
            [server['name']],
            [unit['Server name'] for unit in units if unit['Server name']],
        )
        [row] = self.manage(path, 'host', 'list', '-f', 'json')
        self.assertEqual('reports', row['State'])
        # Nova's services go on with the cells as they are called now.
        self.delete(server)
        units = self.manage(path, 'fleet', 'list', '-f', 'json')
        self.assertEqual({'free'}, {unit['State'] for unit in units})

    def manage(self, path, *arguments):
        done = subprocess.run(
            [
                pathlib.Path(sys.executable).with_name('nova-accel-manage'),
                '--config-file',
                path,
                *arguments,
            ],
            capture_output=True,
            check=False,
            text=True,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        return json.loads(done.stdout)

    def test_placement(self):
        url = self.server.mount(
            '/placement', kept_cloud.placement(self.placement_fixture)
        )
        for user, status in ((self.admin, 200), (self.demo, 403)):
            answer = adapter.Adapter(
                session.Session(
                    v3.Password(
                        self.auth_url,
                        username=user.name,
                        password=user.password,
                        user_domain_id='default',
                        project_name=user.project.name,
                        project_domain_id='default',
                    )
                ),
                endpoint_override=url,
            ).get('/resource_providers', raise_exc=False)
            self.assertEqual(status, answer.status_code)
            if status == 200:
                self.assertIn('host1_accel', answer.text)

    def test_limits(self):
        """As :doc:`/admin/quotas` says."""
        flavor = self.create_accel_flavor('qat')
        self.create_profile('qat', [base.QAT])
        first = self.boot(flavor)
        for words in (
            'registered limit create --service nova --region RegionOne '
            '--default-limit 1 class:CUSTOM_QAT',
            # Only those of the region of Nova's endpoint count.
            'registered limit create --service nova --default-limit 9 '
            'class:CUSTOM_QAT',
        ):
            self.openstack(words)
        over = self.boot(flavor, expected_state='ERROR')
        self.assertIn(
            'quota exceeded: class:CUSTOM_QAT: limit 1, in use 1, wanted 1',
            over['fault']['message'],
        )
        self.openstack(
            'limit create --service nova --region RegionOne --project demo '
            '--resource-limit 2 class:CUSTOM_QAT'
        )
        self.delete(first, over, self.boot(flavor))

    def openstack(self, words):
        subprocess.run(
            [
                pathlib.Path(sys.executable).with_name('openstack'),
                *('--os-cloud', 'admin', *words.split()),
            ],
            capture_output=True,
            check=True,
            env={
                **os.environ,
                'OS_CLIENT_CONFIG_FILE': str(
                    self.write_clouds(self.demo, self.admin)
                ),
            },
        )
