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


import dataclasses

import testscenarios

from db import base
from nova_accel import exceptions
from nova_accel.db import cleaning_results
from nova_accel.db import device
from nova_accel.db import explanation
from nova_accel.db import host_arqs
from nova_accel.model.devices import hardware
from nova_accel.model.profiles import device_profile
from nova_accel.model.units import explanation as explanation_model
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios


class TestUnits(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(
            regions=(2, 1), functions=3, cleaned=True
        )
        self.host.clean()
        self.make_profile()

    def found(
        self, *resource_classes: str
    ) -> dict[str, dict[str | None, int]]:
        """Provider uuid -> why units are not free -> how many."""
        return {
            each.rp_uuid: dict(each.units)
            for each in explanation_model.inventories(
                explanation.get_page(resource_classes, 9)[1]
            )
        }

    def test_those_of_the_classes(self) -> None:
        fpgas = {
            self.host.rp_uuid(*region): {None: 1}
            for region in ((0, 0), (0, 1), (1, 0))
        }
        self.assertEqual(fpgas, self.found('FPGA'))
        self.assertEqual([{None: 3}], list(self.found('CUSTOM_QAT').values()))
        self.assertEqual(4, len(self.found('FPGA', 'CUSTOM_QAT')))
        self.assertEqual({}, self.found('VGPU'))

    def test_why_they_are_not_free(self) -> None:
        rp_uuid = self.host.rp_uuid()
        request = self.request()
        [arq] = host_arqs.acquire(request)
        for why in (
            'in use',
            'being cleaned',
            'not cleaned: stuck',
            'faulty: hot',
            'disabled by an administrator',
        ):
            if why == 'being cleaned':
                host_arqs.release(*request.key, 1)
            elif why == 'not cleaned: stuck':
                cleaning_results.note(
                    self.host.hostname,
                    [],
                    {arq['attach_handle_uuid']: 'stuck'},
                    9,
                )
            elif why == 'faulty: hot':
                dataclasses.replace(self.host, faults=((0, 'hot'),)).report()
            elif why == 'disabled by an administrator':
                device.set_status(
                    self.host.device_uuid(), hardware.Status.MAINTAINING
                )
            self.assertEqual({why: 1}, self.found('FPGA')[rp_uuid])

    def test_what_placement_still_reserves(self) -> None:
        """Until the host reports, which is named."""
        uuid = self.host.device_uuid(1)
        provider = self.host.rp_uuid(1, 0)
        for status in (hardware.Status.MAINTAINING, hardware.Status.ENABLED):
            device.set_status(uuid, status)
        self.assertEqual(
            {'reserved in Placement until host compute-1 reports': 1},
            self.found('FPGA').pop(provider),
        )
        self.assertEqual(
            {None: 1}, self.found('FPGA')[self.host.rp_uuid(0, 0)]
        )
        self.host.follow()
        self.assertEqual({None: 1}, self.found('FPGA')[provider])

    def test_what_others_of_a_card_exclude(self) -> None:
        self.host = reports.SimulatedHost('cards', regions=(), cards=2)
        self.host.report()
        self.make_profile(
            *device_profile.checked_groups([{'accel:shape': reports.HALF}]),
            name='half',
        )
        host_arqs.acquire(
            self.request(
                self.host.allocated_shapes(reports.HALF),
                device_profile_name='half',
            )
        )
        excluded = 'other units of its card leave no room for it'
        for resource_class, taken, free in (
            ('CUSTOM_SHAPE_WHOLE', {excluded: 1}, {None: 1}),
            ('CUSTOM_SHAPE_MIG_3G_40GB', {'in use': 1, None: 1}, {None: 2}),
        ):
            self.assertEqual(
                {self.host.card(0): taken, self.host.card(1): free},
                self.found(resource_class),
            )

    def test_what_a_host_reports_no_more(self) -> None:
        request = self.request(self.host.allocated(1))
        host_arqs.acquire(request)
        dataclasses.replace(self.host, regions=(2, None)).report()
        self.assertEqual({}, self.found('FPGA')[self.host.rp_uuid(1)])


class TestGetPage(base.DatabaseTestCase):
    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        for name, functions in (('b', 1), ('a-1', 1), ('A', 1), ('c', 0)):
            reports.SimulatedHost(
                name, regions=(1,), functions=functions
            ).report()

    def pages(self, *resource_classes: str) -> list[list[str]]:
        found: list[list[str]] = []
        while not found or found[-1]:
            hostnames, units = explanation.get_page(
                resource_classes, 2, found[-1][-1] if found else None
            )
            self.assertEqual({*hostnames}, {each.hostname for each in units})
            found.append(hostnames)
        return found[:-1]

    def test_each_host_once(self) -> None:
        """In the order of the database, which is the marker's too."""
        pages = self.pages('FPGA')
        self.assertEqual([2, 2], [len(page) for page in pages])
        self.assertEqual({'a-1', 'A', 'b', 'c'}, {*pages[0], *pages[1]})

    def test_only_hosts_of_the_classes(self) -> None:
        self.assertEqual(
            {'a-1', 'A', 'b'},
            {name for page in self.pages('CUSTOM_QAT') for name in page},
        )
        self.assertEqual([], self.pages('VGPU'))

    def test_one_host(self) -> None:
        hostnames, units = explanation.get_page(['FPGA'], 9, hostname='a-1')
        self.assertEqual(['a-1'], hostnames)
        self.assertEqual({'a-1'}, {each.hostname for each in units})
        self.assertEqual(
            ([], []), explanation.get_page(['PGPU'], 9, hostname='a-1')
        )
        error = self.assertRaises(
            exceptions.NotFound,
            explanation.get_page,
            ['FPGA'],
            9,
            hostname='nowhere',
        )
        self.assertIn('Host nowhere not found', str(error))
