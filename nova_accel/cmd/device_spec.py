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

"""``nova-accel-manage device-spec check`` and ``discover``: on a compute host.

They look at this host as its nova-compute does, and need neither a database
nor an API.
"""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import os
import pathlib
from typing import Any

from oslo_config import cfg

from nova_accel import conf
from nova_accel import exceptions
from nova_accel import reason
from nova_accel import root_options
from nova_accel.cmd import configuration_fault
from nova_accel.drivers import catalogue
from nova_accel.drivers import configured_lines
from nova_accel.overview import exit_status
from nova_accel.overview import printing
from nova_accel.virt.publishing import host_offers
from nova_accel.virt.publishing import host_preview
from nova_accel.virt.publishing import line_results

CONF = conf.CONF

#: The exit status if a line offers nothing, or the host has nothing to offer.
USELESS = 1

#: How many functions a comment names.
_MAX_NAMED = 4

CHECKED = (
    'Line',
    'Outcome',
    'Address',
    'Device',
    'Product',
    'Driver',
    'Units',
    'Resource class',
    'Traits',
    'Why',
)

DISCOVERED = (
    'Device',
    'Product',
    'Type',
    'Addresses',
    'Offered',
    'Driver',
    'Other drivers',
    'Line',
    'Why',
)

_Table = tuple[tuple[str, ...], Iterator[tuple[Any, ...]]]


class _OfHost(exit_status.Answering, printing.Lister):
    """A command that lists what it finds on this host."""

    def warn_of_the_unseen(self) -> None:
        if os.geteuid():
            self.warn(host_preview.UNSEEN)

    def is_for_people(self, parsed_args: argparse.Namespace) -> bool:
        """Whether sentences may follow, which no program reads."""
        return bool(parsed_args.formatter == 'table')


class Check(_OfHost):
    """Say what each line of [nova_accel] device_spec offers on this host.

    Run it before nova-compute is restarted: it looks at the host as
    nova-compute does, and changes nothing. The exit status is 0 if each line
    offers something, 1 if one does not, and 2 if nova-compute would not start,
    or if libvirt does not answer.
    """

    _results: Sequence[line_results.LineResult]

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'file',
            nargs='?',
            type=pathlib.Path,
            metavar='<file>',
            help=(
                'a file in the form of nova.conf; its lines of [nova_accel] '
                'device_spec are checked instead of those of the configuration'
            ),
        )
        return parser

    def answer(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.file is not None:
            CONF.set_override(
                'device_spec',
                _lines_of(parsed_args.file),
                group=root_options.GROUP,
            )
        # As nova-compute does before it looks at the host.
        specs = configured_lines.read()
        catalogue.entries()
        if not specs:
            self.warn(
                f'{parsed_args.file or "The configuration"} has no line of '
                '[nova_accel] device_spec: "nova-accel-manage discover" '
                'writes lines for this host'
            )
            return USELESS
        self._results = line_results.of(host_preview.of_this_host(), specs)
        if self.is_for_people(parsed_args):
            self._print_for_people(parsed_args)
        else:
            printing.Lister.run(self, parsed_args)
        self.warn_of_the_unseen()
        useless = line_results.useless(self._results, specs)
        for number in useless:
            self.warn(
                f'Line {number} offers nothing: {specs[number - 1].text}'
            )
        return USELESS if useless else 0

    def _print_for_people(self, parsed_args: argparse.Namespace) -> None:
        """Print a table of what is published, and a sentence for the rest."""
        if any(each.part is not None for each in self._results):
            printing.Lister.run(self, parsed_args)
        for each in self._results:
            if each.outcome is not line_results.Outcome.OFFERED:
                where = '' if each.line is None else f'Line {each.line}: '
                self.print_line(f'{where}{each.text}')

    def take_action(self, parsed_args: argparse.Namespace) -> _Table:
        return CHECKED, (
            _checked_row(each)
            for each in self._results
            if each.part is not None or not self.is_for_people(parsed_args)
        )


class Discover(_OfHost):
    """Write lines of [nova_accel] device_spec for the devices of this host.

    The lines are in the form of nova.conf, with comments that say what each
    of them offers, and what cannot be offered now. It changes nothing. -f json
    and the like list the same. The exit status is 0 if a line offers
    something, 1 if none does, and 2 if libvirt does not answer.
    """

    _offers: Sequence[host_offers.Offer]

    def answer(self, parsed_args: argparse.Namespace) -> int:
        self._offers = host_offers.of(host_preview.of_this_host())
        if self.is_for_people(parsed_args):
            for line in _fragment(self._offers):
                self.print_line(line)
        else:
            printing.Lister.run(self, parsed_args)
        self.warn_of_the_unseen()
        return 0 if any(each.offered for each in self._offers) else USELESS

    def take_action(self, parsed_args: argparse.Namespace) -> _Table:
        return DISCOVERED, (_discovered_row(each) for each in self._offers)


def _lines_of(path: pathlib.Path) -> list[str]:
    """The lines of a file, read as nova-compute reads its own.

    :raises ConfigurationError: it cannot be read; names the file.
    """
    options = cfg.ConfigOpts()
    options.register_opts(root_options.DEVICE_OPTS, group=root_options.GROUP)
    try:
        options(
            ['--config-file', str(path)],
            default_config_files=[],
            default_config_dirs=[],
        )
    except cfg.ConfigFileParseError as error:
        raise exceptions.ConfigurationError(
            f'{configuration_fault.told(error)}. It must have the form of '
            'nova.conf: [nova_accel], and below it device_spec = {...}'
        ) from None
    except cfg.ConfigFilesNotFoundError as error:
        raise exceptions.ConfigurationError(
            f'{path} cannot be read: there is no such file'
        ) from error
    return list(options[root_options.GROUP].device_spec)


def _checked_row(result: line_results.LineResult) -> tuple[Any, ...]:
    device, part = result.device, result.part
    return (
        result.line,
        result.outcome,
        ', '.join(result.addresses),
        device and f'{device.vendor_id}:{device.product_id}',
        device and f'{device.vendor} {device.product}',
        device and device.driver,
        result.units,
        part and part.resource_class,
        part and ', '.join(sorted(part.traits)),
        result.why,
    )


def _discovered_row(offer: host_offers.Offer) -> tuple[Any, ...]:
    return (
        offer.kind.ids,
        offer.kind.product,
        offer.kind.type,
        ', '.join(str(each.address) for each in offer.kind.functions),
        _offered(offer),
        offer.line.driver,
        ', '.join(offer.also),
        _line(offer),
        '; '.join([*(each.text for each in offer.others), *offer.hints]),
    )


def _fragment(offers: Sequence[host_offers.Offer]) -> Iterator[str]:
    """The lines in the form of nova.conf; one that offers nothing is none."""
    yield f'[{root_options.GROUP}]'
    if not offers:
        yield '# This host has no device that nova_accel knows.'
    for offer in offers:
        kind = offer.kind
        addresses = [str(each.address) for each in kind.functions]
        yield ''
        yield (
            f'# {kind.product} ({kind.ids}): '
            f'{reason.some(addresses, _MAX_NAMED)}'
        )
        yield f'# Offered: {_offered(offer) or "nothing"}'
        if offer.also:
            yield f'# Other drivers for it: {", ".join(offer.also)}'
        for told in (*(each.text for each in offer.others), *offer.hints):
            yield f'# {told}'
        yield _line(offer) if offer.offered else f'# {_line(offer)}'


def _line(offer: host_offers.Offer) -> str:
    return f'device_spec = {offer.line.text}'


def _offered(offer: host_offers.Offer) -> str:
    """Such as ``2 x PGPU``."""
    amounts: dict[str, int] = {}
    for result in offer.offered:
        if result.part is not None:
            name = result.part.resource_class
            amounts[name] = amounts.get(name, 0) + len(result.part.handles)
    return ', '.join(f'{amounts[name]} x {name}' for name in amounts)
