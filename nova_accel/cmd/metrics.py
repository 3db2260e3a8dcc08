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

"""``nova-accel-manage metrics``: the metrics without the API."""

import argparse
import pathlib

from nova_accel.metrics import exposition
from nova_accel.overview import printing
from nova_accel.state import durable_file

#: node_exporter runs as a user of its own and reads the file.
_MODE = 0o644


class Metrics(printing.Command):
    """Print the metrics of the whole cloud for Prometheus.

    They come from the database of accelerators alone.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--textfile',
            type=_path,
            metavar='<path>',
            help=(
                'write them into this file, for the textfile collector of '
                'node_exporter; one that exists is replaced as a whole. The '
                'name must end with .prom'
            ),
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        path = parsed_args.textfile
        text = exposition.read().decode()
        if path is None:
            for line in text.removesuffix('\n').split('\n'):
                self.print_line(line)
        else:
            durable_file.write(path, text, _MODE)


def _path(text: str) -> pathlib.Path:
    """:raises ArgumentTypeError: node_exporter would not read the file."""
    path = pathlib.Path(text)
    if path.suffix != '.prom':
        raise argparse.ArgumentTypeError(
            f'{text}: node_exporter reads only files whose names end with '
            '.prom'
        )
    return path
