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

import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import host
from nova_accel.db.sql import schema
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios

TWO_FPGAS = reports.SimulatedHost(regions=(2, 1), functions=3)


class TestCheck(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def test_nothing_of_another_host(self) -> None:
        """The host that has it is named, and nothing is changed."""
        TWO_FPGAS.report()
        other = reports.SimulatedHost('compute-2')
        other.report()
        before = self.everything()
        [own] = other.reported()
        device, *_others = TWO_FPGAS.reported()
        [deployable] = own['deployables']
        of_first = device['deployables'][0]
        handle = of_first['attach_handles'][0]

        def with_(**fields: Any) -> list[dict[str, Any]]:
            return [{**own, 'deployables': [{**deployable, **fields}]}]

        for devices, node_uuid, what in (
            (
                [own],
                TWO_FPGAS.node_uuid,
                f'compute node {TWO_FPGAS.node_uuid}',
            ),
            ([device], other.node_uuid, f'device {device["uuid"]}'),
            (
                with_(rp_uuid=of_first['rp_uuid']),
                other.node_uuid,
                f'resource provider {of_first["rp_uuid"]}',
            ),
            (
                with_(rp_uuid=TWO_FPGAS.node_uuid),
                other.node_uuid,
                f'compute node {TWO_FPGAS.node_uuid}',
            ),
            (
                with_(attach_handles=[handle]),
                other.node_uuid,
                f'attach handle {handle["uuid"]}',
            ),
        ):
            error = self.assertRaises(
                exceptions.Conflict,
                host.report,
                'compute-2',
                node_uuid,
                'compute-2',
                devices,
                'digest',
            )
            self.assertEqual(
                f'{what} belongs to host compute-1: if that is a former name '
                'of compute-2, have "nova-accel-manage host forget" forget it',
                str(error),
            )
            self.assertEqual(before, self.everything())

    def test_attach_handle_of_another_host(self) -> None:
        TWO_FPGAS.report()
        other = reports.SimulatedHost('compute-2', contract=0)
        [device] = [
            found.to_report(other.node_uuid, other.layout().rp_uuids)
            for found in other.devices()
        ]
        stolen = self.rows(schema.ATTACH_HANDLES)[0]['uuid']
        device['deployables'][0]['attach_handles'][0]['uuid'] = stolen
        self.assertRaises(
            exceptions.Conflict,
            host.report,
            'compute-2',
            other.node_uuid,
            'compute-2',
            [device],
            'digest',
        )
        self.assertEqual(1, len(self.rows(schema.HOSTS)))
