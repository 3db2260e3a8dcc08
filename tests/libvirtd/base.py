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

"""A host with a real libvirtd, and our code on Nova's connection to it."""

import functools
import json
import pathlib
import uuid

import fixtures
from nova.tests import fixtures as nova_fixtures
from nova.virt.libvirt import host as libvirt_host
from oslo_config import fixture as config_fixture
import tenacity
import testtools
from testtools import content
from testtools import content_type

from lab import fake_sys
from lab import hardware
from lab import libvirtd
from lab import processes
from nova_accel import conf
from nova_accel import exceptions
from nova_accel.drivers import loading
from nova_accel.host import all_guests
from nova_accel.host import host_use
from nova_accel.host import libvirt_devices
from nova_accel.host import nova_claims
from nova_accel.host import sysfs_tree
from nova_accel.host import virtual_functions
from nova_accel.model import pci_address
from nova_accel.model.devices import device_spec
from nova_accel.model.providers import host_view
from nova_accel.privileged import pci_attributes
from nova_accel.virt.holding import attach_journal
from nova_accel.virt.holding import holdings
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import units_in_use

NODE_UUID = 'e03b8e31-6a3a-4a2a-a2b2-5a6d5a0f0001'


def address(function):
    """The address of a function of a machine."""
    return pci_address.PciAddress.parse(function.address)


def a_line(function=None, /, driver='pci', **keys):
    """A line of device_spec, for a function of a machine if there is one."""
    if function is not None:
        keys.setdefault('address', function.address)
    return json.dumps({'driver': driver, **keys})


class HostTestCase(testtools.TestCase):
    """All tests of a class have one host; each leaves it as it was.

    :cvar machine: what the host is
    """

    machine = hardware.Machine()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Unix sockets are below the directory of this name.
        cls.server = libvirtd.Libvirtd(cls.__name__[4:].lower(), cls.machine)
        cls.addClassCleanup(cls.server.stop)
        cls.server.start()
        cls.host = libvirt_host.Host(cls.server.uri)

    def setUp(self):
        super().setUp()
        self.useFixture(config_fixture.Config(conf.CONF))
        # Nova notifies when it has no connection to libvirt.
        self.useFixture(nova_fixtures.RPCFixture('nova.test'))
        self.node_devices = libvirt_devices.NodeDevices(self.host)
        self.guests = all_guests.AllGuests(self.host)
        # No one has written to it.
        self.journal = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.claims = nova_claims.NovaClaims(
            self.host.get_hostname(), NODE_UUID
        )
        # What is written goes through the checks of the privileged process.
        self.sysfs = sysfs_tree.Sysfs(
            self.server.sysfs,
            functools.partial(pci_attributes.write_below, self.server.sysfs),
            self.server.sysfs / 'proc',
        )
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.host.sysfs_tree.of', lambda _host: self.sysfs
            )
        )
        self.drivers = dict(
            loading.load(self.node_devices, self.sysfs, NODE_UUID)
        )
        for process in (self.server.daemon, self.server.kernel):
            log = processes.log_of(process)
            self.addDetail(
                log.name,
                content.Content(
                    content_type.UTF8_TEXT,
                    lambda log=log: [log.read_bytes()[-10000:]],
                ),
            )

    def specs(self, *lines):
        return device_spec.parse(lines, self.drivers)

    def discover(self, *lines):
        return discovery.discover(
            self.node_devices,
            self.drivers,
            self.specs(*lines),
            self.claims,
            units_in_use.UnitsInUse(
                holdings.Holdings(attach_journal.AttachJournal(self.journal)),
                self.guests,
                host_view.CurrentState(host_view.View()),
            ).look,
            lambda: host_use.HostUse(self.sysfs),
            last_answers.LastAnswers(),
        )

    def make_virtual_functions(self, *lines):
        """As nova-compute does when it starts."""
        virtual_functions.VirtualFunctions(
            self.node_devices,
            self.sysfs,
            self.claims,
            self.guests,
        ).make(self.specs(*lines))

    def discover_one(self, *lines):
        """The one device; none is refused."""
        inventory = self.discover(*lines)
        self.assertEqual((), inventory.refused)
        (device,) = inventory.devices
        return device

    def kill_libvirtd(self):
        """End it, and wait until our connection knows.

        Nova 34, in its threading mode, waits for ever for its own lock if it
        only learns when it tests the connection.
        """
        connection = self.host.get_connection()
        processes.kill(self.server.daemon)
        self.assert_soon(0, connection.isAlive)

    def reboot(self):
        """What is not written down is gone."""
        self.server.stop()
        self.server.start()

    def function(self, function):
        """What our code sees of a function of the machine now, or None."""
        return self.node_devices.look().functions.get(address(function))

    def virtual(self, card):
        """The addresses of a card's virtual functions.

        :raises DeviceError: libvirt cannot describe the card. While functions
            come or go, that passes.
        """
        return self.node_devices.function(address(card)).virtual_functions

    def file(self, function, name) -> pathlib.Path:
        """A file of a function, as processes of the host have it."""
        return self.server.sysfs / function.path / name

    def refuse(self, path, errno):
        """Have the kernel refuse what is written to a file from now on."""
        fault = self.server.tree / fake_sys.FAULTS / path
        fault.parent.mkdir(parents=True, exist_ok=True)
        fault.write_text(str(errno))
        self.addCleanup(fault.unlink, missing_ok=True)
        return fault

    def assert_refused(self, line, *texts):
        """No device of the line is offered; the one reason has all texts."""
        inventory = self.discover(line)
        self.assertEqual((), inventory.devices)
        (reason,) = inventory.refused
        for text in (line, *texts):
            self.assertIn(text, reason)

    def assert_soon(self, expected, look, *arguments):
        """libvirt learns by messages, a little later.

        Until then it cannot describe what has gone already.
        """
        tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(
                (AssertionError, exceptions.DeviceError)
            ),
            wait=tenacity.wait_fixed(0.05),
            reraise=True,
            stop=tenacity.stop_after_delay(20),
        )(lambda: self.assertEqual(expected, look(*arguments)))

    def a_foreign_mdev(self, parent, mdev_type):
        """One that somebody makes by hand; gives its uuid."""
        made = str(uuid.uuid4())
        self.file(
            parent, f'mdev_supported_types/{mdev_type}/create'
        ).write_text(made)
        self.addCleanup(self.remove_mdev, parent, made)
        return made

    def remove_mdev(self, parent, mdev):
        if self.file(parent, mdev).exists():
            self.file(parent, f'{mdev}/remove').write_text('1')
