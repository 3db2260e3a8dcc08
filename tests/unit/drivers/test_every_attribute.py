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

"""Each file that the discovery of any driver reads fails once in each way."""

import dataclasses
import re

import testtools

from nova_accel.drivers import guard
from nova_accel.drivers import loading
from nova_accel.host import host_use
from nova_accel.host import nova_claims
from nova_accel.testing import driver_conformance
from nova_accel.virt.publishing import discovery
from nova_accel.virt.publishing import last_answers
from nova_accel.virt.publishing import units_in_use
from unit.drivers import failing_files
from unit.drivers import test_ascend
from unit.drivers import test_fpga_dfl
from unit.drivers import test_fpga_region
from unit.drivers import test_gpu_sriov
from unit.drivers import test_mdev
from unit.drivers import test_nic
from unit.drivers import test_nvidia_gpu
from unit.drivers import test_nvidia_vfio
from unit.drivers import test_nvme
from unit.drivers import test_pci
from unit.drivers import test_qat
from unit.drivers import test_time_card
from unit.drivers import test_xrt

#: Driver -> its simulated hosts, with further keys of the line.
HOSTS = {
    'ascend': [(test_ascend.TestAscend, {})],
    'fpga_dfl': [
        (test_fpga_dfl.TestFpgaDfl, {}),
    ],
    'fpga_region': [(test_fpga_region.TestFpgaRegion, {})],
    'gpu_sriov': [
        (test_gpu_sriov.TestIntel, {}),
        (test_gpu_sriov.TestAmd, {}),
    ],
    'mdev': [
        (test_mdev.TestConformance, {}),
        (test_mdev.TestSeveralTypes, {}),
        (test_mdev.TestSeveralTypesOnVirtualFunctions, {}),
    ],
    'nic': [(test_nic.TestNic, {}), (test_nic.TestCard, {})],
    'nvidia_gpu': [(test_nvidia_gpu.TestNvidiaGpu, {})],
    'nvidia_vfio': [(test_nvidia_vfio.TestNvidiaVfio, {})],
    'nvidia_vgpu': [(test_mdev.TestSeveralTypes, {})],
    'nvme': [(test_nvme.TestCard, {}), (test_nvme.TestVirtualFunction, {})],
    'pci': [(test_pci.TestConformance, {})],
    'qat': [(test_qat.TestQat, {})],
    'time_card': [(test_time_card.TestTimeCard, {})],
    'xrt': [
        (test_xrt.TestXrt, {}),
        (test_xrt.TestXrt, {'whole': True}),
    ],
}

#: The files that a unit needs. All others are optional.
NEEDED = re.compile(
    # They list the regions of a card.
    r'.*/fpga_region(/region\d+(/dfl-fme\.\d+'
    r'(/dfl-fme-region\.\d+/fpga_region)?)?)?'
    # They say whether a function is a vGPU, and which it can be.
    r'|.*/nvidia/(current_vgpu_type|creatable_vgpu_types)'
    # They say how types share a card.
    r'|.*/mdev_supported_types/[^/]+/description'
    # They say whether the host itself uses a function.
    r'|bus/pci/devices/[^/]+(/(driver|boot_vga|drm|accel))?'
    r'|(class|proc|devices/platform|fs/btrfs)(/.*)?'
    # It says whether vfio-pci takes a function of its denylist.
    r'|module/vfio_pci/parameters/disable_denylist'
)

_FUNCTION = re.compile('bus/pci/devices/([^/]+)/?(.*)')


class Walk:
    """The discovery of one driver on one host."""

    def __init__(self, test, case, keys):
        self.host = host = case('test_device')
        host.setUp()
        test.addCleanup(host.doCleanups)
        functions = host.node_devices._functions
        for number, (address, each) in enumerate(functions.items()):
            functions[address] = dataclasses.replace(
                each, iommu_group=number, iommu_members=(address,)
            )
        self.spec = host.a_spec(address=host.address, **keys)
        self.drivers = {'mine': guard.Guard('mine', host.a_driver)}
        self.files = test.useFixture(
            failing_files.FailingFiles(host.sysfs.root)
        )

    def discover(self):
        return discovery.discover(
            self.host.node_devices,
            self.drivers,
            [self.spec],
            nova_claims.NovaClaims('host1', driver_conformance.NODE_UUID),
            lambda _mdevs: units_in_use.Found({}, (), frozenset()),
            lambda: host_use.HostUse(self.host.sysfs.sysfs),
            last_answers.LastAnswers(),
        )


def units(inventory):
    """The units that guests can get -> their functions."""
    return {
        handle.uuid: {
            str(each) for each in (handle.address, *handle.functions)
        }
        for device in inventory.devices
        for deployable in device.deployables
        for handle in deployable.handles
        if device.fault is None and deployable.fault is None
    }


def reasons(inventory):
    return ' '.join(
        [*inventory.refused, *(each.fault or '' for each in inventory.devices)]
    )


class TestEveryAttribute(testtools.TestCase):
    def test_each_driver_has_a_host(self):
        self.assertEqual(set(loading.names()) - {'acme', 'fake'}, set(HOSTS))


class TestNoMoreIsLost(testtools.TestCase):
    """Than what needs the file, with a reason that names it."""

    def walk(self, case, keys):
        walk = Walk(self, case, keys)
        before = walk.discover()
        self.assertEqual((), before.refused)
        self.assertTrue(units(before))
        tried = 0
        for path, calls in sorted(walk.files.seen.items()):
            troubles = [*failing_files.ERRORS]
            if 'open' in calls:
                troubles += failing_files.CONTENTS
            for trouble in troubles:
                walk.files.failing, walk.files.trouble = path, trouble
                found = walk.discover()
                walk.files.failing = None
                tried += 1
                self.check(path, trouble, units(before), found)
        self.assertEqual(units(before), units(walk.discover()))
        return tried

    def check(self, path, trouble, before, found):
        place = f'{path} has {trouble}: {found.refused}'
        told = reasons(found)
        lost = len(before) - len(units(found))
        function = _FUNCTION.fullmatch(path)
        name = (
            (function[2] or 'its directory')
            if function
            else path.removeprefix('module/vfio_pci/parameters/')
        )
        if lost:
            self.assertTrue(NEEDED.fullmatch(path), place)
            self.assertIn(name, told, place)
            of_function = function and sum(
                function[1] in functions for functions in before.values()
            )
            self.assertLessEqual(lost, of_function or len(before), place)
        if trouble in failing_files.ERRORS and trouble != 'ENOENT':
            self.assertIn(name, told, place)
            self.assertIn(trouble, told, place)
        self.assertNotIn('failed in', told, place)


def _add_tests():
    for name, hosts in HOSTS.items():
        for number, (case, keys) in enumerate(hosts):

            def test(self, case=case, keys=keys):
                self.assertGreater(self.walk(case, keys), 0)

            setattr(TestNoMoreIsLost, f'test_{name}_{number}', test)


_add_tests()
