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

from typing import Any

from unit.api import base
from unit.api.compute import test_replacing

_PATH = f'/servers/{base.INSTANCE}/accelerators/replace'


class ReplaceFailedTest(test_replacing.ReplacingTestCase):
    def replace(self, body: Any, path: str = _PATH, **more: Any) -> int:
        more = {'roles': base.MEMBER, 'version': '2.5', **more}
        return int(self.call('POST', path, body, **more).status_int)

    def test_answers_when_it_is_done(self) -> None:
        self.lose_devices()
        for body, arqs in (
            ({}, self.arqs),
            ({'arq': self.arqs[0]}, self.arqs[:1]),
        ):
            answer = self.call(
                'POST', _PATH, body, roles=base.MEMBER, version='2.5'
            )
            self.assertEqual((204, b''), (answer.status_int, answer.body))
            self.assertEqual(arqs, self.host.replaced.pop()[2])

    def test_refusals(self) -> None:
        self.assertEqual(409, self.replace({}))
        self.assertEqual(404, self.replace({'arq': base.NOBODY}))
        self.assertEqual(
            404, self.replace({}, _PATH.replace(base.INSTANCE, base.NOBODY))
        )
        bodies: tuple[Any, ...] = (
            {'arq': 'x'},
            {'arq': None},
            {'arqs': []},
            [],
        )
        for body in bodies:
            self.assertEqual(400, self.replace(body), str(body))
        self.assertEqual(
            400, self.replace({}, _PATH.replace(base.INSTANCE, 'x'))
        )
        self.assertEqual(406, self.replace({}, version='2.4'))
