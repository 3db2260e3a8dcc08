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

"""The arguments of ``tools/bench``'s commands, and their types."""

import argparse
from typing import TypeAlias

#: The subcommands of a parser, of which argparse has no public type.
Commands: TypeAlias = 'argparse._SubParsersAction[argparse.ArgumentParser]'


def add_numbers(
    command: argparse.ArgumentParser, *options: tuple[str, int, str]
) -> None:
    """Add options that each take a number above zero.

    :param options: the name of each, its default and its help
    """
    for name, default, what in options:
        command.add_argument(
            f'--{name}',
            type=positive,
            default=default,
            metavar='N',
            help=f'{what} (default: {default})',
        )


def positive(text: str) -> int:
    number = int(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f'not above zero: {text}')
    return number


def natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f'below zero: {text}')
    return number
