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

"""The kernel modules that Debian does not have.

``labgpu`` makes PCI functions mdev parents, with the kernel's sample mtty.
``labfpga`` is a software FPGA; Debian's kernels are without the FPGA
framework, so its three modules are built too.
"""

import pathlib
import shutil

from lab import processes

_HERE = pathlib.Path(__file__).parent

OWN = (_HERE / 'labgpu.c', _HERE / 'labfpga.c')

_FROM_THE_KERNEL = (
    'samples/vfio-mdev/mtty.c',
    'drivers/fpga/fpga-bridge.c',
    'drivers/fpga/fpga-mgr.c',
    'drivers/fpga/fpga-region.c',
)

_MODULES = ('fpga-bridge', 'fpga-mgr', 'fpga-region', 'labfpga', 'labgpu')

#: The directory of the build, as seen in the tree.
_BUILD = pathlib.PurePosixPath('/usr/src/lab')


def kernel_version(tree: pathlib.Path) -> str:
    """The version of the tree's one kernel."""
    (modules,) = (tree / 'lib/modules').iterdir()
    return modules.name


def build(tree: pathlib.Path) -> None:
    """Build and install them in the tree, with the tree's own compiler."""
    version = kernel_version(tree)
    directory = tree / _BUILD.relative_to('/')
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    _unpack(tree, directory)
    for source in OWN:
        shutil.copy(source, directory)
    objects = ' '.join(f'{module}.o' for module in _MODULES)
    (directory / 'Makefile').write_text(f'obj-m := {objects}\n')
    processes.run(
        [
            'chroot',
            tree,
            'make',
            '-s',
            '-j2',
            '-C',
            f'/lib/modules/{version}/build',
            f'M={_BUILD}',
            'modules',
        ]
    )
    installed = tree / f'lib/modules/{version}/updates'
    installed.mkdir(exist_ok=True)
    for module in _MODULES:
        shutil.copy(directory / f'{module}.ko', installed)
    processes.run(['chroot', tree, 'depmod', version])


def _unpack(tree: pathlib.Path, directory: pathlib.Path) -> None:
    (archive,) = (tree / 'usr/src').glob('linux-source-*.tar.xz')
    processes.run(
        [
            'tar',
            '--extract',
            '--file',
            archive,
            '--directory',
            directory,
            '--transform',
            's,.*/,,',
            '--wildcards',
            *(f'*/{path}' for path in _FROM_THE_KERNEL),
        ]
    )
