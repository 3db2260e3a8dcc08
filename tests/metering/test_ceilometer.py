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

"""Ceilometer's own parsers read our files, and the manual's notifications.

Each of these is what the API sends, see
``unit/api/notifications/test_arq_notification.py``. Ceilometer runs in an
environment of its own, in which Nova and nova_accel are not.
"""

import copy
import datetime
import json
import pathlib
from typing import Any
import unittest

from ceilometer import service
from ceilometer.event import converter
from ceilometer.meter import notifications
from ceilometer.publisher import gnocchi
from stevedore import extension
import yaml

_CHECKOUT = pathlib.Path(__file__).parents[2]
_FILES = _CHECKOUT / 'etc/nova_accel/ceilometer'
_SAMPLES = _CHECKOUT / 'doc/notification_samples'

_PROJECT = 'a' * 32
_INSTANCE = 'a4f042a3-66d5-42e6-9a32-5f237aa0402f'
_ARQ = '00000000-0000-4000-8000-000000000100'
_OTHER = '00000000-0000-4000-8000-000000000101'


def _message(name: str) -> dict[str, Any]:
    """A notification as the message bus has it."""
    path = _SAMPLES / f'accelerator_request-{name}.json'
    return {
        **json.loads(path.read_text()),
        'metadata': {
            'message_id': '00000000-0000-4000-8000-000000000001',
            'timestamp': '2026-11-22 13:00:00.5',
        },
        # The caller is Nova, whose project is not billed.
        'ctxt': {'project_id': 'service', 'user_id': 'nova'},
    }


def _two(name: str) -> dict[str, Any]:
    """The same, of a server with two units."""
    message = _message(name)
    arqs = message['payload']['nova_object.data']['accelerator_requests']
    arqs.append(copy.deepcopy(arqs[0]))
    arqs[1]['nova_object.data']['uuid'] = _OTHER
    return message


class CeilometerTest(unittest.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.conf = service.prepare_service([], [])
        self.conf.set_override(
            'meter_definitions_dirs', [str(_FILES / 'meters.d')], 'meter'
        )
        self.conf.set_override(
            'definitions_cfg_file',
            str(_FILES / 'event_definitions.yaml'),
            'event',
        )
        self.conf.set_override('drop_unmatched_notifications', True, 'event')
        self.plugins = extension.ExtensionManager(
            'ceilometer.event.trait_plugin'
        )

    def event(self, name: str) -> tuple[str, dict[str, Any]] | None:
        """The type and the traits."""
        found = converter.setup_events(self.conf, self.plugins).to_event(
            'info', _message(name)
        )
        return found and (
            found.event_type,
            {trait.name: trait.value for trait in found.traits},
        )

    def samples(self, message: dict[str, Any]) -> list[Any]:
        meters = notifications.ProcessMeterNotifications(self.conf, None)
        self.assertEqual(2, len(meters.definitions))
        return list(meters.build_sample(message))

    def test_events(self) -> None:
        common = {
            'service': 'nova-api:controller',
            'project_id': _PROJECT,
            'tenant_id': _PROJECT,
            'user_id': 'nova',
            'instance_id': _INSTANCE,
            'host': 'compute-1',
            'role': 'active',
            'device_profile': 'profile',
            'resource_id': _ARQ,
            'resource_class': 'FPGA',
            'product': 'PAC_ARRIA10',
            'shape': '',
            'bound_at': datetime.datetime(2026, 11, 22, 12),
        }
        self.assertEqual(
            ('accelerator_request.bind.end', common), self.event('bind-end')
        )
        self.assertEqual(
            (
                'accelerator_request.unbind.end',
                {
                    **common,
                    'unbound_at': datetime.datetime(2026, 11, 22, 13),
                    'held_seconds': 3600,
                },
            ),
            self.event('unbind-end'),
        )

    def test_faults(self) -> None:
        for name in ('bind-error', 'unbind-error', 'fail'):
            found = self.event(name)
            assert found is not None
            self.assertTrue(found[1]['fault'], name)
            self.assertEqual(_INSTANCE, found[1]['instance_id'])

    def test_no_event(self) -> None:
        self.assertIsNone(self.event('bind-start'))

    def test_a_sample_for_each_unit(self) -> None:
        for name, kind in (
            ('bind-end', ('accelerator.unit', 'gauge', 'unit', 1)),
            ('unbind-end', ('accelerator.unit.held', 'delta', 's', 3600)),
        ):
            found = self.samples(_two(name))
            self.assertEqual(
                [_ARQ, _OTHER], [sample.resource_id for sample in found]
            )
            for sample in found:
                self.assertEqual(
                    (*kind, _PROJECT),
                    (
                        sample.name,
                        sample.type,
                        sample.unit,
                        sample.volume,
                        sample.project_id,
                    ),
                )
                self.assertEqual(
                    (_INSTANCE, 'FPGA', 'PAC_ARRIA10'),
                    tuple(
                        sample.resource_metadata[key]
                        for key in (
                            'instance_id',
                            'resource_class',
                            'product',
                        )
                    ),
                )

    def test_no_sample(self) -> None:
        for name in ('bind-start', 'bind-error', 'unbind-start', 'fail'):
            self.assertEqual([], self.samples(_message(name)), name)

    def test_resources_of_gnocchi(self) -> None:
        [defined] = yaml.safe_load(
            (_FILES / 'gnocchi_resources.yaml').read_text()
        )
        resources = gnocchi.ResourcesDefinition(
            defined, 'ceilometer-low', None, self.plugins
        )
        for name in ('bind-end', 'unbind-end'):
            [sample] = self.samples(_message(name))
            self.assertIn(sample.name, resources.metrics)
            self.assertEqual(
                {
                    'instance_id': _INSTANCE,
                    'host': 'compute-1',
                    'role': 'active',
                    'device_profile': 'profile',
                    'resource_class': 'FPGA',
                    'product': 'PAC_ARRIA10',
                },
                resources.sample_attributes(sample),
            )


if __name__ == '__main__':
    unittest.main()
