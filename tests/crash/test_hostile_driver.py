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

"""A driver does its worst while something is done to a server.

In each operation, in each method that is called in it. Then nothing else
stops, and when the driver has come to its senses nothing is left of it, with
no restart.
"""

import contextlib
import itertools
import os
import random
import time

import fixtures
from nova.compute import vm_states
import testtools

from crash import cloud as cloud_module
from crash import tenants_bitstreams
from crash import test_points
from nova_accel.db import device
from nova_accel.drivers import mdev
from nova_accel.model.profiles import device_profile
from nova_accel.testing import fake_fpga
from nova_accel.testing import hostile_driver
from rig import compute_parts

#: Name -> the driver, and the device profile of a server without it.
_DRIVERS = {
    'FPGA': (fake_fpga.FakeFpgaDriver, 'vgpu'),
    'VGPU': (mdev.MdevDriver, 'fpga'),
}

#: Cases of each operation that are tried, None for all.
_SAMPLE = None if os.environ.get('CRASH_POINTS') == 'all' else 1

#: In each cycle of the worker, whatever is done meanwhile.
_ALWAYS = frozenset({'discover', 'check_cleaning'})


class HostileDriverTestCase(testtools.TestCase):
    def serve_others(self, cloud, profile):
        """What has another driver has nothing to do with it."""
        wrong = []
        # What a move has left behind is free with the next report.
        cloud.reconcile()
        for host in cloud.hosts:
            # What the hostile one does not give back is reserved.
            host.publish()
            other = cloud.nova.boot(host, device_profile.FLAVOR_KEY, profile)
            cloud.reconcile()
            if other.vm_state != vm_states.ACTIVE or not host.runs(other):
                wrong.append(f'another on {host.name} is {other.vm_state}')
            cloud.nova.delete(other)
            cloud.reconcile()
            wrong += [
                f'the other: {line}'
                for line in cloud.drift()
                if other.uuid in line
            ]
        return wrong

    def come_to_rest(self, cloud):
        """The driver is well again, and nothing is restarted."""
        cloud.forget_errors()
        cloud.reconcile()
        cloud.reconcile_placement()
        wrong = cloud.drift() + cloud.stale_allocations()
        cloud.delete_all()
        return wrong + cloud.leftovers()


class TestHostileDriver(HostileDriverTestCase):
    """A test for each operation, made below."""

    def cases(self, name):
        """All that can be done in an operation: driver, method and deed."""
        with contextlib.ExitStack() as parts:
            watched = {
                driver_name: parts.enter_context(
                    hostile_driver.HostileDriver(driver_class)
                )
                for driver_name, (driver_class, _profile) in _DRIVERS.items()
            }
            cloud = parts.enter_context(cloud_module.Cloud())

            @contextlib.contextmanager
            def meanwhile():
                for driver in watched.values():
                    driver.asked.clear()
                yield

            test_points.OPERATIONS[name].run(cloud, meanwhile=meanwhile)
        asked = [
            (driver_name, method)
            for driver_name, driver in watched.items()
            for method in sorted(driver.asked | _ALWAYS)
        ]
        return [
            (*each, deed)
            for each, deed in itertools.product(asked, hostile_driver.DEEDS)
        ]

    def harm(self, name, driver_name, method, deed):
        """Have a driver do its worst in an operation.

        :returns: what is wrong in the end
        """
        driver_class, others_profile = _DRIVERS[driver_name]
        with (
            hostile_driver.HostileDriver(driver_class) as hostile,
            cloud_module.Cloud() as cloud,
        ):

            def meanwhile():
                return hostile.hostile(method, deed)

            test_points.OPERATIONS[name].run(cloud, meanwhile=meanwhile)
            with meanwhile():
                wrong = self.serve_others(cloud, others_profile)
            wrong += self.come_to_rest(cloud)
        return [
            f'{name}, {method} of {driver_name}, {deed}: {line}'
            for line in wrong
        ]

    def check(self, name):
        cases = self.cases(name)
        if _SAMPLE is not None:
            # The same ones each time.
            cases = random.Random(name).sample(cases, _SAMPLE)
        self.assertEqual(
            [], [line for case in cases for line in self.harm(name, *case)]
        )


for _name in test_points.OPERATIONS:
    setattr(
        TestHostileDriver,
        f'test_{_name}',
        lambda self, name=_name: self.check(name),
    )


class TestWhileCleaning(HostileDriverTestCase):
    """A region cannot be cleaned after its guest."""

    def harm(self, deed):
        with (
            hostile_driver.HostileDriver(fake_fpga.FakeFpgaDriver) as hostile,
            fake_fpga.Cleaning() as cleaning,
            cloud_module.Cloud() as cloud,
            # In the thread of a delete, a cycle would wait for that delete.
            fixtures.MonkeyPatch(
                'nova_accel.nova_releases.spawn',
                lambda work: None,
            ),
            fixtures.MonkeyPatch(
                'nova_accel.virt.holding.cleaning.FIRST_RETRY_S', 0
            ),
        ):
            host, _other = cloud.hosts
            server = cloud.nova.boot(host, device_profile.FLAVOR_KEY, 'fpga')
            self.assertEqual(vm_states.ACTIVE, server.vm_state)
            with hostile.hostile('clean', deed):
                cloud.nova.delete(server)
                self.until(lambda: (cloud.reconcile(), self.reasons())[1])
                wrong = self.serve_others(cloud, 'vgpu')
                # The other regions, too.
                wrong += self.serve_others(cloud, 'fpga')
            self.until(
                lambda: (
                    cloud.reconcile(),
                    cleaning.cleaned and not self.reasons(),
                )[1]
            )
            return [
                f'clean, {deed}: {line}'
                for line in wrong + self.come_to_rest(cloud)
            ]

    def until(self, condition):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            # With eventlet, the thread that cleans has its turn only then.
            time.sleep(0.05)

    def reasons(self):
        return [
            each['reason']
            for found in device.get_all()
            for each in found['unclean']
        ]

    def test_each_deed(self):
        # To do nothing and to say nothing is what one does that has cleaned.
        self.assertEqual(
            [],
            [
                line
                for deed in hostile_driver.DEEDS
                if deed != 'garbage'
                for line in self.harm(deed)
            ],
        )


class TestWhileProgramming(HostileDriverTestCase):
    """A region does not get what its server asks for."""

    def harm(self, method, deed):
        with (
            hostile_driver.HostileDriver(fake_fpga.FakeFpgaDriver) as hostile,
            fake_fpga.Programming(),
            cloud_module.Cloud() as cloud,
            tenants_bitstreams.TenantsBitstreams() as images,
        ):
            host, _other = cloud.hosts
            region_uuid = next(
                region.type_uuid
                for found in compute_parts.current_state(
                    host.driver._accelerators
                ).view.devices
                for region in found.regions
            )
            asked = {
                'accel:bitstream_id': images.upload(region_uuid=region_uuid)
            }

            def boot():
                return cloud.nova.boot(
                    host, device_profile.FLAVOR_KEY, 'fpga', asked
                )

            with hostile.hostile(method, deed):
                # It is ACTIVE if the driver's lie cannot be told.
                cloud.nova.delete(boot())
                self.assertIn(method, hostile.asked)
                wrong = self.serve_others(cloud, 'vgpu')
            cloud.forget_errors()
            cloud.reconcile()
            host.publish()
            server = boot()
            if server.vm_state != vm_states.ACTIVE or not host.runs(server):
                wrong.append(f'the next server is {server.vm_state}')
            return [
                f'{method}, {deed}: {line}'
                for line in wrong + self.come_to_rest(cloud)
            ]

    def check(self, method):
        self.assertEqual(
            [],
            [
                line
                for deed in hostile_driver.DEEDS
                for line in self.harm(method, deed)
            ],
        )

    def test_program(self):
        self.check('program')

    def test_loaded(self):
        self.check('loaded')
