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

import sqlalchemy as sa

from functional import base
from functional import test_publishing
from nova_accel.db import host
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.testing import fake_fpga

HOST = test_publishing.HOST
CARD = 'pci_0000_82_00_0'


class TestCleaning(test_publishing.PublishingTestCase):
    """A card of two regions, which are cleaned after each guest."""

    def setUp(self):
        self.cleaning = self.useFixture(fake_fpga.Cleaning())
        super().setUp()
        self.flags(report_interval_s=3600, group='nova_accel')
        self.flavor = self.create_accel_flavor('fpga')
        # Once before the first guest.
        self.wait_until_clean()
        self.update()
        self.cleaning.cleaned.clear()

    def reserved(self):
        return sorted(
            reserved for _total, reserved, _used in self.units('FPGA').values()
        )

    def unclean(self):
        """Attach handle uuid -> why it could not be cleaned."""
        with engine.reader() as connection:
            return {
                row.uuid: row.unclean_reason
                for row in connection.execute(
                    sa.select(schema.ATTACH_HANDLES).where(
                        schema.ATTACH_HANDLES.c.unclean_since.is_not(None)
                    )
                )
            }

    def wait_for(self, expected, look):
        self._wait_for_assert(lambda: self.assertEqual(expected, look()))

    def wait_until_clean(self):
        self.wait_for({}, self.unclean)

    def boot_and_delete(self):
        """The uuid of the attach handle that it had."""
        server = self.boot(self.flavor)
        (arq,) = self.arqs(server)
        self._delete_server(server)
        return arq['attach_handle_uuid']

    def test_it_is_cleaned_before_the_next_guest_gets_it(self):
        handle = self.boot_and_delete()
        self.wait_until_clean()
        self.assertEqual([handle], self.cleaning.cleaned)
        # It is Placement's again with Nova's next update.
        self.update()
        self.assertEqual([0, 0], self.reserved())
        for number in (2, 3):
            self.boot_and_delete()
            self.wait_until_clean()
            self.assertEqual(number, len(self.cleaning.cleaned))
            self.update()
        self.assert_nothing_left()

    def test_a_cleaning_that_never_ends_keeps_nobody(self):
        """Neither the delete, nor other servers; only the region."""
        self.cleaning.may_end.clear()
        handle = self.boot_and_delete()
        self.wait_for({handle}, lambda: set(self.unclean()))
        self.assertEqual([0, 1], self.reserved())
        self.assertEqual([], self.cleaning.cleaned)
        self.create_profile('both', [base.VGPU, base.QAT])
        others = self.create_accel_flavor('both')
        for flavor in (self.flavor, others, others):
            server = self.boot(flavor)
            self.assertNotIn(
                handle,
                [arq['attach_handle_uuid'] for arq in self.arqs(server)],
            )
        failed = self.boot(self.flavor, expected_state='ERROR')
        self._delete_server(failed)
        for server in self.api.get_servers():
            self._delete_server(server)
        self.assertEqual([1, 1], self.reserved())
        self.cleaning.may_end.set()
        self.wait_until_clean()
        self.update()
        self.assertEqual([0, 0], self.reserved())
        self.assert_nothing_left()

    def test_what_cannot_be_cleaned_stays_reserved(self):
        self.cleaning.refusal = 'its key is stuck'
        handle = self.boot_and_delete()
        self.wait_for({handle: 'its key is stuck'}, self.unclean)
        self.update(2)
        self.assertEqual([0, 1], self.reserved())
        server = self.boot(self.flavor)
        self.boot(self.flavor, expected_state='ERROR')
        self.assertNotEqual(handle, self.arqs(server)[0]['attach_handle_uuid'])
        # Its owner repairs it; a restart does not wait for the next try.
        self.cleaning.refusal = None
        self.restart_compute_service(HOST)
        self.wait_until_clean()
        self.update()
        self.assertEqual([0, 0], self.reserved())

    def test_a_restart_in_the_middle(self):
        self.cleaning.may_end.clear()
        handle = self.boot_and_delete()
        self.wait_for({handle}, lambda: set(self.unclean()))
        with self.api_away():
            self.restart_compute_service(HOST)
            # The reason is not known yet, and it is reserved all the same.
            self.assertEqual([0, 1], self.reserved())
        self.cleaning.may_end.set()
        self.settle(HOST)
        self.wait_until_clean()
        self.assertIn(handle, self.cleaning.cleaned)
        self.update()
        self.assertEqual([0, 0], self.reserved())

    def test_the_api_is_away_when_a_server_is_deleted(self):
        server = self.boot(self.flavor)
        with self.api_away():
            self._delete_server(server)
            self.assertEqual([0, 1], self.reserved())
            self.assertEqual([], self.cleaning.cleaned)
        self.settle(HOST)
        self.wait_until_clean()
        self.assertEqual(1, len(self.cleaning.cleaned))
        self.assert_nothing_left()

    def test_a_card_that_is_pulled_out_unclean(self):
        self.cleaning.refusal = 'its key is stuck'
        handle = self.boot_and_delete()
        self.wait_for({handle: 'its key is stuck'}, self.unclean)
        put_back = self.pull_out(
            CARD, *(f'{CARD[:-1]}{number}' for number in (1, 2))
        )
        self.update(3)
        self.assertEqual([], self.reserved())
        self.assertEqual({handle}, set(self.unclean()))
        put_back()
        self.update()
        # The one that was clean may have been used elsewhere.
        self.assertEqual([1, 1], self.reserved())
        self.assertEqual(2, len(self.unclean()))

    def test_a_host_that_is_forgotten(self):
        """As after a rename, which our own refusal of its report advises."""
        self.cleaning.refusal = 'its key is stuck'
        handle = self.boot_and_delete()
        self.wait_for({handle: 'its key is stuck'}, self.unclean)
        host.forget(HOST, -1)
        self.update(2)
        self.assertEqual(2, len(self.unclean()))
        self.assertIn(handle, self.unclean())
        self.assertEqual([1, 1], self.reserved())
        self.boot(self.flavor, expected_state='ERROR')
        self.cleaning.refusal = None
        self.restart_compute_service(HOST)
        self.wait_until_clean()
        self.update()
        self.boot(self.flavor)
