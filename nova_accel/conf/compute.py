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

"""``[nova_accel]`` of nova-compute: which devices are accelerators."""

from oslo_config import cfg

GROUP = 'nova_accel'

OPTS = [
    cfg.MultiStrOpt(
        'device_spec',
        default=[],
        help="""
The devices of this host that are accelerators. Each value is a JSON object in
the form of ``[pci] device_spec``. The option may be given many times; the
first value that matches a device applies to it. Keys:

* ``vendor_id``, ``product_id``: four hexadecimal digits, or ``*``.
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
  one NUMA node share one.
* ``mdev_type``: the type of mediated devices that a card is to make.
* ``unit``: for ``pci``, what a guest gets as one unit: the ``function`` (the
  default), all functions of its ``slot``, or all of its ``iommu_group``.
* ``sriov_numvfs``: how many virtual functions a physical function is to have;
  they are created when nova-compute starts, if there are none. By default
  nova_accel creates none.
* ``mdev_types``: for several types of mediated devices, the number of each.
* ``vgpu_types``: for ``nvidia_vfio``, how many of a card's virtual functions
  get each vGPU type; the keys are the numbers of the types.
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
    cfg.StrOpt(
        'catalogue_file',
        help="""
A YAML file with the names of devices that nova_accel does not know, or that
are to have other names. Without an entry an unknown device is called by its
PCI ids, and its line in ``device_spec`` must have a ``type``. The form is::

    "8086":
      name: Intel
      products:
        QAT:
          "4948": 6xxx

All ids are four lower-case hexadecimal digits in quotes. An entry adds to the
shipped catalogue (``nova_accel/drivers/catalogue.json``) or overrides it. The
names are parts of the devices' traits, so a new name changes the traits that
device profiles have to ask for. The file is read when nova-compute starts.
""",
    ),
    cfg.StrOpt(
        'pci_topology',
        default='flat',
        choices=[
            ('flat', 'each accelerator is below the one root complex'),
            ('host', 'root complexes, switches and NUMA nodes as on the host'),
        ],
        help="""
The PCI Express tree that a guest sees of its accelerators, if neither its
flavor nor its image has the property ``nova_accel:pci_topology``. Programs
such as NCCL choose by it how devices reach each other. ``host`` needs the
machine type q35. Guests that exist get another tree at their next hard reboot
or start, and their accelerators then have other PCI addresses.
""",
    ),
    cfg.IntOpt(
        'report_interval_s',
        default=30,
        min=1,
        help=(
            'The minimum time in seconds between two discoveries of the '
            'devices of this host, and between two reports to the '
            'accelerator API. Both happen when nova-compute updates its '
            'resources, see ``[DEFAULT] update_resources_interval`` (by '
            'default every 60 seconds).'
        ),
    ),
    cfg.IntOpt(
        'reconcile_interval_s',
        default=300,
        min=1,
        help=(
            'The minimum time in seconds between two comparisons of the '
            'accelerators in use on this host with the existing instances. '
            'Leaked accelerators are freed. The comparison is a part of the '
            'report, see report_interval_s, and asks Placement once for '
            'each resource provider of an accelerator.'
        ),
    ),
    cfg.IntOpt(
        'max_concurrent_cleanings',
        default=4,
        min=1,
        help=(
            'How many devices are cleaned at a time after guests have given '
            'them back. A cleaning that never ends takes one of these '
            'places until nova-compute is restarted. Servers that want '
            'other devices do not wait for it.'
        ),
    ),
    cfg.IntOpt(
        'publish_timeout_s',
        default=60,
        min=0,
        help=(
            'The most seconds that the boot of a server waits until the '
            'accelerator API has accepted the first report of this host.'
        ),
    ),
    cfg.IntOpt(
        'programming_timeout_s',
        default=600,
        min=1,
        help=(
            'Seconds that the programming of an FPGA region may take, '
            'including the download of its bitstream and the time that the '
            'card is busy with another region. A server whose regions take '
            'longer goes to another host. Regions are programmed while the '
            'image of the server is downloaded.'
        ),
    ),
    cfg.BoolOpt(
        'clean_with_stock',
        default=False,
        help="""
Whether a region that is cleaned by ``"clean": "program"`` may be programmed
with a bitstream that servers will probably ask for, instead of its
``clean_bitstream``. The accelerator API names the bitstream if
stock_programmings_per_minute is not 0 there. If this bitstream does not get
into the region, ``clean_bitstream`` is taken.

Leave it off if the ``clean_bitstream`` does more than replace the circuit, for
example if it overwrites the memory of the card.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
