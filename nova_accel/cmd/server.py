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

"""``nova-accel-manage server``: existing servers and their flavor's key."""

import argparse

from nova_accel import exceptions
from nova_accel.cmd import cells
from nova_accel.cmd import embedded_flavor
from nova_accel.model.profiles import device_profile
from nova_accel.overview import exit_status
from nova_accel.overview import printing

COLUMNS = ('Server', 'Result')


class _ToKey(exit_status.Answering, printing.Lister):
    """A command that changes the key of servers.

    The exit status is 0 if all servers have the key now, 1 if some could not
    be changed, and 2 if Nova's databases cannot be read.
    """

    key: str

    _are_all_changed = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'server',
            nargs='+',
            metavar='<uuid>',
            help='the uuid of a server',
        )
        return parser

    def answer(self, parsed_args: argparse.Namespace) -> int:
        cells.connect()
        printing.Lister.run(self, parsed_args)
        return 0 if self._are_all_changed else 1

    def take_action(
        self, parsed_args: argparse.Namespace
    ) -> tuple[tuple[str, str], list[tuple[str, str]]]:
        return COLUMNS, [
            (uuid, self._result(uuid)) for uuid in parsed_args.server
        ]

    def _result(self, uuid: str) -> str:
        try:
            is_changed = embedded_flavor.change_key(uuid, self.key)
        except exceptions.AcceleratorError as error:
            self._are_all_changed = False
            return f'not changed: {error}'
        return 'changed' if is_changed else f'has {self.key} already'


class ToNative(_ToKey):
    """Give servers with Cyborg's flavor key the key of nova_accel.

    Nova forbids no operation of such a server then. The server keeps its
    accelerators, and its guest is not touched.
    """

    key = device_profile.FLAVOR_KEY


class ToCompat(_ToKey):
    """Give servers Cyborg's flavor key, so that Nova's own client acts.

    The server keeps its accelerators, and its guest is not touched. Nova
    forbids suspend, resize, cold and live migration of it then.
    """

    key = device_profile.CYBORG_FLAVOR_KEY
