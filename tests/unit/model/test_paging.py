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
from nova_accel.model import paging

KNOWN = frozenset({'name', 'created_at'})


class TestParseLimit(testtools.TestCase):
    def test_numbers(self) -> None:
        for text, limit in (
            ('1', 1),
            ('7', 7),
            ('1000', 1000),
            ('1001', 1000),
            ('999999999', 1000),
        ):
            self.assertEqual(limit, paging.parse_limit(text))

    def test_others(self) -> None:
        for text in ('', '0', '-1', '+1', 'x', '1.0', '1' * 10, '\u0661'):
            error = self.assertRaises(
                exceptions.InvalidRequest, paging.parse_limit, text
            )
            self.assertIn('limit', str(error))


class TestParseSort(testtools.TestCase):
    def test_keys_and_directions(self) -> None:
        self.assertEqual(
            (paging.SortKey('name', True), paging.SortKey('created_at')),
            paging.parse_sort('name:desc,created_at', KNOWN),
        )
        self.assertEqual(
            (paging.SortKey('name'),), paging.parse_sort('name:asc', KNOWN)
        )

    def test_the_culprit_is_named(self) -> None:
        for text, culprit in (
            ('', '""'),
            ('id', '"id"'),
            ('name,', '""'),
            ('name:', 'of name: ""'),
            ('name:up', '"up"'),
            ('name:desc:asc', '"desc:asc"'),
            ('name,name:desc', 'name more than once'),
        ):
            error = self.assertRaises(
                exceptions.InvalidRequest, paging.parse_sort, text, KNOWN
            )
            self.assertIn(culprit, str(error))
