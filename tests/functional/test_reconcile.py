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


"""What Nova's services leave behind, on hosts whose nova-compute is back."""

import fixtures
from nova import context as nova_context
from nova.tests.fixtures import libvirt as fakelibvirt
import tenacity

from functional import one_server
from nova_accel import exceptions
from nova_accel.cmd import audit
from nova_accel.cmd import database_fleet
from nova_accel.cmd import host as host_command
from nova_accel.model import finding
from nova_accel.model.profiles import device_profile
from rig import compute_parts


class ReconcileTestCase(one_server.OneServerTestCase):
    def setUp(self):
        super().setUp()
        self._reconcilers = {}
        (self.service,) = self.api.get_services(
            binary='nova-compute', host=self.host
        )

    def go_down(self):
        self.computes[self.host].stop()
        self.api.put_service_force_down(self.service['id'], True)

    def come_back(self):
        self.restart_compute_service(self.host)
        self.api.put_service_force_down(self.service['id'], False)

    def lose_guest(self):
        """As a host does that is installed anew."""
        domain = self.domain()
        domain.destroy()
        domain.undefine()

    def repair(self, host=None):
        """A pass of a host, which remembers its passes since its start."""
        driver = self.computes[host or self.host].driver
        if driver not in self._reconcilers:
            self._reconcilers[driver] = compute_parts.reconciler(
                driver._accelerators, driver._host
            )
        self._reconcilers[driver].repair()

    def audit(self):
        """What an audit finds: server and reason."""
        return [
            (row.found.instance_uuid, row.found.words) for row in audit.find()
        ]


class TestLocalDelete(ReconcileTestCase):
    def delete_while_down(self):
        self.go_down()
        self.api.delete_server(self.server['id'])
        self._wait_until_deleted(self.server)

    def test_a_guest_is_nova_to_reap(self):
        self.delete_while_down()
        self.assertEqual(
            [(self.server['id'], 'its instance does not exist')], self.audit()
        )
        self.come_back()
        self.repair()
        self.assert_held()
        self.flags(running_deleted_instance_timeout=0)
        self.computes[self.host].manager._cleanup_running_deleted_instances(
            nova_context.get_admin_context()
        )
        self.assert_nothing_left()

    def test_a_guest_that_is_gone(self):
        self.delete_while_down()
        self.lose_guest()
        self.come_back()
        self.assert_held()
        self.repair()
        self.assert_nothing_left()
        self.assertEqual([], self.audit())

    def test_a_host_that_does_not_come_back(self):
        self.delete_while_down()
        self.flags(host_silence_s=1, group='nova_accel')
        # It has to have been silent for a second.
        tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(exceptions.Conflict),
            wait=tenacity.wait_fixed(0.2),
            stop=tenacity.stop_after_delay(30),
            reraise=True,
        )(host_command.forget, self.host)
        self.assertEqual([], self.audit())
        self.assertEqual([], self.arqs(self.server))
        # And should it come back after all:
        self.lose_guest()
        self.come_back()
        self.repair()
        self.assert_nothing_left()


class TestLocalDeleteCompat(TestLocalDelete):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY


class TestFindings(ReconcileTestCase):
    """What a host finds is in the database after its next report."""

    def compare(self):
        self.repair()
        compute_parts.publisher(
            self.computes[self.host].driver._accelerators
        ).report()
        return [
            (
                found.hostname,
                found.kind,
                found.whose,
                found.is_repaired,
                len(found.devices),
            )
            for found in database_fleet.read().reported
        ]

    def test_a_guest_that_vanishes_behind_novas_back(self):
        self.assertEqual([], self.compare())
        self.lose_guest()
        found = [
            (
                self.host,
                finding.Kind.GUEST_GONE,
                self.server['id'],
                False,
                # The server has two.
                2,
            )
        ]
        for _again in range(2):
            self.assertEqual(found, self.compare())
        self.assert_held()
        # That is the remedy.
        self.act('reboot', {'type': 'HARD'})
        self.wait_for_status('ACTIVE')
        self.assertEqual([], self.compare())
        self.assert_runs_with_all()

    def test_a_guest_that_has_lost_a_device(self):
        """The finding is reported when two reports in turn have it."""
        self.domain()._def['devices']['hostdevs'] = []
        self.assertEqual([], self.compare())
        self.assertEqual(
            [finding.Kind.NOT_IN_GUEST] * 2,
            [kind for _host, kind, *_rest in self.compare()],
        )

    def test_a_stopped_server_needs_no_guest_that_runs(self):
        self.act('os-stop')
        self.wait_for_status('SHUTOFF')
        for _again in range(2):
            self.assertEqual([], self.compare())

    def test_what_is_repaired_is_shown_until_the_next_comparison(self):
        self.go_down()
        self.api.delete_server(self.server['id'])
        self._wait_until_deleted(self.server)
        self.lose_guest()
        self.come_back()
        self.assertEqual(
            [(self.host, finding.Kind.BINDING, self.server['id'], True, 0)],
            self.compare(),
        )
        self.assertEqual([], self.compare())


class TestEvacuated(ReconcileTestCase):
    hosts = ('host1', 'host2')

    def test_a_source_that_is_installed_anew(self):
        """Nova does not tell its driver."""
        self.go_down()
        source = self.host
        self.server = self._evacuate_server(
            self.server, expected_host=next(iter(set(self.hosts) - {source}))
        )
        self.lose_guest()
        self.assertEqual(
            [self.server['id']], [uuid for uuid, _why in self.audit()]
        )
        self.come_back()
        self.assertEqual(4, len(self.arqs(self.server)))
        for host in self.hosts:
            self.repair(host)
        (self.host,) = {arq['hostname'] for arq in self.arqs(self.server)}
        self.assertNotEqual(source, self.host)
        self.assertFalse(self.mdevs(source))
        self.assertEqual([], self.audit())
        self.delete(self.server)


class TestEvacuatedCompat(TestEvacuated):
    flavor_key = device_profile.CYBORG_FLAVOR_KEY


class TestLostJournal(ReconcileTestCase):
    def test_a_guest_is_known_again(self):
        self.computes[self.host].stop()
        for path in self.state_path.glob('nova_accel/*/*.json'):
            path.unlink()
        self.restart_compute_service(self.host)
        self.repair()
        self.assert_runs_with_all()
        self.assert_hard_reboot_helps()
        self.delete(self.server)


class TestWhatIsUnderWay(ReconcileTestCase):
    """A pass in each step of a boot and of a deletion changes nothing."""

    def repair_within(self, method):
        """A pass whenever libvirt is called so."""
        target, name = method
        real = getattr(target, name)

        def repair_and_call(*args, **kwargs):
            self.passes += 1
            self.repair()
            result = real(*args, **kwargs)
            self.repair()
            return result

        self.passes = 0
        self.useFixture(
            fixtures.MonkeyPatch(
                f'{target.__module__}.{target.__name__}.{name}',
                repair_and_call,
            )
        )

    def test_a_boot(self):
        for method in (
            (fakelibvirt.Connection, 'defineXML'),
            (fakelibvirt.Domain, 'createWithFlags'),
        ):
            self.repair_within(method)
            server = self.boot(self.flavor)
            self.assertLess(0, self.passes)
            self.assertEqual(2, len(self.guest_devices(server)))
            self.assertEqual([], self.audit())
            self._delete_server(server)
        self.assert_kept()
        self.delete(self.server)

    def test_a_rebuild_and_a_hard_reboot(self):
        self.repair_within((fakelibvirt.Domain, 'undefine'))
        self._rebuild_server(
            self.server, '70a599e0-31e7-49b7-b260-868f441e862b'
        )
        self.assert_kept()
        self._reboot_server(self.server, hard=True)
        self.assert_kept()
        self.assertGreaterEqual(self.passes, 1)
        self.delete(self.server)


class TestAllocations(ReconcileTestCase):
    hosts = ('host1', 'host2')

    def test_what_placement_gives_on_another_host(self):
        other = next(iter(set(self.hosts) - {self.host}))
        provider = next(
            provider
            for provider in self.accelerator_providers(other)
            if 'CUSTOM_QAT' in provider['inventory']
        )
        url = f'/allocations/{self.server["id"]}'
        body = self.placement.get(url, version='1.28').body
        before = dict(body['allocations'])
        body['allocations'][provider['uuid']] = {
            'resources': {'CUSTOM_QAT': 1}
        }
        self.placement.put(url, body, version='1.28')
        for _pass in range(2):
            self.assertIn(
                provider['uuid'],
                self.placement.get(url, version='1.28').body['allocations'],
            )
            self.repair(other)
        after = self.placement.get(url, version='1.28').body['allocations']
        self.assertEqual(
            {uuid: each['resources'] for uuid, each in before.items()},
            {uuid: each['resources'] for uuid, each in after.items()},
        )
        self.repair()
        self.assert_runs_with_all()
        self.delete(self.server)
