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

"""A simulated card whose regions are files, and bitstreams for it."""

import collections
from concurrent import futures
import contextlib
import dataclasses
import hashlib
import pathlib
import threading
import time
import types
import uuid

from nova_accel import exceptions
from nova_accel.drivers import base
from nova_accel.model import arq_types
from nova_accel.model import attach_handle
from nova_accel.model import pci_address
from nova_accel.model.devices import hardware
from nova_accel.model.devices import programmable
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from nova_accel.virt.fpga.programming import programming_job
from nova_accel.virt.fpga.programming import region_loader
from nova_accel.virt.fpga.programming import region_programmer
from nova_accel.virt.fpga.regions import host_regions
from nova_accel.virt.fpga.regions import region_journal
from nova_accel.virt.fpga.regions import region_target
from rig import sample_devices

NODE = '3f2c7b1e-0b5a-4d59-9d3b-3a1b8f0a5c11'
FUNCTION = '11111111-0b5a-4d59-9d3b-3a1b8f0a5c11'
FUNCTION_TRAIT = (
    'CUSTOM_FPGA_INTEL_FUNCTION_11111111_0B5A_4D59_9D3B_3A1B8F0A5C11'
)
ADDRESS = pci_address.PciAddress(0, 0x81, 0, 0)


def handle_uuid(name):
    return str(uuid.uuid5(uuid.UUID(NODE), name))


def a_deployable(name, in_region, function):
    return hardware.Deployable(
        name,
        'FPGA',
        frozenset({'CUSTOM_FPGA_INTEL_PAC'}),
        (
            attach_handle.AttachHandle(
                handle_uuid(name), pci_address.PciAddress(0, 0x81, 0, function)
            ),
        ),
        region=in_region,
    )


#: Two regions, the second with two accelerators.
DEVICE = sample_devices.fpga(
    0x81,
    [
        a_deployable('region0', 'region0', 1),
        a_deployable('region1_function0', 'region1', 2),
        a_deployable('region1_function1', 'region1', 3),
    ],
    driver='card',
    regions=(programmable.Region('region0'), programmable.Region('region1')),
    shell=programmable.Region(programmable.SHELL, is_shell=True),
)


def an_arq(name='region0', **group):
    (handle,) = (
        handle for handle in DEVICE.handles if handle.uuid == handle_uuid(name)
    )
    return arq_types.Arq(
        uuid=str(uuid.uuid4()),
        state=arq_types.State.BOUND,
        device_profile_name='fpga',
        device_profile_group_id=0,
        group={'resources:FPGA': '1', **group},
        device_rp_uuid=NODE,
        handle=handle,
    )


def wants(bitstream_id, name='region0'):
    return an_arq(name, **{'accel:bitstream_id': bitstream_id})


class CardDriver(base.Driver):
    """Keeps what a region holds in a file; half programmed it is an error.

    :ivar tells_contents: else it only says that it works
    :ivar programmed: how often it was
    """

    tells_contents = True
    #: Seconds.
    duration_s = 0.0

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(exist_ok=True)
        self.programmed = 0
        self.faults = []
        self.may_end = None

    def discover(self, function, spec, host):
        raise AssertionError

    def really_loaded(self, region_name='region0'):
        """The hash of what it holds, None if that is nothing."""
        path = self.directory / region_name
        text = path.read_text() if path.exists() else ''
        return text or None

    def loaded(self, device, region):
        found = self.really_loaded(region.name)
        if found is None:
            raise exceptions.DeviceError('it holds nothing')
        return found if self.tells_contents else 'operating'

    def loaded_shell(self, device):
        found = self.really_loaded('shell')
        if found is None:
            raise exceptions.DeviceError('it has no shell')
        return found

    def load_shell(self, device, shell, timeout_s):
        """Its bytes are its id."""
        self.programmed += 1
        for name in ('shell', *(each.name for each in device.regions)):
            (self.directory / name).write_text('')
        time.sleep(self.duration_s)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        new = self.directory / 'shell.new'
        new.write_text(shell.read_text())
        new.rename(self.directory / 'shell')

    def program(self, device, region, bitstream, timeout_s):
        self.programmed += 1
        path = self.directory / region.name
        path.write_text('')
        for _part in range(10):
            time.sleep(self.duration_s / 10)
        if self.may_end is not None and not self.may_end.wait(
            min(timeout_s, 30)
        ):
            raise exceptions.DeviceError('it took too long')
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        new = path.with_suffix('.new')
        new.write_text(hashlib.sha256(bitstream.read_bytes()).hexdigest())
        new.rename(path)


class Bitstreams:
    """Images in Glance, cached.

    :ivar downloads: the ids of those that were not cached
    :ivar asked: who asked to resolve what
    :ivar of_users: the ids of those that the service may not download
    :ivar private: the ids of those that not every project may use
    """

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(exist_ok=True)
        self.images = {}
        self.downloads = []
        self.asked = []
        self.of_users = set()
        self.private = set()
        self.fault = None

    def add(self, data=None, **properties):
        """An image, the operator's; its id."""
        image = fpga_bitstream.Bitstream(
            str(uuid.uuid4()), 'an image', 8, **{'owner': None, **properties}
        )
        self.images[image.id] = image, (data or image.id).encode()
        return image.id

    def sha256(self, bitstream_id):
        return hashlib.sha256(self.images[bitstream_id][1]).hexdigest()

    def resolve(self, wanted, device, region, context):
        self.asked.append((wanted, context))
        found = [
            image
            for image, _data in self.images.values()
            if wanted.is_met_by(image)
        ]
        if len(found) != 1:
            raise exceptions.BitstreamNotFound(f'{len(found)} are {wanted}')
        return found[0]

    def resolve_for_all(self, bitstream_id, device, region, context):
        found = self.resolve(
            fpga_bitstream.WantedBitstream(bitstream_id),
            device,
            region,
            context,
        )
        if found.owner is not None or found.id in self.private:
            raise exceptions.BitstreamRefused('it is not for all projects')
        return found

    def is_shell(self, wanted, context):
        self.asked.append((wanted.bitstream_id, context))
        if wanted.bitstream_id not in self.images:
            raise exceptions.BitstreamNotFound('no image')
        image, _data = self.images[wanted.bitstream_id]
        return image.provides_shell_id is not None

    @contextlib.contextmanager
    def fetched(self, found, context):
        if self.fault is not None:
            raise self.fault
        _image, data = self.images[found.id]
        path = self.directory / found.id
        if not path.exists():
            if found.id in self.of_users and context == 'service':
                raise exceptions.BitstreamNotFound('not for this caller')
            self.downloads.append(found.id)
            # A process that is killed leaves the whole of it, or nothing, as
            # with the real cache.
            new = path.with_suffix('.new')
            new.write_bytes(data)
            new.rename(path)
        yield types.SimpleNamespace(
            path=path, sha256=hashlib.sha256(data).hexdigest()
        )

    @contextlib.contextmanager
    def kept(self, sha256):
        yield next(
            (
                types.SimpleNamespace(path=path, sha256=sha256)
                for path in self.directory.iterdir()
                if hashlib.sha256(path.read_bytes()).hexdigest() == sha256
            ),
            None,
        )


class Guests:
    """Uuid -> the devices of a guest, and the uuids of those that run."""

    def __init__(self):
        self.found = {}
        self.live = set()

    def devices(self):
        return self.found

    def running(self):
        return self.live


class History:
    """The records that are noted; ``is_begun`` is set with the first."""

    def __init__(self):
        self.records = []
        self.is_begun = threading.Event()

    def note(self, record):
        self.records.append(record)
        self.is_begun.set()


class Host:
    """The parts of a host that program, and its journal of who holds what.

    :param directory: what outlives it
    """

    def __init__(
        self,
        directory,
        boot='boot1',
        timeout_s=30,
        cleans_with_stock=False,
    ):
        directory = pathlib.Path(directory)
        self.card = CardDriver(directory / 'card')
        self.bitstreams = Bitstreams(directory / 'images')
        self.held_by = {}
        self.servers = collections.defaultdict(
            lambda: programming_record.Holder('project', is_stopped=False)
        )
        self.held = frozenset()
        self.guests = Guests()
        self.history = History()
        self.records = self.history.records
        self.changes = 0
        self.journal = region_journal.RegionJournal(
            directory / 'journal', boot
        )
        self.regions = host_regions.Regions(
            self.journal, {'card': self.card}, self, self.changed
        )
        self.regions.overlaid([DEVICE])
        users = region_target.Users(
            self, self.guests, self.servers.__getitem__
        )
        self.loader = region_loader.Loader(
            self.regions,
            programming_job.Jobs(NODE, self.regions, users, self.history),
            self.bitstreams,
            lambda: 'service',
        )
        self.programmer = region_programmer.Programmer(
            NODE, self.regions, self.loader, timeout_s, cleans_with_stock
        )
        self.submitted = []
        executor = self.programmer._executor
        submit = executor.submit
        executor.submit = lambda *args: (
            self.submitted.append(submit(*args)) or self.submitted[-1]
        )

    def handles(self):
        return self.held

    def holders(self):
        return self.held_by

    def changed(self):
        self.changes += 1

    def clean_with(self, bitstream_id):
        """Have the operator's line name a blank bitstream."""
        self.regions.overlaid(
            [
                dataclasses.replace(
                    DEVICE,
                    deployables=tuple(
                        dataclasses.replace(
                            deployable,
                            handles=tuple(
                                dataclasses.replace(
                                    handle, cleaning=('program', bitstream_id)
                                )
                                for handle in deployable.handles
                            ),
                        )
                        for deployable in DEVICE.deployables
                    ),
                )
            ]
        )

    def settle(self):
        """Wait for what is repaired."""
        futures.wait(self.submitted)

    def target(self, name='region0'):
        return next(
            target
            for target in self.regions.targets()
            if target.region.name == name
        )

    def known(self, name='region0'):
        return self.regions.known(self.target(name))

    def published(self):
        """The device with what is known of its regions."""
        (found,) = self.regions.overlaid([DEVICE])
        return found

    def boot(
        self, instance, *arqs, image=None, context='user', project='project'
    ):
        """Begin, and wait: what spawn does."""
        asker = programming_record.Asker(project, 'user', instance)
        self.programmer.start(arqs, asker, image or {}, context)
        self.programmer.ready(arqs, asker, image or {})
        for request in arqs:
            self.held_by[request.handle.uuid] = instance

    def reboot(self, instance, *arqs, image=None):
        """Only wait: what a hard reboot does."""
        self.programmer.ready(
            arqs, programming_record.Asker(instance_uuid=instance), image or {}
        )
