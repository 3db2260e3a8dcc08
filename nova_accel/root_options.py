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

"""The options that say which devices and files the processes of root take.

These processes read them themselves. So nova-compute, which an attacker may
have taken over, chooses neither. See also :mod:`nova_accel.fabric_options`.
"""

from oslo_config import cfg

GROUP = 'nova_accel'

DEVICE_OPTS = [
    cfg.MultiStrOpt(
        'device_spec',
        default=[],
        help="""
The devices of this host that are accelerators. Each value is a JSON object in
the form of ``[pci] device_spec``. The option may be given many times; the
first value that matches a device applies to it. Keys:

* ``vendor_id``, ``product_id``: four hexadecimal digits, or ``*``.
* ``subsystem_vendor_id``, ``subsystem_product_id``: those of the board, which
  tell apart boards with the same ``product_id``; ``lspci -nn -v`` shows them.
* ``address``: ``[domain:]bus:slot.function``, each part hexadecimal or ``*``;
  without a domain any domain matches.
* ``driver`` (required): ``pci``, ``mdev``, a driver for one kind of device
  (the manual's page on drivers lists them), or an installed plugin's driver.
* ``type``: one of ``AICHIP``, ``FPGA``, ``GPU``, ``NIC``, ``QAT``, ``SSD``,
  ``TIME``, ``VGPU``; by default the catalogue's type for the PCI ids.
* ``resource_class``: a ``CUSTOM_`` class instead of the type's own.
* ``traits``: a list of additional ``CUSTOM_`` traits.
* ``pool``: false to give each device a resource provider of its own, true to
  let devices of one kind share one, ``"numa"`` to let those of one kind and
  one NUMA node share one, ``"link"`` to show which are joined.
* ``links``: with ``"pool": "link"``, sets of joined devices that nova-compute
  does not find, or finds otherwise.
* ``module_ids``: the numbers of GPUs on their NVSwitch board, by PCI address.
* ``physical_network``: for ``nic`` and ``pci``, the physical network of
  Neutron that a function is connected to.
* ``mdev_type``: the type of mediated devices that a card is to make.
* ``unit``: for ``pci``, what a guest gets as one unit: the ``function`` (the
  default), all functions of its ``slot``, or all of its ``iommu_group``.
* ``sriov_numvfs``: how many virtual functions a physical function is to have;
  they are created when nova-compute starts, if there are none. By default
  nova_accel creates none.
* ``mdev_types``: for several types of mediated devices, the number of each.
* ``vgpu_types``: for ``nvidia_vfio``, how many of a card's virtual functions
  get each vGPU type; the keys are the numbers of the types.
* ``shapes``: for ``mdev`` and ``nvidia_vfio``, a list of the shapes that a
  card can take, such as ``["mig:*", "vgpu:NVIDIA L40S-12Q"]``. Servers choose
  among them, and nova_accel carves the card for each of them.
* ``vgpu_params``: for ``nvidia_vfio``, parameters with which the vGPUs are
  started, such as ``enable_uvm=1,frame_rate_limiter=0``.
* ``live_migratable``: whether guests with the devices may be migrated live,
  as in ``[pci] device_spec``; by default the driver decides.
* ``whole``: true to hand out an FPGA as it is, instead of its regions.
* ``contents_attribute``: for ``fpga_region``, the card's attribute in sysfs
  that tells what is loaded; its text must differ for each bitstream.
* ``clean``: how a unit is cleaned after each guest: ``none``, ``reset``,
  ``sanitize``, ``format``, ``program`` or ``command``; by default in the
  driver's own way.
* ``clean_command``: for ``command``, a list of a program, with its full path,
  and its arguments. The PCI address is appended.
* ``clean_bitstream``: for ``program``, the id of the image in Glance with
  which the FPGA's region is programmed.

At least one of ``vendor_id`` and ``address`` is needed. A device that Nova's
own ``[pci] device_spec`` or ``[devices]`` claims is refused.

Example::

    device_spec = {"vendor_id": "8086", "product_id": "37c9", "driver": "pci"}
    device_spec = {"address": "0000:81:00.0", "driver": "mdev",
                   "mdev_type": "nvidia-11"}
""",
    ),
]

BITSTREAM_OPTS = [
    cfg.StrOpt(
        'bitstream_cache_directory',
        default='$state_path/nova_accel_bitstreams',
        help=(
            'The directory where this host keeps bitstreams that it has '
            'fetched from Glance. Only nova_accel may use it. It is created '
            'if it does not exist, and must not be a symbolic link. '
            'Everything in it can be removed while '
            'nova-compute is stopped.'
        ),
    ),
]

cfg.CONF.register_opts([*DEVICE_OPTS, *BITSTREAM_OPTS], group=GROUP)
