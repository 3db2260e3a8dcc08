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

"""The guest that all servers of the lab boot: a kernel, and one program.

The kernel is Debian's for clouds, downloaded and not installed: the boot files
of this machine stay as they are. It is stored uncompressed, since unpacking
itself is the longest part of its start in an emulated CPU.
"""

import dataclasses
import lzma
import pathlib
import shutil
import struct
import subprocess
import tempfile

from lab import processes
from lab import settings

_PACKAGE = 'linux-image-cloud-amd64'
_INIT = pathlib.Path(__file__).with_name('guest-init')
_DIRECTORY = settings.STATE / 'guest'

#: What tells the guest that its power button was pressed.
_MODULES = ('drivers/acpi/button.ko', 'drivers/input/evdev.ko')

#: What unpacks what begins so.
_PROGRAMS = {b'\x02!L\x18': 'lz4', b'\x28\xb5\x2f\xfd': 'zstd'}

#: The kernel's arguments; an image property gives them to Nova.
ARGUMENTS = 'console=ttyS0 quiet panic=-1 mitigations=off cryptomgr.notests'


@dataclasses.dataclass(frozen=True)
class Files:
    """What a guest boots."""

    kernel: pathlib.Path
    initrd: pathlib.Path


def prepare() -> Files:
    """The guest's files, made when they are missing or of another init."""
    files = Files(_DIRECTORY / 'vmlinux', _DIRECTORY / 'initrd')
    modules = _DIRECTORY / 'modules'
    _DIRECTORY.mkdir(parents=True, exist_ok=True)
    if not files.kernel.exists():
        _fetch_kernel(files.kernel, modules)
    if not (
        files.initrd.exists()
        and files.initrd.stat().st_mtime > _INIT.stat().st_mtime
    ):
        _make_initrd(files.initrd, modules)
    return files


def uncompressed(kernel: bytes) -> bytes:
    """The ELF file in a bzImage, or the bzImage if there is no way to it.

    Documentation/arch/x86/boot.rst of the kernel has the numbers.
    """
    setup_sectors = kernel[0x1F1] or 4
    offset, length = struct.unpack_from('<II', kernel, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = kernel[start : start + length]
    if payload.startswith(b'\xfd7zXZ'):
        return lzma.LZMADecompressor().decompress(payload)
    for magic, program in _PROGRAMS.items():
        if payload.startswith(magic):
            # The size follows, which is no part of what is compressed.
            return _unpacked(payload[:-4], program)
    return kernel


def _unpacked(payload: bytes, program: str) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        packed = pathlib.Path(directory, 'packed')
        unpacked = pathlib.Path(directory, 'unpacked')
        packed.write_bytes(payload)
        with packed.open('rb') as source, unpacked.open('wb') as target:
            subprocess.run(
                [program, '-dcq'], stdin=source, stdout=target, check=True
            )
        return unpacked.read_bytes()


def make_archive(directory: pathlib.Path, archive: pathlib.Path) -> None:
    """An initramfs of the directory's content."""
    made = archive.with_suffix('.new')
    processes.run(
        [
            'sh',
            '-c',
            'cd "$0" && find . | cpio --quiet -o -H newc >"$1"',
            directory,
            made,
        ]
    )
    made.replace(archive)


def _fetch_kernel(kernel: pathlib.Path, modules: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(dir=_DIRECTORY) as name:
        directory = pathlib.Path(name)
        processes.run(
            [
                'sh',
                '-c',
                'cd "$0" && apt-get -q download "$1"',
                directory,
                _newest_package(),
            ]
        )
        (package,) = directory.glob('*.deb')
        processes.run(['dpkg-deb', '--extract', package, directory / 'root'])
        (tree,) = (directory / 'root/lib/modules').iterdir()
        modules.mkdir(exist_ok=True)
        for module in _MODULES:
            shutil.copy(tree / 'kernel' / module, modules)
        (image,) = (directory / 'root/boot').glob('vmlinuz-*')
        made = kernel.with_suffix('.new')
        made.write_bytes(uncompressed(image.read_bytes()))
        made.replace(kernel)


def _newest_package() -> str:
    """The package of a version that the one without a version depends on."""

    def dependencies() -> list[str]:
        found = processes.run(['apt-cache', 'depends', _PACKAGE])
        return [
            line.split()[1]
            for line in found.splitlines()
            if line.strip().startswith('Depends: linux-image-')
        ]

    try:
        return dependencies()[0]
    except (IndexError, processes.LabError):
        processes.run(['apt-get', '-q', 'update'])
        return dependencies()[0]


def _make_initrd(initrd: pathlib.Path, modules: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(dir=_DIRECTORY) as name:
        directory = pathlib.Path(name)
        (directory / 'bin').mkdir()
        shutil.copy('/bin/busybox', directory / 'bin')
        shutil.copy(_INIT, directory / 'init')
        shutil.copytree(modules, directory / 'modules')
        make_archive(directory, initrd)
