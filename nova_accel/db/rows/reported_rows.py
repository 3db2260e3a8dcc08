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

"""The rows of devices, deployables and attach handles from a host's report."""

from collections.abc import Mapping
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from nova_accel import exceptions
from nova_accel.db.sql import schema
from nova_accel.model import decoding
from nova_accel.model.cards import card_slice

#: The rows of one table by their uuid.
Rows = dict[str, dict[str, Any]]

_DEVICE_FACTS = (
    'uuid',
    'name',
    'type',
    'vendor_id',
    'vendor',
    'product_id',
    'product',
    'address',
    'driver',
    'numa_node',
    'fault',
    'attributes',
    'link_sets',
)
_DEPLOYABLE_FACTS = (
    'uuid',
    'name',
    'rp_uuid',
    'resource_class',
    'traits',
    'is_cleaned',
    'region',
    'bitstream_id',
)
_HANDLE_FACTS = ('uuid', 'type', 'info')

#: The columns of each table that a report sets.
COLUMNS: Mapping[sa.Table, Sequence[str]] = {
    schema.DEVICES: ('hostname', *_DEVICE_FACTS),
    schema.DEPLOYABLES: ('device_uuid', *_DEPLOYABLE_FACTS),
    schema.ATTACH_HANDLES: (
        'deployable_uuid',
        'present',
        'identity',
        'card_uuid',
        'slice_mode',
        'slice_start',
        'slice_end',
        *_HANDLE_FACTS,
    ),
}


def rows(
    hostname: str, devices: Sequence[Mapping[str, Any]]
) -> dict[sa.Table, Rows]:
    """The rows of a report, parents first.

    :param devices: in the form of
        :meth:`nova_accel.model.devices.hardware.Device.to_report`
    """
    return {
        schema.DEVICES: _device_rows(hostname, devices),
        schema.DEPLOYABLES: _deployable_rows(devices),
        schema.ATTACH_HANDLES: _handle_rows(devices),
    }


def _device_rows(hostname: str, devices: Sequence[Mapping[str, Any]]) -> Rows:
    return {
        device['uuid']: {
            'hostname': hostname,
            **{name: device[name] for name in _DEVICE_FACTS},
        }
        for device in devices
    }


def _deployable_rows(devices: Sequence[Mapping[str, Any]]) -> Rows:
    return {
        deployable['uuid']: {
            'device_uuid': device['uuid'],
            **{name: deployable[name] for name in _DEPLOYABLE_FACTS},
        }
        for device in devices
        for deployable in device['deployables']
    }


def _handle_rows(devices: Sequence[Mapping[str, Any]]) -> Rows:
    return {
        handle['uuid']: {
            'deployable_uuid': deployable['uuid'],
            'present': True,
            'identity': handle.get('identity'),
            **_slice(device['uuid'], handle['info'].get('slice')),
            **{name: handle[name] for name in _HANDLE_FACTS},
        }
        for device in devices
        for deployable in device['deployables']
        for handle in deployable['attach_handles']
    }


def _slice(
    device_uuid: str, value: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The columns of the slice of a card that a handle takes.

    :param value: as :meth:`.card_slice.CardSlice.to_dict`
    :raises InvalidRequest: no card has such a slice; names the device
    """
    if value is None:
        return dict.fromkeys(
            ('card_uuid', 'slice_mode', 'slice_start', 'slice_end')
        )
    try:
        found = card_slice.from_dict(value)
    except decoding.Malformed as error:
        raise exceptions.InvalidRequest(
            f'a slice of device {device_uuid} is no slice of a card: {error}'
        ) from error
    return {
        'card_uuid': device_uuid,
        'slice_mode': found.mode,
        'slice_start': found.start,
        'slice_end': found.end,
    }
