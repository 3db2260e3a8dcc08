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

"""The units of a part of a device, in words for the operator."""

import collections

from nova_accel.model import attach_handle
from nova_accel.model.devices import hardware


def of(deployable: hardware.Deployable) -> str:
    """Such as ``16 x function`` or ``1 x whole, 2 x mig:3g.40gb``.

    Units of several shapes exclude each other.
    """
    amounts = collections.Counter(map(_kind, deployable.handles))
    return ', '.join(f'{amounts[kind]} x {kind}' for kind in amounts) or 'none'


def _kind(handle: attach_handle.AttachHandle) -> str:
    if handle.slice is not None:
        return handle.slice.shape
    if handle.mdev_type is not None:
        return handle.mdev_type
    if handle.vgpu_type is not None:
        return f'vGPU type {handle.vgpu_type}'
    together = len(handle.functions)
    return 'function' if together == 1 else f'{together} functions together'
