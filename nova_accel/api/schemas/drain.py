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

"""``/hosts/{hostname}/drain``: a host whose devices no one is to get."""

from nova_accel.api.schemas import scalars
from nova_accel.model import iso_time

#: Times are checked as such, too.
_TIME_OR_NULL: scalars.Schema = {
    'anyOf': [
        {'type': 'string', 'pattern': iso_time.TIME},
        {'type': 'null'},
    ]
}

#: Before microversion 2.5.
DRAIN_OF_2_4 = scalars.strict_object(
    {
        'reason': {**scalars.REASON, 'minLength': 1},
        'until': _TIME_OR_NULL,
    },
    'until',
)

DRAIN = scalars.strict_object(
    {**DRAIN_OF_2_4['properties'], 'from': _TIME_OR_NULL}, 'from', 'until'
)
