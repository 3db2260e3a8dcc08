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

import testtools

from nova_accel import exceptions
from nova_accel.api.handlers import arq_patch
from unit.api import base

_ARQ = base.numbered_uuid(1)
_REMOVE = [
    {'op': 'remove', 'path': f'/{name}'}
    for name in ('hostname', 'device_rp_uuid', 'instance_uuid')
]


class ArqPatchTest(testtools.TestCase):
    def assertRefused(self, reason: str, patch: object) -> None:
        def parse() -> None:
            arq_patch.is_unbinding({_ARQ: patch})
            arq_patch.bindings({_ARQ: patch})

        error = self.assertRaises(exceptions.InvalidRequest, parse)
        self.assertIn(reason, str(error))

    def test_reads_a_binding(self) -> None:
        patches = {_ARQ: base.patch(project_id='p')}
        self.assertFalse(arq_patch.is_unbinding(patches))
        self.assertEqual(
            {
                _ARQ: {
                    'hostname': base.HOSTNAME,
                    'device_rp_uuid': base.RP,
                    'instance_uuid': base.INSTANCE,
                    'project_id': 'p',
                }
            },
            arq_patch.bindings(patches),
        )

    def test_reads_an_unbinding(self) -> None:
        self.assertTrue(arq_patch.is_unbinding({_ARQ: _REMOVE}))

    def test_refuses_a_mixture(self) -> None:
        for patch in (
            base.patch() + _REMOVE,
            [{'op': 'test', 'path': '/hostname'}],
        ):
            self.assertRefused('Every op must be add or remove', patch)
        error = self.assertRaises(
            exceptions.InvalidRequest,
            arq_patch.is_unbinding,
            {_ARQ: base.patch(), base.NOBODY: _REMOVE},
        )
        self.assertIn('Every op must be add or remove', str(error))

    def test_refuses_an_unknown_field(self) -> None:
        self.assertRefused(
            'Invalid path in patch /state',
            [*base.patch(), {'op': 'add', 'path': '/state', 'value': 'x'}],
        )

    def test_refuses_an_absent_field(self) -> None:
        for patch in (
            base.patch()[:1],
            [
                {**base.patch()[0]},
                *(
                    {**operation, 'value': None}
                    for operation in base.patch()[1:]
                ),
            ],
        ):
            self.assertRefused(
                'Fields absent in patch device_rp_uuid,instance_uuid', patch
            )

    def test_refuses_a_wrong_value(self) -> None:
        self.assertRefused('device_rp_uuid', base.patch(rp='xyz'))
        self.assertRefused(
            'instance_uuid',
            [
                *base.patch()[:2],
                {'op': 'add', 'path': '/instance_uuid', 'value': {}},
            ],
        )
