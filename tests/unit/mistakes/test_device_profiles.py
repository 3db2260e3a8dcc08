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

"""Mistakes in device profiles, as the API answers them."""

from typing import Any

import testscenarios

from nova_accel.testing import reports
from unit.api import base as api_base
from unit.mistakes import base

_mistake = base.mistake


class TestRefused(
    testscenarios.WithScenarios, api_base.ApiTestCase, base.MistakeTestCase
):
    """The profile is not stored."""

    groups: list[dict[str, Any]] = [{'resources:FPGA': '1'}]
    profile = 'gold'

    scenarios = [
        _mistake(
            'a key without its kind',
            ': FPGA',
            'must be of the form ^(resources:|trait:|accel:)',
            groups=[{'FPGA': '1'}],
        ),
        _mistake(
            'a class that does not exist',
            'Unsupported resource class FGPA',
            'FPGA, PGPU, VGPU, or CUSTOM_ and upper-case letters',
            groups=[{'resources:FGPA': '1'}],
        ),
        _mistake(
            'no units',
            'Resources number 0 is invalid for FPGA',
            'must be 1 to 64',
            groups=[{'resources:FPGA': '0'}],
        ),
        _mistake(
            'a trait of the hardware',
            'Unsupported trait name format HW_GPU',
            'should start with CUSTOM_',
            groups=[{'resources:PGPU': '1', 'trait:HW_GPU': 'required'}],
        ),
        _mistake(
            'a trait in lower case',
            'Unsupported trait name format CUSTOM_a100',
            'should have upper-case letters, digits and _ only',
            groups=[{'resources:PGPU': '1', 'trait:CUSTOM_a100': 'required'}],
        ),
        _mistake(
            'a trait that is preferred',
            'Unsupported trait value preferred',
            "['required', 'forbidden'] for CUSTOM_A100",
            groups=[{'resources:PGPU': '1', 'trait:CUSTOM_A100': 'preferred'}],
        ),
        _mistake(
            'an unknown property',
            'accel:bitstream',
            'the accel: keys are bitstream_id, function_id, ',
            groups=[{'resources:FPGA': '1', 'accel:bitstream': 'gzip'}],
        ),
        _mistake(
            'the name of a bitstream',
            "Invalid value 'gzip' of accel:bitstream_id",
            'it must be a uuid',
            groups=[{'resources:FPGA': '1', 'accel:bitstream_id': 'gzip'}],
        ),
        _mistake(
            'a link of one unit',
            'accel:link=nvlink',
            'let the group ask for more units',
            groups=[{'resources:PGPU': '1', 'accel:link': 'nvlink'}],
        ),
        _mistake(
            'only traits',
            'A device profile group',
            'needs a resources: key',
            groups=[{'trait:CUSTOM_A100': 'required'}],
        ),
        _mistake(
            'our own trait is forbidden',
            'group 0 forbids CUSTOM_NOVA_ACCEL',
            'leave this key out',
            groups=[
                {
                    'resources:FPGA': '1',
                    'trait:CUSTOM_NOVA_ACCEL': 'forbidden',
                }
            ],
        ),
        _mistake(
            'a name with a blank',
            "'my gold'",
            'must be of the form ^[a-zA-Z0-9-_]+$',
            profile='my gold',
        ),
    ]

    def test_it_is_told(self) -> None:
        self.assert_told(
            self.refused(
                400,
                'POST',
                '/device_profiles',
                [{'name': self.profile, 'groups': self.groups}],
            )
        )
        self.assertEqual(
            [], self.ok('GET', '/device_profiles')['device_profiles']
        )


class TestDoubtful(
    testscenarios.WithScenarios, api_base.ApiTestCase, base.MistakeTestCase
):
    """The profile is stored, for devices that may come."""

    group: dict[str, str]

    scenarios = [
        _mistake(
            'a trait that no one has',
            'with CUSTOM_FAKE_DEVISE, which group 0 requires',
            'is it misspelt?',
            group={
                'resources:FPGA': '1',
                'trait:CUSTOM_FAKE_DEVISE': 'required',
            },
        ),
        _mistake(
            'a class that no one has',
            'CUSTOM_QTA, which group 0 asks for',
            'is it misspelt?',
            group={'resources:CUSTOM_QTA': '1'},
        ),
        _mistake(
            'a set that no host has',
            'no host has FPGA=3 joined by NVLink, as group 0 asks for',
            'hosts have no such sets',
            group={'resources:FPGA': '3', 'accel:link': 'nvlink'},
        ),
    ]

    def test_it_is_warned_of(self) -> None:
        self.report_host()
        good = self.call(
            'POST',
            '/device_profiles',
            [{'name': 'good', 'groups': [api_base.GROUP]}],
        )
        self.assertEqual([], good.headers.getall('Warning'))
        for method, path, body in (
            (
                'POST',
                '/device_profiles',
                [{'name': 'doubtful', 'groups': [self.group]}],
            ),
            (
                'PUT',
                f'/device_profiles/{good.json["uuid"]}',
                {'groups': [self.group]},
            ),
        ):
            answer = self.call(method, path, body, version='2.4')
            self.assertLess(answer.status_int, 300, answer.text)
            [warning] = answer.headers.getall('Warning')
            self.assertRegex(warning, '^299 nova_accel ".*"$')
            self.assert_told(warning)
        self.assert_told(self.log.output)


class TestApart(api_base.ApiTestCase, base.MistakeTestCase):
    """One group asks for the devices of two hosts."""

    culprit = 'group 0 asks for CUSTOM_QAT and FPGA'
    cure = 'make one group for each'

    def test_it_is_told(self) -> None:
        reports.SimulatedHost('compute-2', (), functions=1).report()
        group = {'resources:FPGA': '1', 'resources:CUSTOM_QAT': '1'}
        profile = [{'name': 'both', 'groups': [group]}]
        self.ok('POST', '/device_profiles', profile, version='2.4')
        self.report_host()
        profile[0]['name'] = 'late'
        self.assert_told(
            self.refused(409, 'POST', '/device_profiles', profile)
        )
