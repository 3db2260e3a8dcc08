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

import types

from nova.tests import fixtures as nova_fixtures
from nova.virt.libvirt import config as vconfig
import testtools

from nova_accel import exceptions
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import finding
from nova_accel.model import host_findings
from nova_accel.model import pci_address
from nova_accel.testing import libvirt
from nova_accel.virt import guest_xml
from nova_accel.virt import hot_plug

UUID = '0d0a4b1e-52f5-5f8e-9d3c-6a1b2c3d4e5f'


def an_arq(*address, mdev_type=None):
    return arq_types.Arq(
        'arq',
        arq_types.State.BOUND,
        'gpu',
        0,
        {},
        'provider',
        attach_handle.AttachHandle(
            UUID, pci_address.PciAddress(*address), mdev_type
        ),
    )


PCI = an_arq(0, 0x81, 0x1F, 7)
MDEV = an_arq(0, 0x82, 0, 0, mdev_type='nvidia-11')
OTHER = an_arq(0, 0x81, 0, 0)


class Guest:
    """A guest that lets go of a device when it has been looked at."""

    def __init__(self, *arqs, looks=0, uuid=None, places=None):
        self.uuid = uuid
        self.defined = guest_xml.hostdevs(arqs, places)
        self.devices = guest_xml.hostdevs(arqs)
        self.leaving = []
        self.gone = set()
        self.looks = looks
        self.asked = []

    def get_config(self):
        if self.looks:
            self.looks -= 1
        else:
            self.devices = [
                device
                for device in self.devices
                if guest_xml.name(device) not in self.gone
            ]
        guest = vconfig.LibvirtConfigGuest()
        for device in self.devices:
            # As libvirt gives them back.
            parsed = type(device)()
            parsed.parse_str(device.to_xml())
            guest.add_device(parsed)
        return types.SimpleNamespace(
            devices=[vconfig.LibvirtConfigGuestInterface(), *guest.devices]
        )

    def detach_device(self, conf, persistent=False, live=False):
        self.asked.append((persistent, live))
        self.leaving.append(conf.to_xml())
        self.gone.add(guest_xml.name(conf))

    def attach_device(self, conf, persistent=False, live=False):
        self.asked.append((persistent, live))
        self.devices.append(conf)

    def get_xml_desc(self, dump_inactive=False):
        config = vconfig.LibvirtConfigGuest()
        config.virt_type = 'kvm'
        config.devices = self.defined if dump_inactive else self.devices
        return config.to_xml()

    @property
    def xml(self):
        return [device.to_xml() for device in self.devices]


def xml(*arqs):
    return [device.to_xml() for device in guest_xml.hostdevs(arqs)]


class TestHotPlug(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.patch(hot_plug, '_POLL_INTERVAL_S', 0)

    def test_detach_waits_for_the_guest(self):
        guest = Guest(OTHER, PCI, MDEV, looks=3)
        hot_plug.detach(guest, [PCI, MDEV], 60)
        self.assertEqual(xml(OTHER), guest.xml)
        self.assertEqual([(False, True)] * 2, guest.asked)

    def test_detach_does_not_wait_for_ever(self):
        guest = Guest(PCI, MDEV, looks=10**9)
        error = self.assertRaises(
            exceptions.DeviceError, hot_plug.detach, guest, [PCI, MDEV], 0.05
        )
        self.assertEqual(
            f'the guest has not let go of 0000:81:1f.7, {UUID} within 0.05 s',
            str(error),
        )

    def test_what_the_guest_does_not_have_is_not_detached(self):
        guest = Guest(PCI)
        hot_plug.detach(guest, [PCI, MDEV], 60)
        self.assertEqual(xml(PCI), guest.leaving)

    def test_what_the_guest_lacks_is_attached(self):
        guest = Guest(OTHER, MDEV)
        for _again in range(2):
            hot_plug.attach(guest, [PCI, MDEV])
            self.assertEqual(xml(OTHER, MDEV, PCI), guest.xml)
        self.assertEqual([(False, True)], guest.asked)


class TestPlaces(testtools.TestCase):
    """A device comes back to the address that it had in the guest."""

    def setUp(self):
        super().setUp()
        self.useFixture(nova_fixtures.LibvirtFixture())
        places = {}
        for bus, name in ((7, '0000:81:1f.7'), (9, UUID)):
            place = places[name] = guest_xml.Address()
            place.domain, place.bus = '0x0000', f'{bus:#04x}'
            place.slot, place.function = '0x00', '0x0'
        self.guest = Guest(PCI, OTHER, MDEV, places=places)
        self.guest.devices = []

    def buses(self):
        return [
            device.place and device.place.bus for device in self.guest.devices
        ]

    def test_as_in_the_definition(self):
        hot_plug.attach(self.guest, [MDEV, PCI, OTHER])
        self.assertEqual(['0x09', '0x07', None], self.buses())

    def test_another_takes_its_place(self):
        """Also in the definition, for the guest's next start."""
        self.guest.devices = list(self.guest.defined)
        places = hot_plug.take_out(self.guest, [PCI, MDEV], 60)
        self.assertEqual(
            [(False, True), (False, True), (True, False), (True, False)],
            self.guest.asked,
        )
        self.guest.get_config()
        self.guest.asked.clear()
        new = [an_arq(0, 0x90, 0, 0), an_arq(0, 0x90, 0, 1)]
        hot_plug.put_in(self.guest, new, places)
        self.assertEqual([None, '0x07', '0x09'], self.buses())
        self.assertEqual([(True, True)] * 2, self.guest.asked)

    def test_one_that_the_guest_did_not_have_has_no_place(self):
        self.assertEqual([None], hot_plug.take_out(self.guest, [PCI], 60))

    def test_another_device_is_there(self):
        (other,) = guest_xml.hostdevs([OTHER])
        other.place = guest_xml.Address()
        other.place.bus = '0x7'
        self.guest.devices = [other]
        hot_plug.attach(self.guest, [PCI, MDEV])
        self.assertEqual(['0x7', None, '0x09'], self.buses())


class TestAttachMissing(testtools.TestCase):
    """As after a nova-compute that was killed while it suspended a guest."""

    def setUp(self):
        super().setUp()
        self.useFixture(nova_fixtures.LibvirtFixture())
        self.findings = host_findings.Findings()

    def attach_missing(self, held, *guests):
        host = types.SimpleNamespace(list_guests=lambda: guests)
        hot_plug.attach_missing(
            host, lambda uuid: held.get(uuid, ()), self.findings
        )

    def test_each_running_guest_gets_what_it_holds(self):
        some, nothing, everything, plain = (
            Guest(*arqs, uuid=uuid)
            for uuid, *arqs in (
                ('some', PCI),
                ('nothing',),
                ('everything', PCI, MDEV),
                ('plain',),
            )
        )
        both = (PCI, MDEV)
        self.attach_missing(
            {'some': both, 'nothing': both, 'everything': both},
            some,
            nothing,
            everything,
            plain,
        )
        for guest in (some, nothing, everything):
            self.assertEqual(xml(*both), guest.xml)
        self.assertEqual([[], []], [everything.asked, plain.asked])
        self.assertEqual(
            {
                (finding.Kind.NOT_IN_GUEST, 'some', True),
                (finding.Kind.NOT_IN_GUEST, 'nothing', True),
            },
            {
                (found.kind, found.instance_uuid, found.is_repaired)
                for found in self.findings.all()
            },
        )

    def test_one_that_fails_does_not_stop_the_others(self):
        def refuse(conf, **kwargs):
            raise libvirt.libvirt_error('the device is stuck')

        stuck, other = Guest(uuid='stuck'), Guest(uuid='other')
        stuck.attach_device = refuse
        self.attach_missing({'stuck': (PCI,), 'other': (MDEV,)}, stuck, other)
        self.assertEqual(xml(MDEV), other.xml)

    def test_a_damaged_journal_does_not_stop_the_start(self):
        def damaged(uuid):
            raise exceptions.DeviceError('the journal is damaged')

        host = types.SimpleNamespace(list_guests=lambda: [Guest(uuid='a')])
        hot_plug.attach_missing(host, damaged, self.findings)
