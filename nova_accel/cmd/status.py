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

from collections.abc import Iterator
from collections.abc import Sequence
import sys

from nova import config as nova_config
from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.db import host
from nova_accel.db import migration
from nova_accel.model import host_contract

CONF = conf.CONF

_FILTER = 'nova_accel.scheduler.candidate_filter.AcceleratorFilter'
_WEIGHER = 'nova_accel.scheduler.weigher.AcceleratorWeigher'

#: The exit status for an error, as of oslo.upgradecheck.
_ERROR = 255

#: Placement's manual recommends it for large clouds.
_RECOMMENDED_CANDIDATES = 100_000

#: How many hosts a line names.
_MOST_NAMES = 10

_BREADTH_FIRST = 'breadth-first'

#: The options of Placement that are read, with its own defaults.
_PLACEMENT_OPTIONS = [
    cfg.StrOpt(
        'allocation_candidates_generation_strategy', default='depth-first'
    ),
    cfg.IntOpt('max_allocation_candidates', default=-1),
]

_PLACEMENT_CONFIG = cfg.StrOpt(
    'placement-config',
    metavar='PATH',
    help=(
        "Placement's configuration file, of which two options are checked. By "
        'default the one in its usual place, if this machine has it.'
    ),
)


class Checks(upgradecheck.UpgradeCommands):
    """The checks of ``nova-accel-status upgrade check``."""

    def check_database(self) -> upgradecheck.Result:
        try:
            found, newest = migration.version(), migration.newest()
        except exceptions.AcceleratorError as error:
            return _failure(str(error))
        if found is not None and not migration.is_known(found):
            return _warning(
                f'The database of accelerators is at version {found}, which '
                f'is newer than this release, and so newer than {newest}. '
                'Upgrade what is of this release.'
            )
        if found != newest:
            return _failure(
                f'The database of accelerators is at version {found or "none"}'
                f', and this release needs {newest}. Run "nova-accel-manage '
                'db sync".'
            )
        return _SUCCESS

    def check_scheduler(self) -> upgradecheck.Result:
        options = CONF.filter_scheduler
        name = _FILTER.rpartition('.')[2]
        if (
            name not in options.enabled_filters
            or _FILTER not in options.available_filters
        ):
            return _failure(
                'nova-scheduler does not load the host filter: add '
                f'{_FILTER} to [filter_scheduler] available_filters, and '
                f'{name} to enabled_filters. Device profiles are ignored '
                'without it. If this is not the configuration of '
                'nova-scheduler, check there.'
            )
        if _WEIGHER not in options.weight_classes:
            return _warning(
                'nova-scheduler does not weigh hosts by their accelerators: '
                f'add {_WEIGHER} to [filter_scheduler] weight_classes. If '
                'this is not the configuration of nova-scheduler, check there.'
            )
        return _SUCCESS

    def check_hosts(self) -> upgradecheck.Result:
        """Whether Nova can see all hosts with accelerators at once."""
        try:
            hosts = host.count()
        except exceptions.AcceleratorError as error:
            return _warning(f'The number of hosts is not known: {error}')
        most = CONF.scheduler.max_placement_results
        if hosts > most:
            return _warning(
                f'{hosts} hosts have accelerators, and Nova asks Placement '
                f'for {most} allocation candidates at most. Raise [scheduler] '
                'max_placement_results of nova-scheduler, or the best hosts '
                'may not be among those it sees.'
            )
        return _SUCCESS

    def check_contracts(self) -> upgradecheck.Result:
        """Whether all hosts report by the contract of this release."""
        newest = host_contract.NEWEST
        try:
            older = host.get_contracts(newest)
        except exceptions.AcceleratorError as error:
            return _warning(f'The contracts of hosts are not known: {error}')
        if not older:
            return _SUCCESS
        named = ', '.join(
            f'{hostname} ({contract})'
            for hostname, contract in older[:_MOST_NAMES]
        )
        more = len(older) - _MOST_NAMES
        return _warning(
            f'Hosts report by contracts before {newest}, that of this '
            f'release: {named}{f", and {more} more" if more > 0 else ""}. '
            'Servers boot on them, but what is new needs their nova-compute '
            'to be upgraded.'
        )

    def check_placement(self) -> upgradecheck.Result:
        path = _placement_config()
        if path is None:
            return _warning(
                "This machine has no configuration of Placement's to check. "
                'Name it with --placement-config, or make sure of this in '
                f'[placement] there: {"; ".join(_wanted(None))}.'
            )
        placement = cfg.ConfigOpts()
        placement.register_opts(_PLACEMENT_OPTIONS, group='placement')
        try:
            placement([], default_config_files=[path], default_config_dirs=[])
            wanted = list(_wanted(placement.placement))
        except (cfg.Error, ValueError, OSError) as error:
            return _failure(f'{path} cannot be read: {error}')
        if wanted:
            return _warning(
                f'In [placement] of {path}: {"; ".join(wanted)}. Otherwise '
                'the candidates of a few hosts with many devices may leave '
                'no room for those of other hosts.'
            )
        return upgradecheck.Result(
            upgradecheck.Code.SUCCESS, f'According to {path}.'
        )

    _upgrade_checks = (
        ('Database of accelerators', check_database),
        ('Filter and weigher of nova-scheduler', check_scheduler),
        ('Hosts that Nova can see', check_hosts),
        ('Allocation candidates of Placement', check_placement),
        ('Contracts of hosts', check_contracts),
    )


_SUCCESS = upgradecheck.Result(upgradecheck.Code.SUCCESS)


def _failure(details: str) -> upgradecheck.Result:
    return upgradecheck.Result(upgradecheck.Code.FAILURE, details)


def _warning(details: str) -> upgradecheck.Result:
    return upgradecheck.Result(upgradecheck.Code.WARNING, details)


def _placement_config() -> str | None:
    if CONF.placement_config is not None:
        return str(CONF.placement_config)
    found: list[str] = cfg.find_config_files(project='placement')
    return found[0] if found else None


def _wanted(options: cfg.ConfigOpts.GroupAttr | None) -> Iterator[str]:
    """The options that are to be set.

    :param options: Placement's, None if they are not known
    """
    if (
        options is None
        or options.allocation_candidates_generation_strategy != _BREADTH_FIRST
    ):
        yield f'allocation_candidates_generation_strategy = {_BREADTH_FIRST}'
    if options is None or options.max_allocation_candidates < 0:
        yield (
            'max_allocation_candidates limits the memory and time of a '
            f'request; {_RECOMMENDED_CANDIDATES} is a good value'
        )
    elif (
        options.max_allocation_candidates
        < CONF.scheduler.max_placement_results
    ):
        yield (
            f'max_allocation_candidates = {options.max_allocation_candidates} '
            'is less than the '
            f'{CONF.scheduler.max_placement_results} that Nova asks for'
        )


def main(argv: Sequence[str] | None = None) -> int:
    """:returns: 0 if all is well, 1 for a warning, 2 for a failure, or 255"""
    CONF.register_cli_opt(_PLACEMENT_CONFIG)
    nova_config.set_lib_defaults()
    try:
        return upgradecheck.main(
            CONF,
            'nova',
            Checks(),
            list(sys.argv[1:] if argv is None else argv),
        )
    except cfg.Error as error:
        print(error, file=sys.stderr)
        return _ERROR
