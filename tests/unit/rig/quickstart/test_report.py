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

import json

import fixtures
import testtools

from rig.quickstart import report as quickstart_report


class TestReport(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.stdout, self.stderr = (
            self.useFixture(fixtures.StringStream(name)).stream
            for name in ('stdout', 'stderr')
        )
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', self.stdout))
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', self.stderr))

    def said(self, stream: str = 'stdout') -> str:
        getattr(self, stream).seek(0)
        return str(getattr(self, stream).read())

    def test_plain_lines_are_whole_and_without_colour(self) -> None:
        report = quickstart_report.Report()
        report.step('a [bold] step')
        report.line('x' * 300)
        report.rows('table', ('name', 'traits'), [('n', ['A', 'B'])])
        self.assertIn('1. a [bold] step\n', self.said())
        self.assertIn('x' * 300, self.said())
        self.assertRegex(self.said(), r'(?m)^     n     A B *$')
        self.assertNotIn('\x1b', self.said())

    def test_difference_is_named(self) -> None:
        report = quickstart_report.Report()
        report.step('a step')
        report.check('what is right', 1, 1)
        report.check('usage', {'FPGA': 1}, {'FPGA': 2})
        report.finish(None, '/tmp/some.log')
        self.assertEqual(
            ["usage: expected {'FPGA': 1}, found {'FPGA': 2}"],
            report.differences,
        )
        self.assertIn(
            f'not as expected: {report.differences[0]}\n', self.said()
        )
        self.assertIn('/tmp/some.log', self.said())

    def test_document(self) -> None:
        report = quickstart_report.Report(as_json=True)
        report.step('a step')
        report.rows('table', ('name', 'traits'), [('n', ['A', 'B'])])
        report.check('usage', 1, 1)
        report.finish(None, None)
        self.assertEqual(
            {
                'ok': True,
                'failure': None,
                'differences': [],
                'log': None,
                'steps': [
                    {
                        'title': 'a step',
                        'facts': {
                            'table': [{'name': 'n', 'traits': ['A', 'B']}]
                        },
                        'checks': [
                            {
                                'what': 'usage',
                                'good': True,
                                'expected': '1',
                                'found': '1',
                            }
                        ],
                    }
                ],
            },
            json.loads(self.said()),
        )
        self.assertIn('All 1 checks are as expected', self.said('stderr'))

    def test_failure_is_told_without_its_wrapping(self) -> None:
        report = quickstart_report.Report(as_json=True)
        cause = ValueError('the cause')
        report.finish(
            fixtures.MultipleExceptions((ValueError, cause, None)), None
        )
        document = json.loads(self.said())
        self.assertEqual(
            (False, 'ValueError: the cause'),
            (document['ok'], document['failure']),
        )
        self.assertIn('failed: ValueError: the cause', self.said('stderr'))
