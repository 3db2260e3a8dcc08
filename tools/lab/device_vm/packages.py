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

"""The checkout's Python packages, for the Python of the machine.

All of them are an image of a disk, made when one has another version: under
emulation a shared directory takes minutes to read them. nova_accel, which
changes often, is handed over as an archive as well, at each start of
nova-compute, and replaces what the image has of it.
"""

import hashlib
import io
import pathlib
import tarfile

from lab import processes
from lab import settings

#: Debian 12's, and so the one that the checkout's environment must be for.
SITE = 'lib/python3.11/site-packages'

#: Where the machine has them.
DIRECTORY = pathlib.PurePosixPath('/opt/nova')

_PROGRAMS = ('nova-compute', 'privsep-helper')


def make_image(image: pathlib.Path) -> None:
    """An image of the packages, if the one there is not of the same ones."""
    site = settings.VENV / SITE
    if not site.is_dir():
        raise processes.LabError(
            f'{settings.VENV} is not of Python 3.11, which the machine has'
        )
    names = sorted(
        path.name
        for path in site.glob('*.dist-info')
        if not path.name.startswith('nova_accel-')
    )
    digest = hashlib.sha256('\n'.join(names).encode()).hexdigest()
    stamp = image.with_suffix('.sha256')
    if image.exists() and stamp.exists() and stamp.read_text() == digest:
        return
    stamp.unlink(missing_ok=True)
    # Not in place: a machine may run from the old one.
    made = image.with_suffix('.new')
    made.unlink(missing_ok=True)
    processes.run(
        [
            'mke2fs',
            '-q',
            '-t',
            'ext4',
            '-O',
            '^has_journal',
            '-E',
            'lazy_itable_init=1',
            '-m',
            '0',
            '-d',
            site,
            made,
            '2G',
        ]
    )
    made.replace(image)
    stamp.write_text(digest)


def make_archive(archive: pathlib.Path) -> None:
    """What is installed of nova_accel, and the programs of Nova."""
    site = settings.VENV / SITE
    (record,) = site.glob('nova_accel-*.dist-info/RECORD')
    made = archive.with_suffix('.new')
    with tarfile.open(made, 'w') as tar:
        for line in record.read_text().splitlines():
            name = line.split(',')[0]
            if not name.startswith('..') and (site / name).exists():
                tar.add(site / name, f'{SITE}/{name}')
        for program in _PROGRAMS:
            _add_program(tar, program)
    made.replace(archive)


def _add_program(tar: tarfile.TarFile, program: str) -> None:
    _interpreter, code = (settings.BIN / program).read_text().split('\n', 1)
    content = f'#!{DIRECTORY}/bin/python\n{code}'.encode()
    member = tarfile.TarInfo(f'bin/{program}')
    member.size = len(content)
    member.mode = 0o755
    tar.addfile(member, io.BytesIO(content))
