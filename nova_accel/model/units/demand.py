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

"""The demand for something, which counts less the longer ago it was."""


def decayed(weight: float, age_s: float, half_life_s: float) -> float:
    """The weight of a demand now.

    :param weight: its weight ``age_s`` seconds ago; a negative age, from a
        clock that was set back, counts as none
    :param half_life_s: after so many seconds a demand counts half
    """
    return weight * 0.5 ** (max(age_s, 0.0) / half_life_s)
