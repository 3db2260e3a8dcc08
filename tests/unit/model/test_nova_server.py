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

from nova_accel.model import nova_server


class TestServer(testtools.TestCase):
    def test_busy(self) -> None:
        for server, is_busy in (
            (nova_server.Server('here'), False),
            (nova_server.Server('here', 'active', None), False),
            (nova_server.Server(None, 'building', None), True),
            (nova_server.Server('here', 'active', 'migrating'), True),
        ):
            self.assertEqual(is_busy, server.is_busy)


class TestArqsOfPorts(testtools.TestCase):
    def test_ports_with_our_functions(self) -> None:
        def port(**profile: str) -> dict[str, dict[str, str]]:
            return {'profile': profile}

        self.assertEqual(
            frozenset({'a'}),
            nova_server.arqs_of_ports(
                [
                    port(arq_uuid='a', pci_slot='0000:81:00.1'),
                    port(arq_uuid='of-cyborg', pci_slot='0000:99:00.1'),
                    port(pci_slot='0000:81:00.2'),
                    port(),
                    {'profile': None},
                ],
                {'0000:81:00.1', '0000:81:00.2'},
            ),
        )
