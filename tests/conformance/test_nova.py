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

"""Nova's functional tests of Cyborg, unchanged, against our services.

nova-api and the accelerator API are behind a real keystonemiddleware on
loopback, Nova's client asks through its real SDK adapter, and the scheduler
has our filters. The computes are Nova's fake ones: devices are made in
Placement by the tests, and reported to the API here.
"""

# Its __init__ decides between eventlet and native threads; anything else of
# Nova imported before it leaves the process half patched.
import nova.tests.functional  # noqa: F401 isort: skip

import fixtures
from nova.tests.functional import test_servers
from nova.tests.functional.regressions import test_bug_2140631
from openstack import proxy
from openstack import service_description
import testtools

from conformance import cyborg
from nova_accel.model import naming
from rig.loopback import clients
from rig.loopback import control_plane

#: Before Nova's test case stubs them.
_SDK = {
    '_make_proxy': (
        service_description.ServiceDescription,
        service_description.ServiceDescription._make_proxy,
    ),
    'get_endpoint': (proxy.Proxy, proxy.Proxy.get_endpoint),
}


class RealAdapter(fixtures.Fixture):
    """The SDK's own adapter for our service, a stub for all the others."""

    def _setUp(self):
        for name, (owner, real) in _SDK.items():
            self.useFixture(
                fixtures.MockPatchObject(
                    owner, name, _of_ours(real, getattr(owner, name))
                )
            )


def _of_ours(real, stub):
    def choose(service, *args, **kwargs):
        chosen = real if service.service_type == 'accelerator' else stub
        return chosen(service, *args, **kwargs)

    return choose


class InPlaceOfCyborg(control_plane.ControlPlane):
    """Stands before a class of Nova's tests."""

    ADMIN_API = True

    def setUp(self):
        self.cyborg = cyborg.Cyborg()
        for name, value in (
            ('CyborgFixture', self.cyborg),
            ('OSAPIFixture._stub_keystone', self._start_control_plane),
        ):
            self.useFixture(
                fixtures.MonkeyPatch(f'nova.tests.fixtures.{name}', value)
            )
        super().setUp()

    def _start_control_plane(self, osapi):
        """Before Nova's fixture starts nova-api."""
        self.useFixture(RealAdapter())
        self._listen()
        self._setup_configuration()
        self.flags(cyborg_compatible=True, group='nova_accel')

    def start_service(self, name, *args, **kwargs):
        if name == 'conductor':
            # The first of them, when nova-api is there.
            self._open()
        return super().start_service(name, *args, **kwargs)

    def _open(self):
        self.server.mount('/', self.cyborg.watch(self.api_fixture.app()))
        self._setup_clients()
        self.cyborg.connect(
            self.accelerator,
            clients.AcceleratorClient(
                self.keystone, self.nova, f'{self.url}/accelerator/v2'
            ),
        )

    def _create_device_rp(
        self, index, compute_rp_uuid, resource='FPGA', res_amt=2
    ):
        """As our nova-compute publishes it."""
        uuid = super()._create_device_rp(
            index, compute_rp_uuid, resource, res_amt
        )
        self._create_trait(naming.OWNERSHIP_TRAIT)
        self._set_provider_traits(
            uuid,
            [self.cyborg.trait, naming.OWNERSHIP_TRAIT, naming.OWNER_TRAIT],
        )
        hostname = self._get_resource_provider_by_uuid(compute_rp_uuid)['name']
        self.cyborg.report_device(hostname, compute_rp_uuid, uuid, res_amt)
        return uuid


class TestServer(InPlaceOfCyborg, test_servers.AcceleratorServerTest):
    pass


class TestServerResched(
    InPlaceOfCyborg, test_servers.AcceleratorServerReschedTest
):
    pass


class TestServerOps(InPlaceOfCyborg, test_servers.AcceleratorServerOpsTest):
    pass


class TestTwoPorts(
    InPlaceOfCyborg, test_servers.TwoPortsAcceleratorServerOpsTest
):
    pass


class TestPort(InPlaceOfCyborg, test_servers.PortAcceleratorServerOpsTest):
    pass


class TestPortCreateReject(
    InPlaceOfCyborg, test_servers.PortAcceleratorServerCreateRejectTest
):
    pass


class TestPortAndFlavor(
    InPlaceOfCyborg, test_servers.PortAndFlavorAccelsServerCreateTest
):
    @testtools.skip(
        "Nova's test is wrong: of a list of ARQs it takes "
        "arqs['attach_handle_info'], which no ARQ of its own fixture lets it "
        'come to'
    )
    def test_accels_from_both_port_and_flavor(self):
        pass


class TestBug2140631(InPlaceOfCyborg, test_bug_2140631.TestBug2140631Cyborg):
    pass


class TestAllOfThem(testtools.TestCase):
    def test_each_of_novas_classes_is_run(self):
        novas = {
            found
            for module in (test_servers, test_bug_2140631)
            for found in vars(module).values()
            if isinstance(found, type)
            and issubclass(found, test_servers.AcceleratorServerBase)
        }
        run = {
            found.__bases__[1] for found in InPlaceOfCyborg.__subclasses__()
        }
        self.assertEqual(novas - {test_servers.AcceleratorServerBase}, run)
