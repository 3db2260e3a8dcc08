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

"""What the machine boots: kernel, initramfs, and an image of its tree.

All of it is made once, below ``STATE/device-vm``, and made again when the
files of this package that it is made of have changed. The checkout's Python
packages are apart from it.
"""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import hashlib
import lzma
import pathlib
import shutil
import tempfile

from lab import guest
from lab import processes
from lab import settings
from lab.device_vm import apt
from lab.device_vm import modules
from lab.device_vm import packages
from lab.device_vm import tree

DIRECTORY = settings.STATE / 'device-vm'

#: The installed Debian. QEMU is run from it, too.
TREE = DIRECTORY / 'tree'

_HERE = pathlib.Path(__file__).parent

#: The first program, and what is started by it.
_PROGRAMS = ('init', 'agent.py')

#: To get at the image; what is built into the kernel has no file.
_EARLY_MODULES = (
    'virtio_pci',
    'virtio_blk',
    'ext4',
    'overlay',
    '9pnet_virtio',
    '9p',
)

# Guests run as root, unconfined: the machine itself is the confinement.
_QEMU_CONF = '''
user = "root"
group = "root"
security_driver = "none"
cgroup_controllers = []
namespaces = []
stdio_handler = "file"
'''


@dataclasses.dataclass(frozen=True)
class Files:
    """What the machine boots."""

    kernel: pathlib.Path
    initrd: pathlib.Path
    disk: pathlib.Path
    packages: pathlib.Path


def prepare() -> Files:
    """The machine's files; what is missing or outdated is made."""
    files = Files(
        DIRECTORY / 'vmlinux',
        DIRECTORY / 'initrd',
        DIRECTORY / 'disk.img',
        DIRECTORY / 'packages.img',
    )
    inputs = [tree.__file__, apt.__file__, tree.PREFERENCES]
    _unless_done('tree', inputs, lambda: tree.build(TREE))
    inputs += [modules.__file__, *modules.OWN]
    _unless_done('modules', inputs, lambda: modules.build(TREE))
    inputs.append(__file__)
    _unless_done('disk', inputs, lambda: _make_disk(files))
    inputs += [_HERE / 'initramfs-init', *(_HERE / name for name in _PROGRAMS)]
    _unless_done('initrd', inputs, lambda: _make_initrd(files.initrd))
    packages.make_image(files.packages)
    return files


def _unless_done(
    what: str, inputs: Iterable[str | pathlib.Path], make: Callable[[], None]
) -> None:
    stamp = DIRECTORY / f'{what}.sha256'
    digest = hashlib.sha256()
    for path in inputs:
        digest.update(pathlib.Path(path).read_bytes())
    if not stamp.exists() or stamp.read_text() != digest.hexdigest():
        stamp.unlink(missing_ok=True)
        make()
        stamp.write_text(digest.hexdigest())


def _make_disk(files: Files) -> None:
    version = modules.kernel_version(TREE)
    files.kernel.write_bytes(
        guest.uncompressed((TREE / 'boot' / f'vmlinuz-{version}').read_bytes())
    )
    _configure()
    files.disk.unlink(missing_ok=True)
    # 64bit and the rest are mke2fs's; the directory's owners are kept.
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
            '-d',
            TREE,
            files.disk,
            '3G',
        ]
    )


def _configure() -> None:
    original = TREE / 'etc/libvirt/qemu.conf.original'
    if not original.exists():
        shutil.copy(original.with_name('qemu.conf'), original)
    original.with_name('qemu.conf').write_text(
        original.read_text() + _QEMU_CONF
    )
    (TREE / 'etc/machine-id').write_text(
        hashlib.md5(b'labvm', usedforsecurity=False).hexdigest() + '\n'
    )
    # Debian's Python in a virtual environment, for the checkout's packages.
    python = TREE / packages.DIRECTORY.relative_to('/')
    shutil.rmtree(python, ignore_errors=True)
    (python / packages.SITE).mkdir(parents=True)
    (python / 'pyvenv.cfg').write_text('home = /usr/bin\n')
    (python / 'bin').mkdir()
    (python / 'bin/python').symlink_to('/usr/bin/python3')


def _make_initrd(initrd: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory(dir=DIRECTORY) as name:
        directory = pathlib.Path(name)
        for empty in (
            'bin',
            'dev',
            'image',
            'lab',
            'memory',
            'modules',
            'proc',
            'root',
            'sys',
        ):
            (directory / empty).mkdir()
        shutil.copy(TREE / 'bin/busybox', directory / 'bin')
        shutil.copy(_HERE / 'initramfs-init', directory / 'init')
        for program in _PROGRAMS:
            shutil.copy(_HERE / program, directory / 'lab')
        for number, module in enumerate(_early_modules()):
            name = module.name.removesuffix('.xz')
            content = module.read_bytes()
            if name != module.name:
                content = lzma.decompress(content)
            (directory / 'modules' / f'{number:02}-{name}').write_bytes(
                content
            )
        guest.make_archive(directory, initrd)


def _early_modules() -> list[pathlib.Path]:
    """In the order in which they can be loaded."""
    version = modules.kernel_version(TREE)
    found: list[pathlib.Path] = []
    for module in _EARLY_MODULES:
        needed = processes.run(
            [
                'chroot',
                TREE,
                'modprobe',
                '-S',
                version,
                '--show-depends',
                module,
            ]
        )
        for line in needed.splitlines():
            kind, path, *_arguments = line.split()
            module_file = TREE / path.lstrip('/')
            if kind == 'insmod' and module_file not in found:
                found.append(module_file)
    return found
