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

"""The copy of its flavor that Nova keeps with a server, as its host has it.

The other copy is in the request spec, which the accelerator API changes.
"""

from nova import context as nova_context
from nova import exception
from nova import objects
import oslo_messaging

from nova_accel import exceptions
from nova_accel.model.profiles import flavor_key


def name_profile(instance_uuid: str, name: str | None) -> None:
    """Have a server's flavor ask for a device profile, by our own key.

    :param name: None if it is to ask for none
    :raises ServiceUnavailable: Nova has not changed it.
    """
    try:
        instance = _read(instance_uuid)
        extra_specs = flavor_key.naming(instance.flavor.extra_specs, name)
        if extra_specs is not None:
            flavor = instance.flavor.obj_clone()
            flavor.extra_specs = extra_specs
            instance.flavor = flavor
            instance.save()
    except exception.InstanceNotFound:
        return
    except (
        exception.NovaException,
        oslo_messaging.MessagingException,
    ) as error:
        raise exceptions.ServiceUnavailable(
            f'Nova does not note that instance {instance_uuid} has device '
            f'profile {name}: {error}'
        ) from error


def read_again(instance: objects.Instance) -> None:
    """Give an object of a server the flavor that Nova has stored.

    :raises ServiceUnavailable: Nova does not answer.
    """
    try:
        instance.flavor = _read(instance.uuid).flavor
    except (
        exception.NovaException,
        oslo_messaging.MessagingException,
    ) as error:
        raise exceptions.ServiceUnavailable(
            f'Nova does not tell the flavor of instance {instance.uuid}: '
            f'{error}'
        ) from error
    instance.obj_reset_changes(['flavor'])


def _read(instance_uuid: str) -> objects.Instance:
    return objects.Instance.get_by_uuid(
        nova_context.get_admin_context(),
        instance_uuid,
        expected_attrs=['flavor'],
    )
