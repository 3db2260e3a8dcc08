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

import hashlib
import json

import testtools

from nova_accel.api.notifications import payloads

#: Version and what the fields are: these change together.
_FINGERPRINTS = {
    'AcceleratorRequestPayload': ('1.0', 'ef8854cf7d24'),
    'AcceleratorRequestActionPayload': ('1.0', '37271686419a'),
    'DeployableProgramPayload': ('1.0', 'db8ca3548458'),
}


def _fingerprint(payload: type[payloads.Payload]) -> str:
    fields = sorted(
        (name, repr(field)) for name, field in payload.fields.items()
    )
    return hashlib.sha256(json.dumps(fields).encode()).hexdigest()[:12]


class VersionsTest(testtools.TestCase):
    def test_fields_change_with_their_version(self) -> None:
        self.assertEqual(
            _FINGERPRINTS,
            {
                payload.__name__: (payload.VERSION, _fingerprint(payload))
                for payload in payloads.Payload.__subclasses__()
            },
        )


class WireTest(testtools.TestCase):
    def test_envelope_is_novas(self) -> None:
        wire = payloads.to_wire(payloads.of_arqs([], 'why', hostname='host'))
        self.assertEqual(
            {
                'nova_object.name': 'AcceleratorRequestActionPayload',
                'nova_object.namespace': 'nova_accel',
                'nova_object.version': '1.0',
                'nova_object.data': {
                    'accelerator_requests': [],
                    'fault': 'why',
                    'hostname': 'host',
                },
            },
            wire,
        )
