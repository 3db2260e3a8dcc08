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

"""The Debian mirrors and proxies that this machine's apt is set up with."""

import re

from lab import processes

SUITE = 'bookworm'

_FORMAT = '|'.join(
    ('$(ORIGIN)', '$(COMPONENT)', '$(LABEL)', '$(CODENAME)', '$(REPO_URI)')
)

_CONNECTION = re.compile(
    r'Acquire::https?::(.*::)?(proxy|cainfo) ".+";', re.IGNORECASE
)


def sources() -> list[str]:
    """The lines of a sources.list, on the mirrors of this machine.

    Other vendors' repositories are told by their origin, whatever they call
    their suites. A machine of another release has the same mirrors.
    """
    found = _repositories()
    if not found:
        processes.run(['apt-get', '-q', 'update'])
        found = _repositories()
    main = _mirror(found, 'Debian', SUITE)
    if main is None:
        raise processes.LabError("no Debian mirror in apt's configuration")
    security = (
        _mirror(found, 'Debian-Security', f'{SUITE}-security')
        or main.removesuffix('/debian') + '/debian-security'
    )
    updates = _exact(found, f'{SUITE}-updates') or main
    backports = _exact(found, f'{SUITE}-backports') or main
    return [
        f'deb {main} {SUITE} main',
        f'deb {updates} {SUITE}-updates main',
        f'deb {security} {SUITE}-security main',
        f'deb {backports} {SUITE}-backports main',
    ]


def options() -> list[str]:
    """How this machine's apt reaches the mirrors."""
    return [
        line.removesuffix(';')
        for line in processes.run(['apt-config', 'dump']).splitlines()
        if _CONNECTION.fullmatch(line)
    ]


def _repositories() -> list[tuple[str, str, str]]:
    """Label, code name and URI of Debian's repositories."""
    targets = processes.run(
        [
            'apt-get',
            'indextargets',
            '--format',
            _FORMAT,
            'Identifier: Packages',
        ]
    )
    found = []
    for line in targets.splitlines():
        origin, component, label, codename, uri = line.split('|')
        if origin == 'Debian' and component == 'main':
            found.append((label, codename, uri.removesuffix('/')))
    return found


def _exact(found: list[tuple[str, str, str]], wanted: str) -> str | None:
    return next((uri for _label, name, uri in found if name == wanted), None)


def _mirror(
    found: list[tuple[str, str, str]], label: str, wanted: str
) -> str | None:
    return _exact(found, wanted) or next(
        (uri for found_label, _name, uri in found if found_label == label),
        None,
    )
