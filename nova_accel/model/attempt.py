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

It counts: the host proposes one more than the last that it knows, and the
database admits what is newer than all that it knows of. A host that lost its
journal, or forgot an instance that was gone for a while, is told the newest
and goes on from there. No clock has a say in it, with one exception: hosts of
the release before take the time in nanoseconds. Such a number is admitted if
it is no later than a day from now.
"""

#: The highest number that a host may propose. So a number that the database
#: stores is never near the end of its column.
MAX = 2 ** 62

#: How far ahead of the newest known number one may be. Each attempt that the
#: database has not heard of, for a lost request, is one number.
REACH = 2 ** 20

#: Numbers from here on are times in nanoseconds (it was in 2006).
_FIRST_TIME = 2 ** 60

_DAY_NS = 24 * 60 * 60 * 10 ** 9


def is_in_reach(attempt: int, newest: int, now_ns: int) -> bool:
    """Whether a host can have come to the number by counting.

    :param newest: of what is known of the instance on the host, 0 if nothing
    :param now_ns: the time in nanoseconds since 1970
    """
    return (attempt <= newest + REACH
            or _FIRST_TIME <= attempt <= now_ns + _DAY_NS)
