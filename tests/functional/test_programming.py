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

import hashlib
import io
import json
import re

import fixtures
from nova import context as nova_context
from nova import exception
from nova import objects
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.volume import cinder

from functional import base
from nova_accel import exceptions
from nova_accel.testing import devices
from nova_accel.testing import fake_fpga
from nova_accel.testing.fake_fpga import Fault
from rig.loopback import fpga_cloud
from rig.stubs import bitstreams

FUNCTION = '11111111-0b5a-4d59-9d3b-3a1b8f0a5c11'
BITS = b'bits'


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class TestCase(fpga_cloud.FpgaCloud, base.AcceleratorTestCase):
    """Servers whose profile, or image, says what an FPGA is to do."""

    hosts = ('host1',)

    def setUp(self):
        super().setUp()
        self.region, *self.other_regions = self.regions('host1')
        self.image = self.upload(
            self.region, BITS, function_uuid=FUNCTION, function_name='matmul'
        )

    def boot_asking(self, expected_state='ACTIVE', **wanted):
        """Boot a server whose region is to hold something."""
        self.create_fpga_profile('profile', self.region, **wanted)
        return self._create_server(
            flavor_id=self.create_accel_flavor('profile'),
            networks='none',
            expected_state=expected_state,
        )

    def boot_in_vain(self, **wanted):
        """:returns: the reason that Nova is told; no FPGA is touched"""
        server = self.boot_asking(expected_state='ERROR', **wanted)
        self.assertEqual([], self.cards.programmed)
        self.delete(server)
        return re.findall(
            r'(?:Insufficient compute resources|is unacceptable): (.*)',
            self.stdlog.logger.output,
        )[-1]

    def assert_programmed(self, *contents):
        self.assertEqual(
            [sha256(data) for data in contents],
            [digest for _card, _region, digest in self.cards.programmed],
        )

    def deployable(self):
        """The uuid of the region's."""
        [uuid] = [
            found['uuid']
            for found in self.accelerator.get('/deployables')['deployables']
            if self.region in found['attributes_list']
        ]
        return uuid

    def reserved(self):
        """Of all providers of FPGAs, what no one is given."""
        self.settle('host1')
        self._run_periodics()
        return sum(
            provider['reserved']['FPGA']
            for provider in self.accelerator_providers('host1')
            if 'FPGA' in provider['reserved']
        )


class TestProgramming(TestCase):
    def test_a_bitstream_by_its_id(self):
        server = self.boot_asking(bitstream_id=self.image)
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        self.assert_programmed(BITS)
        self._reboot_server(server, hard=True)
        self.delete(server)
        # It is there already.
        server = self.boot(self.create_accel_flavor('profile'))
        self.assert_programmed(BITS)
        self.assertEqual([self.image], self.downloaded)
        self.delete(server)

    def test_a_bitstream_is_for_one_type_of_region(self):
        """And the profile does not say which."""
        self.assertNotEqual([], self.other_regions)
        for number, region in enumerate([self.region, *self.other_regions]):
            image = self.upload(region, BITS)
            self.create_profile(
                f'profile{number}',
                [{'resources:FPGA': '1', 'accel:bitstream_id': image}],
            )
            server = self.boot(self.create_accel_flavor(f'profile{number}'))
            self.assertEqual(number + 1, len(self.cards.programmed))
            self.delete(server)

    def test_a_function_by_its_uuid(self):
        server = self.boot_asking(function_id=FUNCTION)
        self.assert_programmed(BITS)
        self.delete(server)

    def test_what_it_does_is_a_trait_in_placement(self):
        server = self.boot_asking(function_name='matmul')
        self.settle('host1')
        self._run_periodics()
        trait = f'_FUNCTION_{FUNCTION.upper().replace("-", "_")}'
        [found] = [
            trait_
            for provider in self.accelerator_providers('host1')
            for trait_ in provider['traits']
            if trait in trait_
        ]
        self.delete(server)
        # The third way to ask: for what is there.
        self.create_profile(
            'there', [{**base.FPGA, f'trait:{found}': 'required'}]
        )
        server = self.boot(self.create_accel_flavor('there'))
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        self.assert_programmed(BITS)
        self.delete(server)

    def test_while_the_image_is_downloaded(self):
        download = self.useFixture(fpga_cloud.ImageDownload())
        download.may_end.clear()
        self.cards.may_end.clear()
        self.create_fpga_profile(
            'profile', self.region, bitstream_id=self.image
        )
        server = self._create_server(
            flavor_id=self.create_accel_flavor('profile'),
            networks='none',
            expected_state='BUILD',
        )
        # Either would wait for ever if it came after the other.
        self._wait_for_assert(
            lambda: self.assertTrue(
                download.begun.is_set() and self.cards.is_programming
            )
        )
        download.may_end.set()
        self.cards.may_end.set()
        server = self._wait_for_state_change(server, 'ACTIVE')
        self.assert_programmed(BITS)
        self.delete(server)

    def test_a_changed_profile_leaves_a_guest_alone(self):
        server = self.boot_asking(bitstream_id=self.image)
        other = self.upload(self.region, b'other')
        self.change_profile(
            'profile', [self.fpga_group(self.region, bitstream_id=other)]
        )
        self._reboot_server(server, hard=True)
        self.assert_programmed(BITS)
        self.delete(server)


class TestImage(TestCase):
    """The properties of the image that the server boots from."""

    def setUp(self):
        super().setUp()
        self.create_fpga_profile('profile', self.region)
        self.flavor = self.create_accel_flavor('profile')

    def vm_image(self, bitstream_id):
        image = bitstreams.image(b'', **{'accel:bitstream_id': bitstream_id})
        return self.glance.create(None, image)['id']

    def test_is_honoured(self):
        server = self.boot(self.flavor, image_uuid=self.vm_image(self.image))
        self.assert_programmed(BITS)
        self.delete(server)

    def test_another_one_of_a_rebuild(self):
        server = self.boot(self.flavor, image_uuid=self.vm_image(self.image))
        other = self.upload(self.region, b'other')
        self._rebuild_server(server, self.vm_image(other))
        self.assert_programmed(BITS, b'other')
        self.delete(server)

    def test_of_the_volume_that_is_booted_from(self):
        volume = self.cinder.IMAGE_BACKED_VOL
        get = cinder.API.get

        def with_properties(_api, *args, **kwargs):
            return {
                **get(*args, **kwargs),
                'volume_image_metadata': {'accel:bitstream_id': self.image},
            }

        self.useFixture(
            fixtures.MonkeyPatch('nova.volume.cinder.API.get', with_properties)
        )
        wanted = self._build_server(
            image_uuid='', flavor_id=self.flavor, networks='none'
        )
        server = self.api.post_server(
            {
                'server': {
                    **wanted,
                    'block_device_mapping_v2': [
                        {
                            'boot_index': 0,
                            'uuid': volume,
                            'source_type': 'volume',
                            'destination_type': 'volume',
                        }
                    ],
                }
            }
        )
        server = self._wait_for_state_change(server, 'ACTIVE')
        self.assert_programmed(BITS)
        self.delete(server)

    def test_says_nothing(self):
        server = self.boot(self.flavor)
        self.assert_programmed()
        self.delete(server)


class TestRefused(TestCase):
    """Nothing touches the card."""

    def test_a_region_that_is_not_the_bitstreams(self):
        image = self.upload(self.other_regions[0], b'other')
        self.assertIn('region_uuid', self.boot_in_vain(bitstream_id=image))

    def test_no_bitstream(self):
        missing = '5b9b3b5e-0a57-4d9d-9e0b-6b1f0fd0a001'
        self.assertIn(missing, self.boot_in_vain(function_id=missing))

    def test_more_than_one(self):
        other = self.upload(self.region, b'newer', function_name='matmul')
        said = self.boot_in_vain(function_name='matmul')
        self.assertIn(self.image, said)
        self.assertIn(other, said)

    def test_other_bytes_than_were_uploaded(self):
        self.glance._imagedata[self.image] = b'evil'
        self.assertIn(
            'is corrupt: its sha512',
            self.boot_in_vain(bitstream_id=self.image),
        )

    def test_too_few_bytes(self):
        self.glance._imagedata[self.image] = BITS[:-1]
        self.assertIn(
            '3 of 4 bytes', self.boot_in_vain(bitstream_id=self.image)
        )

    def test_no_signature(self):
        self.flags(bitstream_signatures='required', group='nova_accel')
        self.restart_compute_service('host1')
        self.assertIn(
            'has no signature', self.boot_in_vain(bitstream_id=self.image)
        )

    def test_too_large(self):
        self.flags(bitstream_max_size_mb=1, group='nova_accel')
        self.restart_compute_service('host1')
        image = self.upload(self.region, bytes(1024 * 1024 + 1))
        self.assertIn(
            'bitstream_max_size_mb', self.boot_in_vain(bitstream_id=image)
        )
        self.assertEqual([], self.downloaded)


class TestCleaning(TestCase):
    def test_the_next_guest_finds_a_blank_region(self):
        blank = self.upload(self.region, b'blank')
        self.flags(
            group='nova_accel',
            device_spec=[
                json.dumps(
                    {
                        **json.loads(devices.FPGA_SPEC),
                        'clean': 'program',
                        'clean_bitstream': blank,
                    }
                )
            ],
        )
        self.restart_compute_service('host1')
        # No one knows what was in it until then.
        self.wait_until_clean(b'blank')
        server = self.boot_asking(bitstream_id=self.image)
        self.delete(server)
        self.wait_until_clean(b'blank', BITS, b'blank')
        server = self.boot(self.create_accel_flavor('profile'))
        self.assert_programmed(b'blank', BITS, b'blank', BITS)
        self.delete(server)

    def wait_until_clean(self, *programmed):
        self._wait_for_assert(lambda: self.assert_programmed(*programmed))
        # The other region, which the blank bitstream does not fit.
        self._wait_for_assert(lambda: self.assertEqual(1, self.reserved()))


class TestFailure(TestCase):
    """The card fails; it is known to be bad until it is programmed."""

    def is_bad_until_programmed(self, fault):
        # It is tried once more, if there is time: this driver says that it
        # can be.
        self.cards.faults = [fault, fault]
        server = self.boot_asking(
            expected_state='ERROR', bitstream_id=self.image
        )
        self.cards.faults = []
        self.delete(server)
        self.assertEqual(1, self.reserved())
        self.assertEqual([], self.cards.programmed)
        self.accelerator.post(
            f'/fpga/{self.deployable()}', {'glance_bitstream_uuid': self.image}
        )
        self.assert_programmed(BITS)
        self.assertEqual(0, self.reserved())
        server = self.boot(self.create_accel_flavor('profile'))
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        self.assert_programmed(BITS)
        self.assertEqual(
            ['succeeded', 'failed'],
            [
                found['state']
                for found in self.accelerator.get('/programmings')[
                    'programmings'
                ]
            ],
        )
        self.delete(server)

    def test_the_tool_says_no(self):
        self.is_bad_until_programmed(Fault.FAILS)

    def test_without_power(self):
        self.is_bad_until_programmed(Fault.LOSES_POWER)

    def test_it_takes_too_long(self):
        self.flags(programming_timeout_s=2, group='nova_accel')
        self.restart_compute_service('host1')
        self.is_bad_until_programmed(Fault.HANGS)


class OwnTestCase(TestCase):
    def upload_own(self, data, owner):
        """An image that is not the operator's."""
        image_id = self.upload(self.region, data)
        image = self.glance.images[image_id]
        image.update(is_public=False, visibility='shared', owner=owner)
        return image_id


class TestOwnBitstream(OwnTestCase):
    """It fails."""

    hosts = ('host1', 'host2')

    def test_that_no_card_takes(self):
        """Nova tries no other host, and the region is of use at once."""
        garbage = self.upload_own(b'garbage', self.api.project_id)
        # It is tried once more; by another host it would be programmed.
        self.cards.faults = [Fault.FAILS] * 2
        server = self.boot_asking(expected_state='ERROR', bitstream_id=garbage)
        fault = self.api.get_server(server['id'])['fault']['message']
        self.assertIn(f'Image {garbage} is unacceptable', fault)
        self.assertIn('Upload', fault)
        for name in (*self.hosts, '0000:'):
            self.assertNotIn(name, fault)
        self.delete(server)
        [failed] = self.accelerator.get('/programmings')['programmings']
        self.assertIn('it is refused', failed['failure'])
        self.assertEqual(0, self.reserved())
        server = self.boot(self.create_accel_flavor('profile'))
        self.assert_programmed(b'garbage')
        self.delete(server)

    def test_of_other_bytes_than_were_uploaded(self):
        own = self.upload_own(b'own', self.api.project_id)
        self.glance._imagedata[own] = b'evil'
        server = self.boot_asking(expected_state='ERROR', bitstream_id=own)
        fault = self.api.get_server(server['id'])['fault']['message']
        self.assertIn(f'Image {own} is unacceptable: upload it again', fault)
        self.assertEqual([own], self.downloaded)
        self.delete(server)


class TestAnothersBitstream(OwnTestCase):
    """A region holds a circuit of another project."""

    def leave_circuit(self, *before):
        """Those programmed before it, and it, are in the region then."""
        for image in (*before, self.upload_own(b'private', 'another')):
            server = self.boot_asking(bitstream_id=image)
            self.delete(server)
            self.accelerator.delete('/device_profiles?value=profile')

    def boot_plain(self, **kwargs):
        self.create_fpga_profile('plain', self.region)
        return self.boot(self.create_accel_flavor('plain'), **kwargs)

    def test_is_replaced_by_what_was_there_before(self):
        self.leave_circuit(self.image)
        self.restart_compute_service('host1')
        server = self.boot_plain()
        self.assert_programmed(BITS, b'private', BITS)
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        self.delete(server)

    def test_is_not_handed_out(self):
        self.leave_circuit()
        server = self.boot_plain(expected_state='ERROR')
        self.assertIn(
            'set "clean": "program" and clean_bitstream',
            self.stdlog.logger.output,
        )
        self.assert_programmed(b'private')
        self.delete(server)
        # Who asks for a bitstream gets it.
        server = self.boot_asking(bitstream_id=self.image)
        self.assert_programmed(b'private', BITS)
        self.delete(server)


class TestRebootOfTheHost(TestCase):
    """Its FPGAs hold nothing then, and the guest is not to find that."""

    def setUp(self):
        super().setUp()
        self.flags(resume_guests_state_on_host_boot=True)
        self.server = self.boot_asking(bitstream_id=self.image)
        self.found_by_guests = []
        create = fakelibvirt.Domain.createWithFlags

        def note(domain, flags):
            self.found_by_guests.append(len(self.cards.programmed))
            create(domain, flags)

        self.useFixture(
            fixtures.MonkeyPatch(
                'nova.tests.fixtures.libvirt.Domain.createWithFlags', note
            )
        )

    def reboot_host(self):
        (domain,) = self.connection('host1').listAllDomains(
            fakelibvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE
        )
        domain.destroy()
        self.cards.lose_contents()
        self.useFixture(
            fixtures.MonkeyPatch(
                'nova_accel.virt.fpga.regions.region_journal.boot_id',
                lambda: 'another boot',
            )
        )
        self.restart_compute_service('host1')

    def assert_programmed_again_before_it_started(self):
        self.assert_programmed(BITS, BITS)
        self.assertEqual([2], self.found_by_guests)
        self.assert_guest_has_its_arqs(self.server, (0, 'PCI'))
        self.delete(self.server)

    def test_it_is_programmed_again(self):
        self.reboot_host()
        self.assert_programmed_again_before_it_started()

    def test_its_bitstream_was_deleted(self):
        self.glance.delete(None, self.image)
        self.reboot_host()
        self.assert_programmed_again_before_it_started()
        self.assertEqual([self.image], self.downloaded)

    def test_glance_is_away(self):
        def away(*args, **kwargs):
            raise exception.GlanceConnectionFailed(
                server='glance', reason='it is away'
            )

        for name in ('show', 'detail', 'download'):
            self.useFixture(fixtures.MockPatchObject(self.glance, name, away))
        self.reboot_host()
        self.assert_programmed_again_before_it_started()

    def test_it_cannot_be_programmed_again(self):
        """No guest starts, until a hard reboot can."""
        # Once more is tried in the same start.
        self.cards.faults = [Fault.FAILS] * 2
        self.reboot_host()
        self.assertEqual([], self.found_by_guests)
        self.assertEqual(
            'ERROR', self.api.get_server(self.server['id'])['status']
        )
        self._reboot_server(self.server, hard=True)
        self.assert_programmed_again_before_it_started()


class TestOwner(TestCase):
    """The owner of a server reprograms the region that it has."""

    def setUp(self):
        super().setUp()
        self.useFixture(
            fixtures.MockPatchObject(
                fake_fpga.FakeFpgaDriver, 'programs_under_guest', False
            )
        )
        self.restart_compute_service('host1')
        self.server = self.boot_asking(bitstream_id=self.image)
        self.next = self.upload(self.region, b'next')
        [arq] = self.arqs(self.server)
        self.path = f'/fpga/{arq["uuid"]}'

    def program(self, status):
        """As a member of the project, who sees no deployables."""
        answer = self.demo_accelerator.request(
            'POST', self.path, json={'glance_bitstream_uuid': self.next}
        )
        self.assertEqual(status, answer.status_code, answer.text)
        return answer.text

    def test_while_it_is_stopped(self):
        self.program(409)
        self._stop_server(self.server)
        self.program(200)
        self.assert_programmed(BITS, b'next')
        self._start_server(self.server)
        self.program(409)
        self._reboot_server(self.server, hard=True)
        self.assert_guest_has_its_arqs(self.server, (0, 'PCI'))
        # It is the owner's last word, whatever the profile says.
        self.assert_programmed(BITS, b'next')
        self.delete(self.server)

    def test_that_is_being_started(self):
        """Nova has noted so, and its host has not heard of it."""
        self._stop_server(self.server)
        context = nova_context.get_admin_context()
        [instance] = objects.InstanceList.get_by_filters(
            context, {'uuid': self.server['id']}
        )
        instance.task_state = 'powering-on'
        instance.save()
        self.program(409)
        self.assert_programmed(BITS)
        instance.task_state = None
        instance.save()
        self.program(200)
        self.delete(self.server)

    def test_whose_card_changes_hands(self):
        """Its driver sees nothing of it, and the server has it all the while.

        The other regions of the card can be had by no one meanwhile.
        """
        self._stop_server(self.server)
        [arq] = self.arqs(self.server)
        known, deployables = self.fpgas()
        with fixtures.MockPatchObject(
            fake_fpga.FakeFpgaDriver,
            'discover',
            side_effect=exceptions.DeviceError('it has no host driver'),
        ):
            others = dict.fromkeys(known, (1, 1, 0))
            held = {**others, arq['device_rp_uuid']: (1, 0, 1)}
            self.assertEqual((held, deployables), self.fpgas())
            self._start_server(self.server)
            self.program(409)
            self.assert_guest_has_its_arqs(self.server, (0, 'PCI'))
            self.assertEqual((held, deployables), self.fpgas())
            self.delete(self.server)
            self.assertEqual(({}, []), self.fpgas())
        free = dict.fromkeys(known, (1, 0, 0))
        self.assertEqual((free, deployables), self.fpgas())

    def fpgas(self):
        """After a look: units of Placement, and the API's deployables.

        Of each provider there are the total, the reserved and the used units.
        """
        for _cycle in range(3):
            self.settle('host1')
            self._run_periodics()
        return (
            {
                provider['uuid']: tuple(
                    provider[key].get('FPGA', 0)
                    for key in ('inventory', 'reserved', 'usage')
                )
                for provider in self.accelerator_providers('host1')
                if 'FPGA' in provider['inventory']
            },
            [
                found['uuid']
                for found in self.accelerator.get('/deployables')[
                    'deployables'
                ]
                if 'REGION' in found['attributes_list']
            ],
        )


class TestShell(TestCase):
    """The static part of a card, which an administrator loads."""

    SHELL_ID = '0a3f5c1e-7b0a-4c1e-8a55-1f0b6c3d7e02'

    def setUp(self):
        super().setUp()
        self.shell = self.upload_shell()

    def upload_shell(self, **properties):
        data = self.SHELL_ID.encode()
        image = bitstreams.image(
            data,
            provides_shell_id=self.SHELL_ID,
            **{'vendor': '8086', 'board': '09c4', **properties},
        )
        self.glance.create(None, image, io.BytesIO(data))
        return image['id']

    def load(self, status, shell=None, client=None):
        """:returns: what is said"""
        answer = (client or self.accelerator).request(
            'POST',
            f'/fpga/{self.deployable()}',
            json={'glance_bitstream_uuid': shell or self.shell},
        )
        self.assertEqual(status, answer.status_code, answer.text)
        return answer.text

    def programmings(self):
        """(region, state), the oldest first."""
        return [
            (found['region'], found['state'])
            for found in reversed(
                self.accelerator.get('/programmings')['programmings']
            )
        ]

    def test_on_an_idle_card(self):
        server = self.boot_asking(bitstream_id=self.image)
        self.assertIn('has something of the card', self.load(409))
        self.delete(server)
        self.load(200)
        self.settle('host1')
        [found] = [
            each
            for each in self.accelerator.get('/deployables')['deployables']
            if each['uuid'] == self.deployable()
        ]
        self.assertIsNone(found['bitstream_id'])
        # What the region held is gone.
        server = self.boot(self.create_accel_flavor('profile'))
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        self.assert_programmed(BITS, BITS)
        self.assertEqual(
            [
                ('region0', 'succeeded'),
                ('shell', 'succeeded'),
                ('region0', 'succeeded'),
            ],
            self.programmings(),
        )
        self.delete(server)

    def test_who_may_not(self):
        self.load(422, client=self.demo_accelerator)
        # Nor by way of a server.
        self.assertIn(
            'it is a shell, not for a region',
            self.boot_in_vain(bitstream_id=self.shell),
        )
        self.assertEqual([], self.programmings())

    def test_of_another_card(self):
        self.assertIn(
            'its board is', self.load(409, self.upload_shell(board='another'))
        )
        self.assertIn(
            'has no vendor', self.load(409, self.upload_shell(vendor=''))
        )
        self.glance._imagedata[self.shell] = b'evil'
        self.load(409)
        self.assertEqual(0, self.reserved())

    def test_a_failure(self):
        """No one gets anything of the card, until it has a shell."""
        self.cards.faults = [Fault.LOSES_POWER]
        self.load(502)
        self.settle('host1')
        [fault] = [
            device['fault']
            for device in self.accelerator.get('/devices')['devices']
            if device['fault'] is not None
        ]
        self.assertIn('the shell: not programmed', fault)
        self.assertGreater(self.reserved(), 0)
        self.load(200)
        self.assertEqual(0, self.reserved())
        server = self.boot_asking(bitstream_id=self.image)
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        self.delete(server)


class TestTwoHosts(TestCase):
    hosts = ('host1', 'host2')

    def test_the_server_goes_to_the_other(self):
        self.cards.faults = [Fault.FAILS, Fault.FAILS]
        server = self.boot_asking(bitstream_id=self.image)
        self.assert_guest_has_its_arqs(server, (0, 'PCI'))
        self.assert_programmed(BITS)
        self.delete(server)
