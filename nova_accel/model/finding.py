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

"""Something that is wrong, and whether a host has repaired it.

A host compares its journal, libvirt's guests, the accelerator API, Placement
and its devices. Its report has what the last comparisons have found. The
fleet adds where its sources disagree.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import datetime
import enum
import re
from typing import Any

from nova_accel import reason
from nova_accel.model import bounds


class Kind(enum.StrEnum):
    """The kind of a finding; the kinds that matter most come first."""

    #: Nova says that a server runs, and libvirt has no guest of it.
    GUEST_GONE = 'guest_gone'
    #: Nova says that a server runs, and its guest does not.
    GUEST_STOPPED = 'guest_stopped'
    #: A guest has accelerators, and its server is not on the host.
    GUEST_WITHOUT_SERVER = 'guest_without_server'
    #: A guest runs without a device that its server holds.
    NOT_IN_GUEST = 'not_in_guest'
    #: The API lacks ARQs that the host's journal has.
    NOT_IN_API = 'not_in_api'
    #: The guests of a partition of NVSwitches, and its state, disagree.
    PARTITION = 'partition'
    #: A file in which the host keeps its state is damaged.
    JOURNAL = 'journal'
    #: The devices that a server held are not given back yet.
    NOT_RELEASED = 'not_released'
    #: The devices of a server are not made again yet.
    NOT_MADE = 'not_made'
    #: The devices of a server were held for no one, or were not known.
    BINDING = 'binding'
    #: The host has not made its own what the API says that a server holds.
    NOT_TAKEN_OVER = 'not_taken_over'
    #: A mediated device was no one's.
    MDEV = 'mdev'
    #: Placement does not count units that a server holds.
    UNCOUNTED = 'uncounted'
    #: Placement counted units that no one needs.
    ALLOCATION = 'allocation'
    #: A device that the configuration names is not offered.
    REFUSED = 'refused'
    #: Placement has not taken over how the providers have changed.
    PROVIDERS = 'providers'
    #: A step of the host's periodic work has failed.
    NOT_DONE = 'not_done'
    #: There are more findings than a report may have.
    MORE = 'more'


#: The kinds that no host repairs.
LEFT_ALONE = frozenset(
    {
        Kind.GUEST_GONE,
        Kind.GUEST_STOPPED,
        Kind.GUEST_WITHOUT_SERVER,
        Kind.NOT_IN_API,
        Kind.NOT_TAKEN_OVER,
        Kind.REFUSED,
        Kind.PROVIDERS,
    }
)

#: The longest words of a finding, in characters.
MAX_WORDS = 511

#: How many findings a report has at most.
MAX_FINDINGS = 256

#: The form of a kind. A newer host may know kinds that this release does not.
KIND = r'^[a-z_]{1,32}\Z'

#: The fields that a report has, the first ones of a :class:`Finding`.
REPORTED = ('kind', 'words', 'is_repaired', 'instance_uuid', 'device')

_ORDER = {str(kind): number for number, kind in enumerate(Kind)}

#: Kind -> what an administrator can do. ``{server}`` is the server's uuid.
_REMEDIES: Mapping[str, str] = {
    Kind.GUEST_GONE: 'openstack server reboot --hard {server}',
    Kind.GUEST_STOPPED: 'openstack server reboot --hard {server}',
    Kind.GUEST_WITHOUT_SERVER: (
        "look at the guest with virsh; Nova's option "
        'running_deleted_instance_action removes one of a deleted server'
    ),
    Kind.NOT_IN_GUEST: 'openstack server reboot --hard {server}',
    Kind.NOT_IN_API: (
        'rebuild the server: it then acquires accelerators again'
    ),
    Kind.PARTITION: (
        'look at the log of nova-compute, and list the partitions with fmpm -l'
    ),
    Kind.JOURNAL: (
        'the host asks the accelerator API; if it goes on, look at the file '
        'and at the log of nova-compute'
    ),
    Kind.NOT_RELEASED: (
        'the host tries again; if it goes on, look at the device'
    ),
    Kind.NOT_MADE: 'the host tries again; if it goes on, look at the device',
    Kind.BINDING: 'the host tries again; if it goes on, look at its log',
    Kind.NOT_TAKEN_OVER: (
        'openstack server reboot --hard {server}, once the host offers the '
        'device'
    ),
    Kind.MDEV: 'the host tries again; if it goes on, look at the device',
    Kind.UNCOUNTED: (
        'the host tries again; if it goes on, migrate or delete one of the '
        'servers that Placement counts there'
    ),
    Kind.ALLOCATION: 'the host tries again; if it goes on, look at its log',
    Kind.REFUSED: (
        'cure what the host says, or take the device out of device_spec'
    ),
    Kind.PROVIDERS: 'restart nova-compute of the host',
    Kind.NOT_DONE: 'the host tries again; if it goes on, look at its log',
    Kind.MORE: 'look at the log of nova-compute',
}


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    ``kind`` is one of :class:`Kind`, or a newer host's. ``words`` say what is
    wrong, and what the host did about it. ``is_repaired`` is False if the host
    has left it alone, or has tried in vain. ``device`` is a PCI address in
    sysfs' form, or the uuid of a mediated device. ``instance_uuid`` and
    ``device`` are None where the words say all.

    No report has the other fields. ``since`` is when the host first said so.
    ``devices`` and ``units`` are uuids, as far as the database has them.

    Where sources disagree, ``kind`` is one of
    :class:`nova_accel.model.fleet.disagreement.Subject`, and ``words`` are
    those of one source. ``but`` is what the other one says, ``cure`` the
    remedy, and ``about`` the uuid of a server, another consumer, an ARQ or a
    provider. ``hostname`` is None if no host has to do with it.
    """

    kind: str
    words: str
    is_repaired: bool = False
    instance_uuid: str | None = None
    device: str | None = None
    hostname: str | None = None
    since: datetime.datetime | None = None
    devices: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    about: str = ''
    but: str = ''
    cure: str = ''

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, as reports have it: within the API's bounds."""
        return {
            'kind': str(self.kind),
            'words': reason.sanitize(self.words, MAX_WORDS),
            'is_repaired': self.is_repaired,
            'instance_uuid': (
                self.instance_uuid
                if self.instance_uuid is not None
                and re.match(bounds.UUID, self.instance_uuid)
                else None
            ),
            'device': (
                None
                if self.device is None
                else reason.sanitize(self.device, bounds.MAX_TEXT)
            ),
        }

    @property
    def whose(self) -> str:
        """Its server or device, say; empty if only the words tell."""
        return self.about or self.instance_uuid or self.device or ''

    @property
    def outcome(self) -> str:
        """The other source's words, or the host's answer to it."""
        if self.but:
            return self.but
        if self.is_repaired:
            return 'the host has repaired it'
        return (
            'the host leaves it alone'
            if self.kind in LEFT_ALONE
            else 'the host has not repaired it'
        )

    @property
    def remedy(self) -> str:
        """The administrator's remedy, empty if no one knows one."""
        if self.cure:
            return self.cure
        if self.is_repaired:
            return 'none: the host has repaired it'
        return _REMEDIES.get(self.kind, '').replace(
            '{server}', self.instance_uuid or '<server>'
        )

    @property
    def _place(self) -> tuple[bool, int, str, str, str]:
        return (
            self.is_repaired,
            _ORDER.get(self.kind, len(_ORDER)),
            self.instance_uuid or '',
            self.device or '',
            self.words,
        )


def from_dict(
    value: Mapping[str, Any],
    hostname: str | None = None,
    since: datetime.datetime | None = None,
) -> Finding:
    """The reverse of :meth:`Finding.to_dict`, whatever else the value has.

    :raises KeyError: the value is none.
    """
    facts = {name: value[name] for name in REPORTED}
    return Finding(**facts, hostname=hostname, since=since)


def to_dicts(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """The findings as a report has them, the ones that matter most first.

    If there are too many, the last one says how many are left out.
    """
    found = sorted(set(findings), key=lambda finding: finding._place)
    if len(found) > MAX_FINDINGS:
        kept = MAX_FINDINGS - 1
        found[kept:] = [
            Finding(Kind.MORE, f'{len(found) - kept} more are only in the log')
        ]
    return [finding.to_dict() for finding in found]
