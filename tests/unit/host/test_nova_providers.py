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


import os.path

from nova import exception

from nova_accel.host import nova_providers
from nova_accel.model import naming
from nova_accel.model.providers import provider_layout
from unit.host import claimed_host
from unit.host.claimed_host import an_entry
from unit.host.claimed_host import NODE
from unit.host.claimed_host import NODE_UUID

POOL = f'{NODE}_accel_qat_8086_37c9'
POOL_UUID = naming.derived_uuid(NODE_UUID, 'provider', POOL)
RACK = 'CUSTOM_RACK_7'


class ProviderConfigsTestCase(claimed_host.ClaimedHostTestCase):
    def configs(self, **files):
        """:param files: name without ``.yaml`` -> entries"""
        self.configure(
            providers={
                f'{name}.yaml': entries for name, entries in files.items()
            }
        )
        return nova_providers.ProviderConfigs(NODE, NODE_UUID)


class TestLineFor(ProviderConfigsTestCase):
    def line_for(self, **files):
        return self.configs(**files).line_for(
            provider_layout.Provider(POOL, POOL_UUID, None, frozenset(), {})
        )

    def test_by_name(self):
        self.assertEqual(
            f'{os.path.join(self.provider_configs, "b.yaml")}: provider with '
            f'name {POOL}',
            self.line_for(
                a=[an_entry('$COMPUTE_NODE', RACK, method='uuid')],
                b=[an_entry('other', RACK), an_entry(POOL, RACK)],
            ),
        )

    def test_by_uuid(self):
        self.assertIn(
            f'a.yaml: provider with uuid {POOL_UUID}',
            self.line_for(
                a=[an_entry(POOL_UUID, method='uuid', CUSTOM_QAT=3)]
            ),
        )

    def test_what_nova_does_not_look_at(self):
        self.configure(providers={'a.yml': [an_entry(POOL, RACK)]})
        self.assertIsNone(self.line_for())
        for entry in (
            an_entry(POOL),
            an_entry('host2' + POOL[5:], RACK),
            an_entry(POOL_UUID.upper(), RACK, method='uuid'),
            an_entry('$COMPUTE_NODE', RACK, method='uuid'),
        ):
            self.assertIsNone(self.line_for(a=[entry]))

    def test_a_file_that_nova_cannot_use(self):
        for entries in (
            [an_entry(POOL, 'HW_CPU_X86_VMX')],
            2 * [an_entry(POOL, RACK)],
            [{}],
        ):
            self.assertRaises(
                exception.ProviderConfigException, self.line_for, a=entries
            )


class TestLineGiving(ProviderConfigsTestCase):
    def line_giving(self, *entries):
        return self.configs(a=list(entries)).line_giving(RACK)

    def test_the_node(self):
        for method, name in (
            ('uuid', '$COMPUTE_NODE'),
            ('name', NODE),
            ('uuid', NODE_UUID),
        ):
            self.assertIn(
                f'a.yaml: provider with {method} {name}',
                self.line_giving(an_entry(name, RACK, method=method)),
            )
            self.assertIsNone(
                self.line_giving(
                    an_entry(name, 'CUSTOM_RACK_8', method=method)
                )
            )

    def test_another_entry_overrules_that_of_all_nodes(self):
        default = an_entry('$COMPUTE_NODE', RACK, method='uuid')
        for method, name in ('name', NODE), ('uuid', NODE_UUID):
            self.assertIsNone(
                self.line_giving(
                    default, an_entry(name, 'CUSTOM_RACK_8', method=method)
                )
            )
        self.assertIsNotNone(
            self.line_giving(default, an_entry('host2', 'CUSTOM_RACK_8'))
        )

    def test_a_provider_of_nova(self):
        for name in f'{NODE}_pci_0000_81_00_0', f'{NODE}_0000:81:00.0':
            self.assertIn(name, self.line_giving(an_entry(name, RACK)))

    def test_one_that_is_not_here(self):
        for name in (
            'host2',
            'host2_pci_0000_81_00_0',
            'host10',
            f'{NODE}_accel_pci_0000_99_00_0',
        ):
            self.assertIsNone(self.line_giving(an_entry(name, RACK)))
