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

"""Whether all hosts are seen, speak as this release does, and are well."""

import collections

from oslo_upgradecheck import upgradecheck

from nova_accel import conf
from nova_accel import exceptions
from nova_accel.cmd import check_result
from nova_accel.db import findings
from nova_accel.db import host
from nova_accel.model import host_contract

CONF = conf.CONF


def check_count() -> upgradecheck.Result:
    """Whether Nova can see all hosts with accelerators at once."""
    try:
        hosts = host.count()
    except exceptions.AcceleratorError as error:
        return check_result.warning(
            f'The number of hosts is not known: {error}'
        )
    most = CONF.scheduler.max_placement_results
    if hosts > most:
        return check_result.warning(
            f'{hosts} hosts have accelerators, and Nova asks Placement '
            f'for {most} allocation candidates at most. Raise [scheduler] '
            'max_placement_results of nova-scheduler, or the best hosts '
            'may not be among those it sees.'
        )
    return check_result.success()


def check_contracts() -> upgradecheck.Result:
    """Whether all hosts report by the contract of this release."""
    newest = host_contract.NEWEST
    try:
        older = host.get_contracts(newest)
    except exceptions.AcceleratorError as error:
        return check_result.warning(
            f'The contracts of hosts are not known: {error}'
        )
    if not older:
        return check_result.success()
    named = check_result.named(
        [f'{hostname} ({contract})' for hostname, contract in older]
    )
    return check_result.warning(
        f'Hosts report by contracts before {newest}, that of this '
        f'release: {named}. Servers boot on them, but what is new needs their '
        'nova-compute to be upgraded.'
    )


def check_findings() -> upgradecheck.Result:
    """Whether hosts have found anything wrong that they have not repaired."""
    kinds: collections.defaultdict[str, set[str]] = collections.defaultdict(
        set
    )
    try:
        for found in findings.read():
            if not found.is_repaired:
                kinds[found.hostname or ''].add(found.kind)
    except Exception as error:
        return check_result.warning(
            f'What hosts have found wrong is not known: {error}'
        )
    if not kinds:
        return check_result.success()
    named = check_result.named(
        [
            f'{hostname} ({", ".join(sorted(kinds[hostname]))})'
            for hostname in sorted(kinds)
        ]
    )
    return check_result.warning(
        f'Hosts have found something wrong that they have not repaired: '
        f'{named}. "nova-accel-manage fleet list --drift" shows it, with '
        'remedies.'
    )
