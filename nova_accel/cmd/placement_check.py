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

"""Whether Placement is configured so that Nova sees all hosts."""

from collections.abc import Iterator

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck

from nova_accel import conf
from nova_accel.cmd import check_result

CONF = conf.CONF

#: Placement's manual recommends it for large clouds.
_RECOMMENDED_CANDIDATES = 100_000

_BREADTH_FIRST = 'breadth-first'

#: The options of Placement that are read, with its own defaults.
_PLACEMENT_OPTIONS = [
    cfg.StrOpt(
        'allocation_candidates_generation_strategy', default='depth-first'
    ),
    cfg.IntOpt('max_allocation_candidates', default=-1),
]

#: The option of the command that names the file.
OPTION = cfg.StrOpt(
    'placement-config',
    metavar='PATH',
    help=(
        "Placement's configuration file, of which two options are checked. By "
        'default the one in its usual place, if this machine has it.'
    ),
)


def check() -> upgradecheck.Result:
    path = _path()
    if path is None:
        return check_result.warning(
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
        return check_result.failure(f'{path} cannot be read: {error}')
    if wanted:
        return check_result.warning(
            f'In [placement] of {path}: {"; ".join(wanted)}. Otherwise '
            'the candidates of a few hosts with many devices may leave '
            'no room for those of other hosts.'
        )
    return check_result.success(f'According to {path}.')


def _path() -> str | None:
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
