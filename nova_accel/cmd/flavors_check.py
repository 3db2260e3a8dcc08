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

"""Whether servers get the accelerators that their flavors ask for."""

from collections.abc import Iterator

from nova import context as nova_context
from nova import objects
from oslo_upgradecheck import upgradecheck

from nova_accel.cmd import check_result
from nova_accel.db import device
from nova_accel.db import device_profile as device_profile_db
from nova_accel.model.profiles import flavor_advice


def check_addresses() -> upgradecheck.Result:
    """Whether guests have room for the memory of their GPUs."""
    try:
        flavors = list(_flavors())
        profiles = {
            profile['name']: profile['groups']
            for profile in device_profile_db.get_all()
        }
        gpu_classes = device.get_resource_classes('GPU')
    except Exception as error:
        return _not_known(error)
    lacking = [
        flavor.name
        for flavor in flavors
        if flavor_advice.lacks_addresses(flavor, profiles, gpu_classes)
    ]
    if not lacking:
        return check_result.success()
    key = flavor_advice.ADDRESS_WIDTH_KEY
    return check_result.warning(
        f'Flavors give GPUs and much memory without {key}: '
        f'{check_result.named(lacking)}. By default the CPU of a guest has '
        'addresses of 40 bits, and its firmware may find no room for the '
        f'memory of the GPUs. Set {key}=passthrough, or {key}=emulate with '
        'hw:maxphysaddr_bits; 40 bits if the GPUs are so small that they '
        'fit. Nova refuses these keys from microversion 2.86 on: use 2.85.'
    )


def check_keys() -> upgradecheck.Result:
    """Whether the extra specs for accelerators are right."""
    try:
        flavors = list(_flavors())
    except Exception as error:
        return _not_known(error)
    wrong = [
        f'{flavor.name} ({wrong})'
        for flavor in flavors
        for wrong in flavor_advice.misspelt(flavor.extra_specs)
    ]
    if not wrong:
        return check_result.success()
    return check_result.warning(
        'nova-scheduler refuses flavors whose extra specs for accelerators '
        f'are wrong. Correct them: {check_result.named(wrong)}.'
    )


def _flavors() -> Iterator[flavor_advice.Flavor]:
    """The flavors that servers can be created with."""
    context = nova_context.get_admin_context()
    for flavor in objects.FlavorList.get_all(context, sort_key='name'):
        if not flavor.disabled:
            yield flavor_advice.Flavor(
                flavor.name, flavor.memory_mb, flavor.extra_specs
            )


def _not_known(error: Exception) -> upgradecheck.Result:
    """The fault may be of Nova's, of its database's driver or ours."""
    return check_result.warning(
        f'The flavors and device profiles are not known: {error}. Check where '
        '[api_database] is configured.'
    )
