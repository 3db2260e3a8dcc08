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

"""``openstack accelerator server replace``."""

import argparse

from nova_accel.osc import accelerator_calls
from nova_accel.osc import nova_servers
from nova_accel.overview import printing


class Replace(printing.Command):
    """Give a server other devices for those that have failed, and wait."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'server', metavar='<server>', help='the name or uuid of the server'
        )
        parser.add_argument(
            '--accelerator',
            metavar='<uuid>',
            help=(
                'the uuid of the accelerator request whose device has failed, '
                'by default all of the server'
            ),
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        uuid = nova_servers.uuid_of(self.app, parsed_args.server)
        accelerator_calls.call(
            accelerator_calls.client_of(self.app),
            'POST',
            f'/servers/{uuid}/accelerators/replace',
            json={}
            if parsed_args.accelerator is None
            else {'arq': parsed_args.accelerator},
        )
        self.print_line(f'Server {parsed_args.server} has other devices now')
