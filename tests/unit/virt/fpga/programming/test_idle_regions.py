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

import dataclasses
import threading

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.fpga import programming_record
from unit.virt.fpga import fpga_card
from unit.virt.fpga import programming_case

ONE, TWO = programming_case.ONE, programming_case.TWO
NO_IMAGE = '0e0d9d3a-7a4e-4a59-8d3b-1b8f0a5c11aa'


class TestPut(programming_case.ProgrammingTestCase):
    def put(self, bitstream_id=None, name='region0'):
        self.host.programmer.stock(
            naming.derived_uuid(
                fpga_card.NODE, fpga_card.DEVICE.name, 'deployable', name
            ),
            bitstream_id or self.image,
        )

    def is_refused(self, why, bitstream_id=None, programmed=0):
        self.put(bitstream_id)
        self.assertIn(why, self.log.output)
        self.assertEqual(programmed, self.host.card.programmed)

    def test_the_next_server_programs_nothing(self):
        self.put()
        self.holds(self.image)
        self.assertEqual(
            [(self.image, False, None), (self.image, True, None)], self.steps()
        )
        self.assertEqual(
            programming_record.Asker(), self.host.records[-1].asker
        )
        self.assertEqual('service', self.host.bitstreams.asked[-1][1])
        self.assertEqual(1, self.host.changes)
        self.host.boot(ONE, fpga_card.wants(self.image))
        self.assertEqual(1, self.host.card.programmed)

    def test_what_it_holds_already(self):
        self.put()
        self.put()
        self.assertEqual(1, self.host.card.programmed)

    def test_no_such_region(self):
        self.put(name='region7')
        self.assertIn('no deployable', self.log.output)

    def test_a_region_that_a_server_has(self):
        self.host.boot(ONE, fpga_card.wants(self.other))
        self.is_refused('a server has region0', programmed=1)
        self.holds(self.other)

    def test_a_region_that_a_guest_has_without_a_journal(self):
        self.host.guests.found = {ONE: ['0000:81:00.1']}
        self.is_refused('a server has region0')

    def test_a_bad_region(self):
        self.host.card.faults = [exceptions.DeviceError('CRC error')]
        self.assertRaises(
            exceptions.DeviceError,
            self.host.boot,
            ONE,
            fpga_card.wants(self.other),
        )
        self.is_refused('CRC error', programmed=1)

    def test_an_image_that_is_not_for_all(self):
        self.host.bitstreams.private.add(self.image)
        self.is_refused('not for all')
        own = self.host.bitstreams.add(owner='project')
        self.is_refused('not for all', own)

    def test_an_image_that_is_gone(self):
        self.is_refused('0 are', NO_IMAGE)

    def test_no_download(self):
        self.host.bitstreams.fault = exceptions.ServiceUnavailable('away')
        self.is_refused('away')
        self.assertIsNone(self.host.known().fault)

    def test_a_failure_leaves_what_was_there(self):
        self.host.boot(ONE, fpga_card.wants(self.other))
        self.host.held_by.clear()
        self.host.card.faults = [exceptions.DeviceError('CRC error')]
        self.put()
        self.assertIn('CRC error', self.log.output)
        # Once only.
        self.assertEqual(3, self.host.card.programmed)
        self.holds(self.other)

    def test_a_failure_leaves_the_blank_one(self):
        self.host.clean_with(self.other)
        self.host.card.faults = [exceptions.DeviceError('CRC error')]
        self.put()
        self.holds(self.other)

    def test_a_failure_of_the_card(self):
        self.host.clean_with(self.other)
        self.host.card.faults = [exceptions.DeviceError('CRC error')] * 2
        self.put()
        self.assertIn('stays bad', self.log.output)
        self.is_bad('CRC error')

    def test_nova_compute_dies(self):
        class Died(BaseException):
            pass

        self.host.card.faults = [Died()]
        self.assertRaises(Died, self.put)
        self.restarted()
        self.host.regions.recover()
        self.is_bad('died while')
        # It is not tried again, and a server that asks gets its own.
        self.host.boot(ONE, fpga_card.wants(self.other))
        self.assertEqual(1, self.host.card.programmed)
        self.holds(self.other)

    def test_an_error_of_ours_ends_here(self):
        self.host.bitstreams.fault = ZeroDivisionError('oops')
        self.put()
        self.assertIn('oops', self.log.output)

    def when_it_is_touched(self, act):
        """Have a server start when the card is being programmed."""
        program = self.host.card.program
        server = threading.Thread(target=act)

        def touched(*args):
            self.host.card.program = program
            server.start()
            server.join(0.2)
            self.assertTrue(server.is_alive())
            program(*args)

        self.host.card.program = touched
        self.put()
        server.join(10)
        self.assertFalse(server.is_alive())

    def test_a_server_that_comes_meanwhile_wants_the_same(self):
        self.when_it_is_touched(
            lambda: self.host.boot(ONE, fpga_card.wants(self.image))
        )
        self.holds(self.image)
        self.assertEqual(1, self.host.card.programmed)

    def test_a_server_that_comes_meanwhile_wants_another(self):
        self.when_it_is_touched(
            lambda: self.host.boot(ONE, fpga_card.wants(self.other))
        )
        self.holds(self.other)
        self.assertEqual(ONE, self.host.records[-1].asker.instance_uuid)

    def test_a_server_that_comes_meanwhile_gets_its_own_after_a_failure(self):
        self.host.card.faults = [exceptions.DeviceError('CRC error')]
        self.when_it_is_touched(
            lambda: self.host.boot(ONE, fpga_card.wants(self.other))
        )
        self.holds(self.other)

    def test_a_server_that_comes_during_the_download_is_first(self):
        fetched = self.host.bitstreams.fetched

        def slow(*args):
            self.host.bitstreams.fetched = fetched
            self.host.boot(ONE, fpga_card.wants(self.other))
            return fetched(*args)

        self.host.bitstreams.fetched = slow
        self.put()
        self.assertIn('a server has region0', self.log.output)
        self.holds(self.other)


class TestBlank(programming_case.ProgrammingTestCase):
    """Regions are cleaned by a bitstream."""

    def setUp(self):
        super().setUp()
        self.blank_one = self.host.bitstreams.add()
        self.restarted(cleans_with_stock=True)

    def clean(self, bitstream_id=None, blank=None):
        handle = next(iter(fpga_card.DEVICE.handles))
        self.host.programmer.clean(
            dataclasses.replace(
                handle, cleaning=('program', blank or self.blank_one)
            ),
            bitstream_id,
        )

    def clean_after_a_guest(self, bitstream_id, held=None):
        self.host.boot(ONE, fpga_card.wants(held or self.other))
        self.host.held_by.clear()
        self.clean(bitstream_id)

    def test_by_the_blank_one(self):
        self.clean_after_a_guest(None)
        self.holds(self.blank_one)

    def test_by_what_is_in_demand(self):
        self.clean_after_a_guest(self.image)
        self.holds(self.image)
        self.assertEqual(2, self.host.card.programmed)

    def test_by_what_it_holds_already(self):
        """The guest may have left something in it."""
        self.clean_after_a_guest(self.image, self.image)
        self.holds(self.image)
        self.assertEqual(2, self.host.card.programmed)

    def test_by_the_blank_one_if_the_host_says_so(self):
        self.restarted(cleans_with_stock=False)
        self.clean_after_a_guest(self.image)
        self.holds(self.blank_one)

    def test_by_the_blank_one_if_the_other_is_not_for_all(self):
        self.host.bitstreams.private.add(self.image)
        self.clean_after_a_guest(self.image)
        self.holds(self.blank_one)

    def test_by_the_blank_one_after_a_failure(self):
        self.host.boot(ONE, fpga_card.wants(self.other))
        self.host.held_by.clear()
        self.host.card.faults = [exceptions.DeviceError('CRC error')]
        self.clean(self.image)
        self.holds(self.blank_one)
        self.assertEqual(3, self.host.card.programmed)
        # What has failed is not tried again.
        self.clean(self.image)
        self.assertEqual(4, self.host.card.programmed)
        self.holds(self.blank_one)

    def test_once_more_after_glance_was_away(self):
        self.host.bitstreams.fault = exceptions.ServiceUnavailable('away')
        self.assertRaises(exceptions.DeviceError, self.clean, self.image)
        self.host.bitstreams.fault = None
        self.clean(self.image)
        self.holds(self.image)

    def test_any_fault_is_the_devices(self):
        error = self.assertRaises(
            exceptions.DeviceError, self.clean, None, NO_IMAGE
        )
        self.assertIn('0 are', str(error))

    def test_another_guest_has_something_of_it(self):
        self.host.boot(TWO, fpga_card.wants(self.other))
        error = self.assertRaises(
            exceptions.DeviceError, self.clean, self.image
        )
        self.assertIn('a server has', str(error))
        self.holds(self.other)

    def test_no_region(self):
        self.host.regions.overlaid([])
        error = self.assertRaises(exceptions.DeviceError, self.clean)
        self.assertIn('no region', str(error))
