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

"""Whether one device is given away by two services."""

from oslo_upgradecheck import upgradecheck

from nova_accel.cmd import check_result
from nova_accel.cmd import database_fleet
from nova_accel.model.fleet import disagreement


def check_double() -> upgradecheck.Result:
    """Whether Nova's own PCI tracker has given away a device of ours."""
    try:
        found = database_fleet.read().compared
    except Exception as error:
        # The fault may be of Nova's, of its database's driver or ours.
        return check_result.warning(
            "What Nova's own PCI tracker has given away is not known: "
            f'{error}. Check where [api_database] is configured.'
        )
    double = [
        f'on {each.hostname} {each.words} {each.whose}, but {each.but}'
        for each in found
        if each.kind == disagreement.Subject.DOUBLE
    ]
    if not double:
        return check_result.success()
    return check_result.failure(
        f'Two servers may have one device: {check_result.named(double)}. '
        'Disable the device, look at both servers, and take it out of either '
        '[pci] device_spec or [nova_accel] device_spec of its host.'
    )
