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

"""Why no instance can get an attach handle that is free."""

import dataclasses

from nova_accel.model import hardware

#: The reasons that tenants may read.
DISABLED = 'disabled'
FAULTY = 'faulty'
NOT_CLEAN = 'not clean'

_BY_AN_ADMINISTRATOR = f'{DISABLED} by an administrator'
_FAILED = 'not cleaned'
_BEING_CLEANED = 'being cleaned'


@dataclasses.dataclass(frozen=True)
class Condition:
    """The condition of an attach handle and of its device.

    ``is_present`` says that its host reports it. ``status`` is the device's
    :class:`nova_accel.model.hardware.Status`, ``fault`` the device's fault.
    An unclean handle has an ``unclean_reason`` if its cleaning has failed.
    """

    is_present: bool
    status: str
    fault: str | None
    is_clean: bool
    unclean_reason: str | None

    @property
    def unclean(self) -> str | None:
        """Why the handle is not clean, None if it is."""
        if self.is_clean:
            return None
        if self.unclean_reason is not None:
            return f'{_FAILED}: {self.unclean_reason}'
        return (
            _BEING_CLEANED
            if self.is_present
            else 'gone from its host before it was cleaned'
        )

    @property
    def reason(self) -> str | None:
        """Why no guest can have it, None if one can."""
        if self.status != hardware.Status.ENABLED:
            return _BY_AN_ADMINISTRATOR
        if self.fault is not None:
            return f'{FAULTY}: {self.fault}'
        if self.unclean is not None:
            return self.unclean
        return None if self.is_present else 'gone from its host'


def public(reason: str) -> str:
    """A reason in the words that a tenant may read.

    The words of a host or a device are left out.
    """
    if reason == _BY_AN_ADMINISTRATOR:
        return DISABLED
    if reason.startswith(f'{FAULTY}: '):
        return FAULTY
    if reason == _BEING_CLEANED or reason.startswith(f'{_FAILED}: '):
        return NOT_CLEAN
    return reason
