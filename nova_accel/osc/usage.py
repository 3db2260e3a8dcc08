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

"""``openstack accelerator usage show``: who has held which units how long."""

import argparse
from collections.abc import Callable
import datetime
from typing import Any

from nova_accel.osc import accelerator_calls
from nova_accel.osc import arguments
from nova_accel.overview import printing

#: Column -> its value in an entry of the answer.
_COLUMNS: dict[str, Callable[[dict[str, Any]], Any]] = {
    'Project': lambda held: held['project_id'],
    'Product': lambda held: held['product'],
    'Resource class': lambda held: held['resource_class'],
    'Shape': lambda held: held['shape'],
    'Units': lambda held: held['units'],
    'Unit hours': lambda held: round(held['unit_seconds'] / 3600, 2),
}


class Show(printing.Lister):
    """Show how many hours projects have held units of accelerators.

    An administrator sees all projects, others see their own. A server that
    moves holds units on both hosts meanwhile.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for name, default in (
            ('start', '28 days before the end'),
            ('end', 'now'),
        ):
            parser.add_argument(
                f'--{name}',
                metavar='<time>',
                type=arguments.time(name, datetime.UTC),
                help=(
                    'a date or time, as 2026-11-01 or '
                    f'2026-11-01T06:00:00+00:00, in UTC if it does not say '
                    f'(default: {default})'
                ),
            )
        parser.add_argument(
            '--project',
            metavar='<project-id>',
            dest='project_id',
            help='the id of the only project to show',
        )
        return parser

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        query = {
            name: value
            for name in ('start', 'end', 'project_id')
            if (value := getattr(parsed_args, name)) is not None
        }
        found = accelerator_calls.call(
            accelerator_calls.client_of(self.app),
            'GET',
            '/usage',
            params=query,
        )['usage']
        who = (
            'No one'
            if parsed_args.project_id is None
            else f'No project with the id {parsed_args.project_id}'
        )
        self.nothing = (
            f'{who} held a unit from {found["start"]} to {found["end"]}.'
        )
        return tuple(_COLUMNS), [
            tuple(value(held) for value in _COLUMNS.values())
            for held in found['held']
        ]
