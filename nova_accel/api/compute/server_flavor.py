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

"""A server's flavor, of which Nova keeps two copies with the server.

The host changes the one in the database of its cell. The other one, in the
request spec, has to name the same device profile: the server is scheduled by
it again.
"""

from nova import context as nova_context
from nova import exception as nova_exceptions
from nova import objects
from oslo_log import log as logging

from nova_accel import exceptions
from nova_accel.api.compute import nova_setup
from nova_accel.model.profiles import device_profile
from nova_accel.model.profiles import flavor_key

LOG = logging.getLogger(__name__)


def read(instance_uuid: str) -> 'objects.Instance':
    """A server, with its flavor as its cell has it.

    :raises NotFound: Nova has no such server.
    :raises Conflict: it is in no cell yet.
    """
    nova_setup.ensure()
    objects.register_all()
    context = nova_context.get_admin_context()
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            context, instance_uuid
        )
        if mapping.cell_mapping is None:
            raise exceptions.Conflict.for_all(
                'the server is in no cell yet: wait until it is scheduled'
            )
        with nova_context.target_cell(context, mapping.cell_mapping) as cell:
            return objects.Instance.get_by_uuid(
                cell, instance_uuid, expected_attrs=['flavor']
            )
    except (
        nova_exceptions.InstanceMappingNotFound,
        nova_exceptions.InstanceNotFound,
    ) as error:
        raise not_found(instance_uuid) from error


def complete(instance_uuid: str) -> None:
    """Have the request spec name the device profile that the server has.

    :raises ServiceUnavailable: Nova does not note it.
    """
    try:
        _complete(read(instance_uuid))
    except (exceptions.NotFound, nova_exceptions.RequestSpecNotFound):
        return
    except Exception as error:
        LOG.exception('The request spec of server %s is left', instance_uuid)
        raise exceptions.ServiceUnavailable(
            f'the request spec of server {instance_uuid} may name another '
            f'device profile than the server has: set it again: {error}',
            public='Nova may schedule the server by another device profile '
            'than it has: set it again',
        ) from error


def _complete(instance: 'objects.Instance') -> None:
    spec = objects.RequestSpec.get_by_instance_uuid(
        nova_context.get_admin_context(), instance.uuid
    )
    # A resize is under way. Nova writes both when it has ended.
    if spec.flavor.flavorid != instance.flavor.flavorid:
        return
    extra_specs = flavor_key.naming(
        spec.flavor.extra_specs,
        instance.flavor.extra_specs.get(device_profile.FLAVOR_KEY),
    )
    if extra_specs is None:
        return
    flavor = spec.flavor.obj_clone()
    flavor.extra_specs = extra_specs
    spec.flavor = flavor
    spec.save()


def not_found(instance_uuid: str) -> exceptions.NotFound:
    """The fault that names a server that there is not, or not for a caller."""
    return exceptions.NotFound(f'Nova has no server {instance_uuid}')
