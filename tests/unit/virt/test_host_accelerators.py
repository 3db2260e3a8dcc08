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

import json
import pathlib
import types

from nova import conf as nova_conf

from nova_accel import exceptions
from nova_accel.db import accelerator_request
from nova_accel.db import device_profile
from nova_accel.model import arq as arq_model
from nova_accel.model import matching
from nova_accel.testing import devices
from unit.virt import started as started_module

CONF = nova_conf.CONF


class Instance:
    uuid = '5a4f0b62-9b7e-4a52-8d4f-2a8c8a6d8a01'
    project_id = 'project'
    user_id = 'user'
    system_metadata = {}
    flavor = types.SimpleNamespace(
        extra_specs={'nova_accel:device_profile': 'qat'})


class PlainInstance(Instance):
    flavor = types.SimpleNamespace(extra_specs={})


class TestHostAccelerators(started_module.StartedTestCase):

    def test_a_server_gets_a_device_and_gives_it_back(self):
        device_profile.create('qat', [{'resources:CUSTOM_QAT': '2'}])
        started = self.start()
        view = started._publisher.view
        (rp_uuid,) = (provider.uuid for provider in view.layout.providers
                      if 'CUSTOM_QAT' in provider.totals)
        started.acquire(Instance, 'qat', [matching.Provider(
            rp_uuid, {'CUSTOM_QAT': 2}, frozenset())])
        arqs = started.plug(Instance)
        self.assertEqual(2, len(arqs))
        # The next nova-compute of the host knows them.
        self.assertEqual(arqs, self.start().plug(Instance))
        # So does the API.
        (path,) = pathlib.Path(CONF.state_path).glob('nova_accel/*/*.json')
        path.unlink()
        started = self.start()
        self.assertEqual(arqs, started.plug(Instance))
        started.attachments.release(Instance.uuid)
        self.assertRaises(exceptions.DeviceError, started.plug, Instance)

    def test_an_instance_without_a_profile_gets_nothing(self):
        self.assertEqual((), self.start().plug(PlainInstance))

    def test_arqs_of_our_providers_are_ours(self):
        started = self.start()
        provider = started._publisher.view.layout.providers[0].uuid
        ours, cyborgs = ({'uuid': name, 'device_rp_uuid': rp_uuid,
                          'hostname': self.libvirt.host.get_hostname()}
                         for name, rp_uuid in (
                             ('ours', provider), ('theirs', Instance.uuid)))
        self.assertEqual((('ours',), (cyborgs,)),
                         started.split([ours, cyborgs]))
        self.assertEqual(((), ()), started.split(None))

    def test_what_ports_have_is_held_once_and_is_not_the_flavors(self):
        CONF.set_override('device_spec', [json.dumps({
            **json.loads(devices.QAT_SPEC), 'physical_network': 'physnet1'})],
            'nova_accel')
        device_profile.create('qat', [{'resources:CUSTOM_QAT': '1'}])
        started = self.start()
        started._publisher.wait_published(60)
        provider = started._publisher.view.layout.providers[0].uuid
        (created,) = accelerator_request.create('qat', 'project')
        accelerator_request.bind({created['uuid']: {
            'hostname': self.libvirt.host.get_hostname(),
            'device_rp_uuid': provider, 'instance_uuid': Instance.uuid}})
        arq = accelerator_request.get(created['uuid'])
        info = arq['attach_handle_info']
        self.assertEqual('physnet1', info['physical_network'])
        ports = [{'profile': {
            'arq_uuid': arq['uuid'],
            'pci_slot': '{domain}:{bus}:{device}.{function}'.format(**info)}}]
        for _time in range(2):
            started.plug_ports(Instance, ports)
            (held,) = started.attachments.held_arqs(arq_model.Role.PORT)
            self.assertEqual(arq['uuid'], held.uuid)
            self.api.refuse = True
        self.assertEqual((), started.attachments.held_by(Instance.uuid))
        self.assertEqual(((), ()), started.split([arq]))

    def test_our_mdevs_are_known_before_they_are_made(self):
        started = self.start()
        (vgpu,) = (device for device in started._publisher.view.devices
                   if device.driver == 'mdev')
        for handle in vgpu.deployables[0].handles:
            self.assertTrue(started.owns_mdev(handle.uuid))
        self.assertFalse(started.owns_mdev(Instance.uuid))
