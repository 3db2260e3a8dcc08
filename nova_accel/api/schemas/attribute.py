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


"""An attribute that an operator notes of a deployable."""

from nova_accel.api.schemas import scalars
from nova_accel.model import attribute

CREATE = scalars.strict_object(
    {
        # A number, which clients also send as a text, or a uuid.
        'deployable_id': {'type': ['integer', 'string']},
        'key': scalars.NAME,
        'value': {**scalars.TEXT, 'maxLength': attribute.MAX_VALUE_LENGTH},
    }
)
