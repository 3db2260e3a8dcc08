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

"""Whether the installed Nova has a known fault."""

from importlib import metadata

from oslo_upgradecheck import upgradecheck

from nova_accel.cmd import check_result
from nova_accel.model.profiles import nova_faults


def check_release() -> upgradecheck.Result:
    """Whether the Nova that is installed here is of a release to avoid."""
    version = metadata.version('nova')
    fault = nova_faults.fault(version)
    if fault is None:
        return check_result.success(f'Nova {version} is installed here.')
    return check_result.warning(
        f'Nova {version}, which is installed here, {fault}. If a distribution '
        'has mended its package, its version does not tell: ask there.'
    )
