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
import datetime
import types
import typing
from typing import Any

from oslo_utils import uuidutils
import testscenarios

from db import base
from nova_accel.db import attribute
from nova_accel.db import client_arqs
from nova_accel.db import deployable
from nova_accel.db import device
from nova_accel.db import device_profile
from nova_accel.db import host
from nova_accel.db import host_arqs
from nova_accel.db import programming
from nova_accel.db.rows import arq_rows
from nova_accel.db.rows import judged_arqs
from nova_accel.db.rows import profile_rows
from nova_accel.db.sql import engine
from nova_accel.db.sql import schema
from nova_accel.model.fpga import programming_record
from nova_accel.testing import database
from nova_accel.testing import reports

load_tests = testscenarios.load_tests_apply_scenarios


def _is_of(value: Any, type_: Any) -> bool:
    """Whether a value of a row is of the type that its column is said to be.

    Of what is in a list or a dict the type is not looked at.
    """
    if type_ is Any:
        return True
    if isinstance(type_, types.UnionType):
        return any(_is_of(value, each) for each in typing.get_args(type_))
    return isinstance(value, typing.get_origin(type_) or type_)


class TestRow(base.DatabaseTestCase):
    """Rows have the columns of their TypedDict, and values of these types."""

    scenarios = database.SCENARIOS

    def setUp(self) -> None:
        super().setUp()
        self.host = reports.SimulatedHost(regions=(2,), functions=1)
        self.host.report()
        self.make_profile()

    def check(self, kind: Any, *rows: Any) -> None:
        types_of = typing.get_type_hints(kind)
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(types_of.keys(), row.keys())
            self.assertEqual(
                [],
                [
                    name
                    for name, type_ in types_of.items()
                    if not _is_of(row[name], type_)
                ],
            )

    def test_arqs(self) -> None:
        created = client_arqs.create('fpga', base.PROJECT)
        self.check(arq_rows.ArqRow, *created)
        request = self.request()
        self.check(
            arq_rows.ArqRow,
            *host_arqs.acquire(request),
            *client_arqs.get_all(),
        )
        [of_host] = host_arqs.get_of_host(self.host.hostname)
        [of_hosts] = host_arqs.get_of_hosts([self.host.hostname])
        self.check(host_arqs.NumberedBinding, of_host)
        self.check(host_arqs.HostBinding, of_hosts)
        self.check(arq_rows.BoundArqRow, *of_host['arqs'], *of_hosts['arqs'])
        table = schema.ARQS
        with engine.writer() as connection:
            self.check(
                arq_rows.HeldRow,
                *arq_rows.lock(connection, table.c.uuid.is_not(None)),
            )
            self.check(
                arq_rows.LockedRow,
                *arq_rows.lock_existing(connection, [created[0]['uuid']]),
            )
        client_arqs.bind(
            {
                created[0]['uuid']: self.place(
                    self.host.rp_uuid(0, 1), request.instance_uuid
                )
            }
        )
        with engine.writer() as connection:
            self.check(
                arq_rows.UnadoptedRow,
                *arq_rows.lock_unadopted(connection, request.instance_uuid),
            )

    def test_turned(self) -> None:
        host_arqs.acquire(self.request())
        broken = dataclasses.replace(self.host, faults=((0, 'hot'),))
        self.check(judged_arqs.JudgedRow, *broken.tell().turned)

    def test_inventory(self) -> None:
        # No one knows who had them before, so they are unclean.
        reports.SimulatedHost('compute-2', cleaned=True).report()
        self.check(host.HostRow, *host.get_all(60))
        self.check(device.DeviceRow, *device.get_all())
        self.check(
            device.UncleanHandle,
            *(handle for row in device.get_all() for handle in row['unclean']),
        )
        self.check(deployable.DeployableRow, *deployable.get_all())
        self.check(
            deployable.RegionHostRow, *deployable.get_hosts_of_regions()
        )

    def test_attributes(self) -> None:
        [found, *_more] = deployable.get_all()
        noted = attribute.create(found['uuid'], 'rack', '12')
        self.check(attribute.AttributeRow, noted, *attribute.get_all())

    def test_device_profiles(self) -> None:
        self.check(
            device_profile.DeviceProfileRow,
            device_profile.get('fpga'),
            *device_profile.get_all(),
        )
        with engine.reader() as connection:
            self.check(
                profile_rows.RequestedProfile,
                profile_rows.read_requested(
                    connection,
                    'fpga',
                    profile_rows.RequestedProfile,
                    profile_rows.REQUESTED,
                ),
            )

    def test_programmings(self) -> None:
        programming.note(
            self.host.hostname,
            programming_record.Record(
                uuidutils.generate_uuid(),
                self.host.device_uuid(),
                'region0',
                uuidutils.generate_uuid(),
                programming_record.Asker(),
                datetime.datetime.now(datetime.UTC),
            ),
        )
        self.check(programming.ProgrammingRow, *programming.get_all())
