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

"""The number of an attempt to hold something for an instance on a host.

Attempts are counted. A host proposes one more than the last number that it
knows, and the database accepts it if it is higher than all that it has seen. A
host that lost its journal, or forgot an instance that was gone for a while, is
told the newest number and goes on from there. Clocks play no part.
"""

from nova_accel.model import decoding

#: The highest number that a host may propose. It keeps stored numbers far from
#: the end of their column.
MAX = 2**62

#: How far a number may be ahead of the newest known one. Each attempt whose
#: request was lost uses up one number.
REACH = 2**20

#: The reader of a number in plain JSON.
from_json = decoding.integer(1, MAX)


def is_in_reach(attempt: int, newest: int) -> bool:
    """Whether a host can have come to the number by counting.

    :param newest: the highest number known for the instance on the host, 0 if
        none
    """
    return attempt <= newest + REACH
