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

"""What projects' own bitstreams leave in regions: who gets it, and when."""

import fixtures
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.fpga import programming_record
from unit.virt.fpga import fpga_card
from unit.virt.fpga import programming_case

ONE = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c31'
TWO = '7a0b9d2e-0b5a-4d59-9d3b-3a1b8f0a5c32'
A, B = 'project-a', 'project-b'


class PrivateTestCase(programming_case.ProgrammingTestCase):
    """``image`` and ``other`` are the operator's, ``own`` is project A's."""

    def setUp(self):
        super().setUp()
        self.own = self.host.bitstreams.add(owner=A)

    def boot_and_delete(self, *arqs, project=A):
        self.host.boot(ONE, *arqs, project=project)
        self.host.held_by.clear()

    def is_unclean(self, why, name='region0'):
        self.assertIn(why, self.host.known(name).unclean.reason)
        device = self.host.published()
        self.assertIn(why, device.attributes[f'{name} is unclean'])
        # Who asks for a bitstream may get it.
        self.assertIsNone(device.fault)
        self.assertEqual(
            {None}, {deployable.fault for deployable in device.deployables}
        )


class TestTheNextServer(PrivateTestCase):
    """It is another project's, unless a test says otherwise."""

    def test_finds_what_the_operator_had_loaded_before(self):
        self.boot_and_delete(fpga_card.wants(self.image))
        self.boot_and_delete(fpga_card.wants(self.own))
        self.is_unclean('before another project gets it')
        self.host.boot(TWO, fpga_card.an_arq(), project=B)
        self.holds(self.image)
        # It came from the cache.
        self.assertEqual(
            [self.image, self.own], self.host.bitstreams.downloads
        )
        self.assertEqual(
            programming_record.Asker(), self.host.records[-1].asker
        )
        self.assertIsNone(self.host.known().unclean)

    def test_also_after_a_restart(self):
        self.boot_and_delete(fpga_card.wants(self.image))
        self.boot_and_delete(fpga_card.wants(self.own))
        self.restarted()
        self.host.boot(TWO, fpga_card.an_arq(), project=B)
        self.holds(self.image)

    def test_finds_the_blank_one(self):
        self.host.clean_with(self.other)
        self.boot_and_delete(fpga_card.wants(self.image))
        self.boot_and_delete(fpga_card.wants(self.own))
        self.host.boot(TWO, fpga_card.an_arq(), project=B)
        self.holds(self.other)

    def test_finds_a_blank_one_that_a_project_owns(self):
        """The operator's line names it, so it is the operator's."""
        blank = self.host.bitstreams.add(owner='services')
        self.host.clean_with(blank)
        self.boot_and_delete(fpga_card.wants(self.image))
        self.boot_and_delete(fpga_card.wants(self.own))
        self.host.boot(TWO, fpga_card.an_arq(), project=B)
        self.holds(blank)
        self.assertIsNone(self.host.known().unclean)

    def test_gets_nothing_if_there_is_nothing_to_load(self):
        self.boot_and_delete(fpga_card.wants(self.own))
        self.is_unclean('set "clean": "program" and clean_bitstream')
        for act in (self.host.boot, self.host.reboot):
            self.refused(
                exceptions.DeviceError, 'own', TWO, fpga_card.an_arq(), act=act
            )
        self.assertEqual(1, self.host.card.programmed)

    def test_finds_what_it_asks_for(self):
        self.boot_and_delete(fpga_card.wants(self.own))
        self.host.boot(TWO, fpga_card.wants(self.image), project=B)
        self.holds(self.image)

    def test_of_the_same_project_finds_what_is_there(self):
        self.boot_and_delete(fpga_card.wants(self.own))
        self.restarted()
        self.host.boot(TWO, fpga_card.an_arq(), project=A)
        self.holds(self.own)
        self.assertEqual(0, self.host.card.programmed)

    def test_finds_what_an_operators_image_has_left(self):
        self.boot_and_delete(fpga_card.wants(self.image))
        self.host.boot(TWO, fpga_card.an_arq(), project=B)
        self.assertEqual(1, self.host.card.programmed)

    def test_does_not_share_a_private_circuit(self):
        self.boot_and_delete(fpga_card.wants(self.image, 'region1_function0'))
        self.host.boot(
            ONE, fpga_card.wants(self.own, 'region1_function0'), project=A
        )
        self.refused(
            exceptions.Conflict,
            'a server has region1_function0',
            TWO,
            fpga_card.an_arq('region1_function1'),
            project=B,
        )
        self.holds(self.own, 'region1')

    def test_what_nobody_remembers_the_owner_of(self):
        unknown = self.host.bitstreams.add(owner='')
        self.boot_and_delete(fpga_card.wants(unknown))
        for project in (A, B, '', None):
            self.refused(
                exceptions.DeviceError,
                'own',
                TWO,
                fpga_card.an_arq(),
                project=project,
            )

    def test_after_a_boot_of_the_host(self):
        """A card may keep what it holds, and those that tell say so."""
        self.boot_and_delete(fpga_card.wants(self.own))
        self.host.card.tells_contents = False
        self.restarted(boot='boot2')
        self.host.card.tells_contents = False
        self.refused(
            exceptions.DeviceError, 'own', TWO, fpga_card.an_arq(), project=B
        )
        self.restarted(boot='boot2')
        self.host.card.tells_contents = True
        (self.host.card.directory / 'region0').write_text('as delivered')
        self.host.boot(TWO, fpga_card.an_arq(), project=B)

    def test_when_it_cannot_be_replaced(self):
        self.boot_and_delete(fpga_card.wants(self.image))
        self.boot_and_delete(fpga_card.wants(self.own))
        self.host.card.faults = [exceptions.DeviceError('CRC error')]
        self.refused(
            exceptions.DeviceError,
            'CRC error',
            TWO,
            fpga_card.an_arq(),
            project=B,
        )
        # With what is known to be good, so the card is.
        self.is_bad('CRC error')

    def test_a_guest_keeps_its_own_after_a_boot_of_the_host(self):
        arq = fpga_card.wants(self.own)
        self.boot_and_delete(arq, project=A)
        self.lose_power()
        self.host.programmer.ready(
            [arq], programming_record.Asker(A, 'user', ONE), {}
        )
        self.holds(self.own)


class TestProperty(PrivateTestCase):
    @settings(max_examples=30, deadline=None)
    @given(
        st.lists(
            st.tuples(
                st.sampled_from([A, B]),
                st.sampled_from(['nothing', 'own', 'public']),
                st.sampled_from([None, 'CRC error']),
            ),
            max_size=6,
        )
    )
    def test_nobody_finds_what_is_anothers(self, servers):
        host = fpga_card.Host(self.useFixture(fixtures.TempDir()).path)
        own = {
            project: host.bitstreams.add(owner=project) for project in (A, B)
        }
        public = host.bitstreams.add()
        owners = {
            host.bitstreams.sha256(own[project]): project for project in own
        }
        for number, (project, wanted, fault) in enumerate(servers):
            arq = {
                'nothing': fpga_card.an_arq(),
                'own': fpga_card.wants(own[project]),
                'public': fpga_card.wants(public),
            }[wanted]
            host.card.faults = [exceptions.DeviceError(fault)] if fault else []
            try:
                host.boot(str(number), arq, project=project)
            except exceptions.AcceleratorError:
                host.settle()
            else:
                found = host.card.really_loaded()
                self.assertIn(owners.get(found), (None, project))
                if wanted != 'nothing':
                    self.assertEqual(
                        host.bitstreams.sha256(
                            arq.group['accel:bitstream_id']
                        ),
                        found,
                    )
            host.held_by.clear()


class TestGarbage(PrivateTestCase):
    """A project's own bitstream that the card does not take."""

    def fail(self, project=A):
        self.host.card.faults = [exceptions.DeviceError('CRC error of 0000:')]
        error = self.assertRaises(
            exceptions.BitstreamUnusable,
            self.host.boot,
            ONE,
            fpga_card.wants(self.own),
            project=project,
        )
        self.host.settle()
        return error

    def test_its_owner_reads_what_to_do(self):
        error = self.fail()
        self.assertEqual(self.own, error.bitstream_id)
        self.assertIn('Upload', error.public)
        self.assertNotIn('0000:', error.public)
        # Administrators read the rest.
        self.assertIn('CRC error of 0000:', self.host.records[-1].failure)

    def test_the_region_is_for_whoever_asks_for_a_bitstream(self):
        self.fail()
        self.is_unclean('CRC error')
        for project in (A, B):
            self.refused(
                exceptions.DeviceError,
                'CRC error',
                TWO,
                fpga_card.an_arq(),
                project=project,
            )
        self.restarted()
        self.host.boot(TWO, fpga_card.wants(self.image), project=B)
        self.holds(self.image)
        self.assertIsNone(self.host.known().unclean)

    def test_the_host_loads_what_the_operator_had_loaded_before(self):
        self.boot_and_delete(fpga_card.wants(self.image))
        self.host.held_by[fpga_card.handle_uuid('region0')] = ONE
        self.fail()
        self.holds(self.image)
        # The server that failed is not given that for what it asked for.
        self.host.boot(ONE, fpga_card.wants(self.own))
        self.holds(self.own)

    def test_the_host_loads_the_blank_one(self):
        self.host.clean_with(self.other)
        self.fail()
        self.holds(self.other)

    def test_the_card_is_to_blame(self):
        self.boot_and_delete(fpga_card.wants(self.image))
        self.host.card.faults = [
            exceptions.DeviceError('CRC error'),
            exceptions.DeviceError('no power'),
        ]
        self.assertRaises(
            exceptions.BitstreamUnusable,
            self.host.boot,
            ONE,
            fpga_card.wants(self.own),
            project=A,
        )
        self.host.settle()
        self.is_bad('no power')

    def test_nova_compute_is_killed(self):
        self.host.card.faults = [SystemExit()]
        self.assertRaises(
            SystemExit,
            self.host.boot,
            ONE,
            fpga_card.wants(self.own),
            project=A,
        )
        self.restarted()
        self.host.regions.recover()
        self.is_unclean('died')
        self.host.boot(TWO, fpga_card.wants(self.image), project=B)
        self.holds(self.image)

    def test_bytes_that_are_refused(self):
        self.boot_and_delete(fpga_card.wants(self.image))
        self.host.bitstreams.fault = exceptions.BitstreamRefused.for_all(
            'bad hash'
        )
        error = self.assertRaises(
            exceptions.BitstreamUnusable,
            self.host.boot,
            ONE,
            fpga_card.wants(self.own),
            project=A,
        )
        self.assertEqual(self.own, error.bitstream_id)
        self.assertIn(
            'upload it again, or ask for another: bad hash', error.public
        )
        self.host.settle()
        self.holds(self.image)

    def test_the_operators_bitstream_fails(self):
        self.host.card.faults = [exceptions.DeviceError('CRC error')]
        error = self.assertRaises(
            exceptions.DeviceError,
            self.host.boot,
            ONE,
            fpga_card.wants(self.image),
            project=A,
        )
        self.assertIn('CRC error', str(error))
        self.host.settle()
        self.is_bad('CRC error')

    def test_whoever_asks(self):
        self.host.card.faults = [exceptions.DeviceError('CRC error')]
        self.assertRaises(
            exceptions.BitstreamUnusable,
            self.host.programmer.program,
            naming.derived_uuid(
                fpga_card.NODE, fpga_card.DEVICE.name, 'deployable', 'region0'
            ),
            fpga_bitstream.WantedBitstream(self.own),
            programming_record.Asker(A, 'user'),
            'user',
        )
        self.is_unclean('CRC error')
