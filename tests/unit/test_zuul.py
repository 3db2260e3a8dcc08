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

"""Zuul's jobs: what they name is in this repository."""

import pathlib
import re

import sqlalchemy as sa
import testtools
import yaml

from unit import tox_environments

_CHECKOUT = pathlib.Path(__file__).parents[2]

#: Jobs and templates of these are not defined here.
_OF_OPENSTACK = re.compile(
    'openstack-tox$|openstack-python3-jobs$|devstack-tempest$'
    '|publish-openstack-docs-pti$|release-notes-jobs-python3$'
)


def _load(kind: str) -> list[dict[str, object]]:
    return [
        item[kind]
        for item in yaml.safe_load((_CHECKOUT / '.zuul.yaml').read_text())
        if kind in item
    ]


class TestZuul(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.jobs = {job['name']: job for job in _load('job')}
        [self.project] = _load('project')

    def test_environments_exist(self) -> None:
        environments = tox_environments.names()
        self.assertLessEqual({'py3', 'db', 'pep8', 'lab-all'}, environments)
        for name, job in self.jobs.items():
            if job['parent'].startswith('nova-accel-tox'):
                self.assertIn(job['vars']['tox_envlist'], environments)
                self.assertEqual(
                    f'nova-accel-tox-{job["vars"]["tox_envlist"]}', name
                )

    def test_names_are_known(self) -> None:
        run = {
            name
            for pipeline in self.project.values()
            if isinstance(pipeline, dict)
            for name in pipeline['jobs']
        }
        self.assertEqual(
            {
                name
                for name, job in self.jobs.items()
                if not job.get('abstract')
            },
            run,
        )
        for name in (
            *(job['parent'] for job in self.jobs.values()),
            *self.project['templates'],
        ):
            self.assertTrue(
                name in self.jobs or _OF_OPENSTACK.match(name), name
            )

    def test_the_databases_have_the_user(self) -> None:
        """Whom ``tools/test-setup.sh`` makes, as each job of tox runs it."""
        script = (_CHECKOUT / 'tools/test-setup.sh').read_text()
        user = re.search('^user=(.+)$', script, re.M)[1]
        environment = self.jobs['nova-accel-tox-db']['vars']['tox_environment']
        urls = environment['OS_TEST_DBAPI_ADMIN_CONNECTION'].split(';')
        for url in map(sa.make_url, urls):
            self.assertEqual((user, user), (url.username, url.password))
        self.assertEqual(
            {'mysql', 'postgresql'},
            {sa.make_url(url).get_backend_name() for url in urls},
        )

    def test_devstack(self) -> None:
        variables = self.jobs['nova-accel-devstack-tempest']['vars']
        [plugin] = variables['devstack_plugins']
        settings = (_CHECKOUT / 'devstack/settings').read_text()
        self.assertIn(f'\ndefine_plugin {plugin}\n', settings)
        for name in variables['devstack_localrc']:
            self.assertRegex(settings, rf'(?m)^{name}=')
        path = variables['tempest_exclude_list'].rpartition('}}/')[2]
        self.assertTrue((_CHECKOUT / path).is_file(), path)
