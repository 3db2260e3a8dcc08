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

"""The types of arguments, for argparse: a slip is told before any call."""

import argparse
from collections.abc import Callable
import datetime

from nova_accel import exceptions
from nova_accel.model import iso_time


def number(most: int, least: int = 1) -> Callable[[str], int]:
    """A number from ``least`` to ``most``."""

    def parse(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(
                f'{text} is not from {least} to {most}'
            )
        return value

    return parse


def time(
    name: str, zone: datetime.tzinfo | None = None
) -> Callable[[str], str]:
    """A time with its time zone.

    :param name: of the argument, for the fault
    :param zone: of a time that does not say, None to refuse it
    """

    def parse(text: str) -> str:
        try:
            return iso_time.parse(name, text, zone).isoformat()
        except exceptions.InvalidRequest as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parse
