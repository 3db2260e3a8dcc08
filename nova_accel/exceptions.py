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

"""All faults that nova_accel raises; the API sends the classes' names.

A fault is raised where it is found, with the name of the culprit in its text.
It is translated once, at the edge: to an HTTP status by ``nova_accel.api``, to
Nova's exceptions by ``nova_accel.virt`` and ``nova_accel.scheduler``.

Each fault has two texts. ``str()`` is for logs and administrators. It may name
hosts, resource providers and addresses of devices. ``public`` is for tenants.
It says what happened and what they can do, and nothing about the cloud's
infrastructure. Each class has a default; the code that raises a fault may give
a better text. Both are printable, because Nova logs them, and hosts, tools and
tenants have a say in them.
"""

from collections.abc import Mapping
from typing import ClassVar
from typing import Self

from nova_accel import reason
from nova_accel.i18n import _


class AcceleratorError(Exception):
    """The base of all faults.

    :param text: for logs and administrators
    :param public: for tenants, None for the text of the class
    """

    #: The default text for tenants. None means the text itself, which only has
    #: what the caller has named.
    PUBLIC: ClassVar[str | None] = _(
        'its accelerators cannot be used at the moment: try again, or ask an '
        'administrator'
    )

    def __init__(self, text: str = '', *, public: str | None = None) -> None:
        super().__init__(reason.printable(text))
        self._public = public and reason.printable(public)

    @property
    def public(self) -> str:
        """The text of the fault that tenants may read."""
        return self._public or self.PUBLIC or str(self)

    @classmethod
    def for_all(cls, text: str) -> Self:
        """A fault whose text tenants may read, too."""
        return cls(text, public=text)


class InvalidRequest(AcceleratorError):
    """The caller asked for something that is malformed (HTTP 400)."""

    PUBLIC: ClassVar[str | None] = None


class InvalidDeviceProfile(InvalidRequest):
    """A device profile, or one group of it, is malformed."""


class InvalidName(InvalidRequest):
    """A text cannot become a trait, resource class or PCI address."""

    PUBLIC = _(
        'a name of something that its accelerators need is malformed: '
        'ask an administrator'
    )


class InvalidDeviceSpec(AcceleratorError):
    """``[nova_accel] device_spec`` is wrong; the text has the line."""


class NotFound(AcceleratorError):
    """The named thing does not exist, or not for this caller (HTTP 404)."""

    PUBLIC: ClassVar[str | None] = None


class BitstreamNotFound(NotFound):
    """No bitstream meets the request, or the caller may not see it."""

    PUBLIC = _(
        'the bitstream does not exist or fits none of its accelerators: '
        'look at the properties of the image, and who may see it'
    )


class NotAllowed(AcceleratorError):
    """The caller does not have the right to do this (HTTP 403)."""

    PUBLIC: ClassVar[str | None] = None


class OverQuota(NotAllowed):
    """A project would have more accelerators than it may (HTTP 403).

    :ivar over: resource class -> the limit that would be exceeded
    """

    def __init__(
        self,
        text: str = '',
        over: Mapping[str, int] | None = None,
        *,
        public: str | None = None,
    ) -> None:
        super().__init__(text, public=public)
        self.over = over or {}


class Conflict(AcceleratorError):
    """The request is valid, but the present state forbids it (HTTP 409)."""

    PUBLIC: ClassVar[str | None] = _(
        'its accelerators are in a state that forbids it: try again, or '
        'ask an administrator'
    )


class StaleAttempt(Conflict):
    """A newer attempt already holds, or has released, this binding.

    :ivar newest: the number of the newest attempt, from which the host goes on
        counting; None if others have asked at the same time
    """

    def __init__(
        self,
        text: str = '',
        newest: int | None = None,
        *,
        public: str | None = None,
    ) -> None:
        super().__init__(text, public=public)
        self.newest = newest


class FarAttempt(InvalidRequest):
    """No host can have counted to the number of this attempt.

    :ivar newest: as for :class:`StaleAttempt`
    """

    PUBLIC = _(
        'the accelerator API and the host do not agree on the number '
        'of earlier attempts: ask an administrator'
    )

    def __init__(
        self,
        text: str = '',
        newest: int | None = None,
        *,
        public: str | None = None,
    ) -> None:
        super().__init__(text, public=public)
        self.newest = newest


class NoAssignment(Conflict):
    """No assignment of the profile's groups to the given providers exists."""

    PUBLIC = _(
        'the allocated accelerators do not serve its device profile: '
        'try again, or ask an administrator'
    )


class AcceleratorsBusy(Conflict):
    """Fewer attach handles are free than the allocations promise.

    :ivar summary: the text without the details of devices that others have, or
        had
    """

    PUBLIC = _(
        'fewer accelerators are free than its device profile asks for: '
        'try again later'
    )

    def __init__(
        self, summary: str, details: str = '', *, public: str | None = None
    ) -> None:
        super().__init__(f'{summary}{details}', public=public)
        self.summary = summary


class BitstreamRefused(Conflict):
    """A bitstream does not fit the region, or cannot be trusted."""

    PUBLIC = _(
        'the bitstream does not fit the accelerator, or cannot be '
        'trusted: look at the properties of the image'
    )


class BitstreamUnusable(BitstreamRefused):
    """The bitstream itself is at fault, so other hosts would refuse it, too.

    Its public text begins with the cure, because Nova keeps only 255
    characters of a server's fault.

    :ivar bitstream_id: the uuid of its image
    """

    def __init__(
        self,
        text: str = '',
        bitstream_id: str = '',
        *,
        public: str | None = None,
    ) -> None:
        super().__init__(text, public=public)
        self.bitstream_id = bitstream_id


class InvalidTransition(Conflict):
    """An ARQ may not go from its present state to the wanted one."""

    PUBLIC: ClassVar[str | None] = None


class DeviceError(AcceleratorError):
    """A device refused a step, or is not what its driver expects."""

    PUBLIC = _('an accelerator has failed: try again, or ask an administrator')


class PartOfCard(DeviceError):
    """A PCI function is no device of its own, but a part of a card.

    :param card: the address of the function that stands for the card
    """

    def __init__(
        self, text: str = '', card: object = None, *, public: str | None = None
    ) -> None:
        super().__init__(text, public=public)
        self.card = card


class NotMadeYet(DeviceError):
    """nova-compute makes the virtual functions of a card when it starts."""


class FabricError(DeviceError):
    """Fabric Manager refused, or gave no usable answer."""

    PUBLIC = _(
        'the links between its accelerators could not be set up: try again, '
        'or ask an administrator'
    )


class FabricNotReady(FabricError):
    """Fabric Manager starts, or waits to be told what is active."""


class RefusedByHost(AcceleratorError):
    """A host's refusal, in the form of :mod:`nova_accel.model.host_rpc`."""


class DiskError(DeviceError):
    """The host's disk refused, and the stored data are unchanged."""

    PUBLIC = _(
        'a change to its accelerators could not be stored: try again, '
        'or ask an administrator'
    )


class ServiceUnavailable(AcceleratorError):
    """The accelerator API gave no usable answer."""

    PUBLIC = _(
        'a service that accelerators need does not answer: try again later'
    )


class NoAnswerInTime(ServiceUnavailable):
    """A host did not answer in time, and may still be working (HTTP 504)."""

    PUBLIC = _(
        'the accelerator has not answered in time, and may still be '
        'working: look at it again later'
    )


class TooBusy(ServiceUnavailable):
    """As many calls wait for hosts as may (HTTP 503 with ``Retry-After``)."""

    PUBLIC = _(
        'too many calls wait for compute hosts at the moment: try again later'
    )

    #: The seconds after which the caller should try again.
    RETRY_AFTER_S: ClassVar[int] = 5


class CyborgAgentUnavailable(ServiceUnavailable):
    """This host's devices are not published; the name comes from os-acc."""


class ConfigurationError(AcceleratorError):
    """The service cannot start; the text names the option."""
