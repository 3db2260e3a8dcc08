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

import datetime

import testtools
import webob

from nova_accel.api.http import representation


class TestRepresentation(testtools.TestCase):
    def test_a_link_leads_to_where_the_client_came(self):
        request = webob.Request.blank(
            '/device_profiles', base_url='https://cloud:8774/accelerator/v2'
        )
        self.assertEqual(
            [
                {
                    'href': 'https://cloud:8774/accelerator/v2/device_profiles/u',
                    'rel': 'self',
                }
            ],
            representation.link(request, 'device_profiles', 'u'),
        )

    def test_times_have_their_offset(self):
        at = datetime.datetime(2026, 11, 20, 19, 10, 25, tzinfo=datetime.UTC)
        self.assertEqual(
            {'created_at': '2026-11-20T19:10:25+00:00', 'updated_at': None},
            representation.times({'created_at': at, 'updated_at': None}),
        )
