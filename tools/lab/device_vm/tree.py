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

"""The machine's operating system: a directory with an installed Debian."""

import pathlib
import shutil

from lab import processes
from lab.device_vm import apt

PREFERENCES = pathlib.Path(__file__).with_name('apt-preferences')

# What the machine needs, what its modules are built with, and what is newer
# than the release (by apt-preferences): SR-IOV of igb came with QEMU 8, and
# mdevs that libvirt can update with libvirt 10.
_PACKAGES = (
    'udev',
    'kmod',
    'iproute2',
    'procps',
    'pciutils',
    'busybox-static',
    'python3',
    'gcc',
    'make',
    'linux-image-amd64',
    'linux-headers-amd64',
    'linux-source',
    # Smaller than initramfs-tools, which the kernel would pull in.
    'tiny-initramfs',
    'libvirt-daemon-system',
    'libvirt-clients',
    'libvirt-daemon-driver-qemu',
    'mdevctl',
    'nvme-cli',
    'qemu-system-x86',
    'qemu-utils',
)


def build(directory: pathlib.Path) -> None:
    """Install it into the directory, which is made anew."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    command = [
        'mmdebstrap',
        '--mode=root',
        '--variant=minbase',
        '--format=directory',
        f'--include={",".join(_PACKAGES)}',
        '--aptopt=APT::Install-Recommends "false"',
        '--aptopt=Acquire::Check-Valid-Until "false"',
    ]
    command += [f'--aptopt={option}' for option in apt.options()]
    for left_out in ('doc', 'man', 'locale'):
        command.append(f'--dpkgopt=path-exclude=/usr/share/{left_out}/*')
    command += [
        '--setup-hook=mkdir -p "$1"/etc/apt/preferences.d',
        f'--setup-hook=upload {PREFERENCES} /etc/apt/preferences.d/lab',
        apt.SUITE,
        str(directory),
        *apt.sources(),
    ]
    processes.run(command, timeout=1800)
