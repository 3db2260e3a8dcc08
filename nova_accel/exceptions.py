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

"""Every fault that nova_accel raises, and what each is called on the wire.

A fault is raised where it is found, with the name of the culprit in its text,
and is translated once at the edge: to an HTTP status by ``nova_accel.api``,
to Nova's exceptions by ``nova_accel.virt`` and ``nova_accel.scheduler``.
"""


class AcceleratorError(Exception):
    """The base of all faults; ``str()`` is safe to show to a tenant."""


class InvalidRequest(AcceleratorError):
    """The caller asked for something that is malformed (HTTP 400)."""


class InvalidDeviceProfile(InvalidRequest):
    """A device profile, or one group of it, is malformed."""


class InvalidName(InvalidRequest):
    """A text cannot be made a trait, resource class or PCI address."""


class InvalidDeviceSpec(AcceleratorError):
    """``[nova_accel] device_spec`` cannot be used; the text has the line."""


class NotFound(AcceleratorError):
    """The named thing does not exist, or not for this caller (HTTP 404)."""


class BitstreamNotFound(NotFound):
    """No bitstream is what was asked for, or the caller may not see it."""


class NotAllowed(AcceleratorError):
    """The caller has not got the right to it (HTTP 403)."""


class Conflict(AcceleratorError):
    """The request is right but the present state forbids it (HTTP 409)."""


class StaleAttempt(Conflict):
    """A newer attempt already holds, or has released, this binding."""


class NoAssignment(Conflict):
    """No assignment of the profile's groups to the given providers exists."""


class AcceleratorsBusy(Conflict):
    """Fewer attach handles are free than the allocations promise.

    :ivar summary: the text without what is wrong with devices that others
        have, or had, which is not for their tenants
    """

    def __init__(self, summary: str, details: str = '') -> None:
        super().__init__(f'{summary}{details}')
        self.summary = summary


class BitstreamRefused(Conflict):
    """A bitstream does not fit the region, or cannot be trusted."""


class InvalidTransition(Conflict):
    """An ARQ may not go from its present state to the wanted one."""


class DeviceError(AcceleratorError):
    """A device refused a step, or is not what its driver expects."""


class ServiceUnavailable(AcceleratorError):
    """The accelerator API gave no usable answer."""


class CyborgAgentUnavailable(ServiceUnavailable):
    """This host's devices are not published; its name is that of os-acc."""


class ConfigurationError(AcceleratorError):
    """The service cannot start; the text names the option."""
