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
told the newest number and goes on from there. Clocks play no part, with one
exception: hosts of the previous release send the time in nanoseconds. Such a
number is accepted if it is at most a day in the future.
"""

from nova_accel.model import decoding

#: The highest number that a host may propose. It keeps stored numbers far from
#: the end of their column.
MAX = 2**62

#: How far a number may be ahead of the newest known one. Each attempt whose
#: request was lost uses up one number.
REACH = 2**20

#: Numbers from here on are times in nanoseconds (this one was in 2006).
_FIRST_TIME = 2**60

#: The reader of a number in plain JSON.
from_json = decoding.integer(1, MAX)

_DAY_NS = 24 * 60 * 60 * 10**9


def is_in_reach(attempt: int, newest: int, now_ns: int) -> bool:
    """Whether a host can have come to the number by counting.

    :param newest: the highest number known for the instance on the host, 0 if
        none
    :param now_ns: the time in nanoseconds since 1970
    """
    return (
        attempt <= newest + REACH or _FIRST_TIME <= attempt <= now_ns + _DAY_NS
    )
