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

"""The results of the checks of ``nova-accel-status``."""

from collections.abc import Sequence

from oslo_upgradecheck import upgradecheck

from nova_accel import reason

#: How many names a line has.
_MOST_NAMES = 10


def success(details: str | None = None) -> upgradecheck.Result:
    return _result(upgradecheck.Code.SUCCESS, details)


def warning(details: str) -> upgradecheck.Result:
    return _result(upgradecheck.Code.WARNING, details)


def failure(details: str) -> upgradecheck.Result:
    return _result(upgradecheck.Code.FAILURE, details)


def named(names: Sequence[str]) -> str:
    """Such as "a, b and 2 more"."""
    return reason.some(names, _MOST_NAMES)


def _result(
    code: upgradecheck.Code, details: str | None
) -> upgradecheck.Result:
    """A result with printable details: hosts have a say in them."""
    return upgradecheck.Result(
        code, None if details is None else reason.printable(details)
    )
