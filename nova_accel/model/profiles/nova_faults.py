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

"""The releases of Nova with faults that undo what nova_accel promises."""

import re

#: The form of a version -> what is wrong with it, and the cure.
_FAULTS = {
    re.compile(r'33\.0\.[01](?![0-9]).*'): (
        'has CVE-2026-46448: a rebuild with a scheduler hint skips Placement '
        'and all request filters, so that limits and the ownership of devices '
        'are not looked at. Upgrade Nova to 33.0.2 or later, on all '
        'controllers first'
    ),
}


def fault(version: str) -> str | None:
    """The known fault of a release of Nova, None if there is none.

    :param version: such as ``33.0.1``, in the form of PEP 440
    """
    return next(
        (words for form, words in _FAULTS.items() if form.fullmatch(version)),
        None,
    )
