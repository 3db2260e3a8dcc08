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

"""The payloads of notifications, as versioned objects.

On the wire they look like Nova's, with ``nova_accel`` as the namespace. A new
field raises the minor version, any other change the major one.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import datetime
import types
from typing import Any

from oslo_versionedobjects import base
from oslo_versionedobjects import fields

from nova_accel.db import usage
from nova_accel.model import arq_types
from nova_accel.model.fpga import programming_record


class Payload(base.VersionedObject):
    """The base of all payloads; its fields are set once."""

    OBJ_SERIAL_NAMESPACE = 'nova_object'
    OBJ_PROJECT_NAMESPACE = 'nova_accel'


@base.VersionedObjectRegistry.register_if(False)
class AcceleratorRequestPayload(Payload):
    """One ARQ. Before it is bound it has no device, and may have no uuid.

    The end of a binding, and of an unbinding, tells the unit that it holds.
    """

    VERSION = '1.0'

    fields = {
        'uuid': fields.UUIDField(),
        'state': fields.StringField(),
        'device_profile_name': fields.StringField(),
        'device_profile_group_id': fields.IntegerField(),
        'resource_class': fields.StringField(),
        'device_rp_uuid': fields.UUIDField(nullable=True),
        'attach_handle_type': fields.StringField(nullable=True),
        'attach_handle_uuid': fields.UUIDField(nullable=True),
        'product': fields.StringField(nullable=True),
        'shape': fields.StringField(nullable=True),
        'bound_at': fields.DateTimeField(nullable=True),
        'unbound_at': fields.DateTimeField(nullable=True),
        'held_seconds': fields.IntegerField(nullable=True),
        'created_at': fields.DateTimeField(nullable=True),
        'updated_at': fields.DateTimeField(nullable=True),
    }


@base.VersionedObjectRegistry.register_if(False)
class AcceleratorRequestActionPayload(Payload):
    """The ARQs that an instance gets, gives back, or whose devices fail."""

    VERSION = '1.0'

    fields = {
        'instance_uuid': fields.UUIDField(),
        'hostname': fields.StringField(nullable=True),
        'role': fields.StringField(nullable=True),
        'project_id': fields.StringField(nullable=True),
        'device_profile_name': fields.StringField(nullable=True),
        'accelerator_requests': fields.ListOfObjectsField(
            'AcceleratorRequestPayload'
        ),
        'fault': fields.StringField(nullable=True),
    }


@base.VersionedObjectRegistry.register_if(False)
class DeployableProgramPayload(Payload):
    """The programming of an FPGA region."""

    VERSION = '1.0'

    fields = {
        'uuid': fields.UUIDField(),
        'hostname': fields.StringField(),
        'device_uuid': fields.UUIDField(),
        'region': fields.StringField(),
        'bitstream_id': fields.UUIDField(),
        'project_id': fields.StringField(nullable=True),
        'user_id': fields.StringField(nullable=True),
        'instance_uuid': fields.UUIDField(nullable=True),
        'started_at': fields.DateTimeField(),
        'finished_at': fields.DateTimeField(nullable=True),
        'fault': fields.StringField(nullable=True),
    }


def of_arqs(
    arqs: Sequence[Mapping[str, Any]],
    fault: str | None = None,
    periods: Mapping[str, usage.PeriodRow] = types.MappingProxyType({}),
    **place: str | None,
) -> AcceleratorRequestActionPayload:
    """
    :param arqs: as :mod:`nova_accel.db.client_arqs` gives them
    :param periods: ARQ uuid -> its last period, if that is to be told
    :param place: the other fields
    """
    return AcceleratorRequestActionPayload(
        accelerator_requests=[
            _of_arq(arq, periods.get(arq['uuid'])) for arq in arqs
        ],
        fault=fault,
        **place,
    )


def _of_arq(
    row: Mapping[str, Any], period: usage.PeriodRow | None
) -> AcceleratorRequestPayload:
    return AcceleratorRequestPayload(
        **{
            name: row[name]
            for name in (
                'uuid',
                'device_profile_name',
                'device_profile_group_id',
                'device_rp_uuid',
                'attach_handle_type',
                'attach_handle_uuid',
            )
        },
        state=str(row['state']),
        resource_class=arq_types.resource_class(row['group']),
        created_at=_in_utc(row['created_at']),
        updated_at=_in_utc(row['updated_at']),
        **_of_period(period),
    )


def _of_period(period: usage.PeriodRow | None) -> dict[str, Any]:
    if period is None:
        return dict.fromkeys(
            ('product', 'shape', 'bound_at', 'unbound_at', 'held_seconds')
        )
    began_at, ended_at = period['began_at'], period['ended_at']
    return {
        'product': period['product'],
        'shape': period['shape'],
        'bound_at': began_at,
        'unbound_at': ended_at,
        'held_seconds': None
        if ended_at is None
        else max(0, int((ended_at - began_at).total_seconds())),
    }


def of_programming(
    hostname: str, record: programming_record.Record
) -> DeployableProgramPayload:
    return DeployableProgramPayload(
        uuid=record.uuid,
        hostname=hostname,
        device_uuid=record.device_uuid,
        region=record.region,
        bitstream_id=record.bitstream_id,
        project_id=record.asker.project_id,
        user_id=record.asker.user_id,
        instance_uuid=record.asker.instance_uuid,
        started_at=record.started_at,
        finished_at=record.finished_at,
        fault=record.failure,
    )


def to_wire(payload: Payload) -> dict[str, Any]:
    """Plain JSON, in Nova's envelope."""
    # All fields are new, so a list of changed ones would say nothing.
    payload.obj_reset_changes(recursive=True)
    primitive: dict[str, Any] = payload.obj_to_primitive()
    return primitive


def _in_utc(time: datetime.datetime | None) -> datetime.datetime | None:
    return None if time is None else time.replace(tzinfo=datetime.UTC)
