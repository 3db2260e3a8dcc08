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

"""Make a group require the type of region that its bitstream is for.

Otherwise a server may be placed on a region that its bitstream does not fit,
and fail there. The host makes the final check. If the type cannot be found out
here, the group stays as it is.
"""

from collections.abc import Sequence
import dataclasses

from nova import context as nova_context
from nova.image import glance
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.model import naming
from nova_accel.model.fpga import fpga_bitstream
from nova_accel.model.profiles import device_profile
from nova_accel.scheduler import traits

LOG = logging.getLogger(__name__)


def require(
    context: nova_context.RequestContext,
    groups: Sequence[device_profile.Group],
) -> tuple[device_profile.Group, ...]:
    """The groups, requiring the regions that their bitstreams are for.

    Glance is asked, with the request's own token, only about groups that have
    ``accel:bitstream_id`` and require no region themselves.

    :raises NotFound: no accelerator has such a region.
    :raises RequestFilterFailed: Placement gave no usable answer
    """
    return tuple(_with_region(context, group) for group in groups)


def _with_region(
    context: nova_context.RequestContext, group: device_profile.Group
) -> device_profile.Group:
    bitstream_id = group.properties.get('bitstream_id')
    if bitstream_id is None or any(
        map(naming.is_region_trait, group.required)
    ):
        return group
    region_uuid = _region_uuid(context, bitstream_id)
    if region_uuid is None:
        return group
    found = traits.of_region(context, region_uuid)
    if not found:
        raise exceptions.NotFound(
            f'bitstream {bitstream_id} is for a region of type {region_uuid}, '
            'and no accelerator has one'
        )
    if len(found) > 1:
        # A group cannot ask Placement for one of several traits.
        return group
    return dataclasses.replace(group, required=group.required | found)


def _region_uuid(
    context: nova_context.RequestContext, bitstream_id: str
) -> str | None:
    """The region type that the image names; None if it is unknown."""
    try:
        image = glance.API().get(context, bitstream_id)
        return fpga_bitstream.from_image(image).region_uuid
    # The host finds and reports whatever is wrong with the image or Glance. A
    # server whose bitstream is in the host's cache needs neither.
    except Exception as error:
        LOG.warning(
            'The server is placed without regard to the region of '
            'bitstream %s: %r',
            bitstream_id,
            error,
        )
        return None
