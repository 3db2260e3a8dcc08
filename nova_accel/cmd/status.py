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

"""``nova-accel-status upgrade check``: whether a cloud is ready.

It is to nova_accel what ``nova-status`` is to Nova, and reads the same
configuration as Nova's services.
"""

from collections.abc import Sequence
import sys

from nova import config as nova_config
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_accel import conf
from nova_accel import exceptions
from nova_accel import reason
from nova_accel.cmd import cells
from nova_accel.cmd import check_result
from nova_accel.cmd import flavors_check
from nova_accel.cmd import fleet_check
from nova_accel.cmd import hosts_check
from nova_accel.cmd import nova_check
from nova_accel.cmd import placement_check
from nova_accel.db.migrations import migration

CONF = conf.CONF

_FILTER = 'nova_accel.scheduler.candidate_filter.AcceleratorFilter'
_WEIGHER = 'nova_accel.scheduler.weigher.AcceleratorWeigher'

#: The exit status for an error, as of oslo.upgradecheck.
_ERROR = 255


class Checks(upgradecheck.UpgradeCommands):
    """The checks of ``nova-accel-status upgrade check``."""

    def check(self) -> upgradecheck.Code:
        # Nova's databases can be set up only once.
        cells.connect()
        return super().check()

    def check_database(self) -> upgradecheck.Result:
        try:
            found, newest = migration.version(), migration.newest()
        except exceptions.AcceleratorError as error:
            return check_result.failure(str(error))
        if found is not None and not migration.is_known(found):
            return check_result.warning(
                f'The database of accelerators is at version {found}, which '
                f'is newer than this release, and so newer than {newest}. '
                'Upgrade what is of this release.'
            )
        if found != newest:
            return check_result.failure(
                f'The database of accelerators is at version {found or "none"}'
                f', and this release needs {newest}. Run "nova-accel-manage '
                'db sync".'
            )
        return check_result.success()

    def check_scheduler(self) -> upgradecheck.Result:
        options = CONF.filter_scheduler
        name = _FILTER.rpartition('.')[2]
        if (
            name not in options.enabled_filters
            or _FILTER not in options.available_filters
        ):
            return check_result.failure(
                'nova-scheduler does not load the host filter: add '
                f'{_FILTER} to [filter_scheduler] available_filters, and '
                f'{name} to enabled_filters. Device profiles are ignored '
                'without it. If this is not the configuration of '
                'nova-scheduler, check there.'
            )
        if _WEIGHER not in options.weight_classes:
            return check_result.warning(
                'nova-scheduler does not weigh hosts by their accelerators: '
                f'add {_WEIGHER} to [filter_scheduler] weight_classes. If '
                'this is not the configuration of nova-scheduler, check there.'
            )
        return check_result.success()

    def check_hosts(self) -> upgradecheck.Result:
        return hosts_check.check_count()

    def check_contracts(self) -> upgradecheck.Result:
        return hosts_check.check_contracts()

    def check_placement(self) -> upgradecheck.Result:
        return placement_check.check()

    def check_double(self) -> upgradecheck.Result:
        return fleet_check.check_double()

    def check_addresses(self) -> upgradecheck.Result:
        return flavors_check.check_addresses()

    def check_keys(self) -> upgradecheck.Result:
        return flavors_check.check_keys()

    def check_findings(self) -> upgradecheck.Result:
        return hosts_check.check_findings()

    def check_nova(self) -> upgradecheck.Result:
        return nova_check.check_release()

    _upgrade_checks = (
        ('Database of accelerators', check_database),
        ('Filter and weigher of nova-scheduler', check_scheduler),
        ('Hosts that Nova can see', check_hosts),
        ('Allocation candidates of Placement', check_placement),
        ('Contracts of hosts', check_contracts),
        ('Devices that Nova gives away, too', check_double),
        ('Address width of flavors with GPUs', check_addresses),
        ('Extra specs of flavors', check_keys),
        ('Findings of hosts', check_findings),
        ('Release of Nova', check_nova),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """:returns: 0 if all is well, 1 for a warning, 2 for a failure, or 255"""
    CONF.register_cli_opt(placement_check.OPTION)
    nova_config.set_lib_defaults()
    try:
        return upgradecheck.main(
            CONF,
            'nova',
            Checks(),
            list(sys.argv[1:] if argv is None else argv),
        )
    except cfg.Error as error:
        print(reason.printable(str(error)), file=sys.stderr)
        return _ERROR
