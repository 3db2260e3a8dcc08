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
        'device_spec', default=[],
        help="""
The devices of this host that are accelerators. Each value is a JSON object in
the form of ``[pci] device_spec``, and may be given many times; the first that
matches a device rules it. Keys:

* ``vendor_id``, ``product_id``: four hexadecimal digits, or ``*``.
* ``address``: ``[domain:]bus:slot.function``, each part hexadecimal or ``*``;
  without a domain it means any.
* ``driver`` (required): ``pci``, ``mdev``, one of those for a kind of device
  (the manual's page on drivers has them), or that of an installed plugin.
* ``type``: one of ``AICHIP``, ``FPGA``, ``GPU``, ``NIC``, ``QAT``, ``SSD``,
  ``TIME``, ``VGPU``; by default what is known of the PCI ids.
* ``resource_class``: a ``CUSTOM_`` class instead of the type's own.
* ``traits``: a list of further ``CUSTOM_`` traits.
* ``pool``: false to give each device a resource provider of its own.
* ``mdev_type``: the type of mediated devices that a card is to make.
* ``unit``: what a guest gets of ``pci`` as one: the ``function`` (this is the
  default), all functions of its ``slot``, or of its ``iommu_group``.
* ``sriov_numvfs``: how many virtual functions a physical function is to have;
  they are made when nova-compute starts, if there are none. By default
  nova_accel makes none.
* ``mdev_types``: how many of each, if it is to make several types.
* ``vgpu_types``: how many of the virtual functions of a card are to be of each
  vGPU type, for ``nvidia_vfio``; keys are the numbers of the types.
* ``whole``: true to hand an FPGA out as it is, instead of its regions.
* ``contents_attribute``: for ``fpga_region``, the attribute of the card in
  sysfs that tells what is loaded, and is another text for each bitstream.
* ``clean``: how a unit is cleaned after each guest: ``none``, ``reset``,
  ``sanitize``, ``format``, ``program`` or ``command``; by default as its
  driver does.
* ``clean_command``: for ``command``, a list of a program, with its full path,
  and its arguments. The PCI address is added.
* ``clean_bitstream``: for ``program``, the id of the image in Glance that the
  region of an FPGA is programmed with.

At least one of ``vendor_id`` and ``address`` is needed. A device that Nova's
own ``[pci] device_spec`` or ``[devices]`` claims is refused.

Example::

    device_spec = {"vendor_id": "8086", "product_id": "37c9", "driver": "pci"}
    device_spec = {"address": "0000:81:00.0", "driver": "mdev",
                   "mdev_type": "nvidia-11"}
"""),
    cfg.StrOpt(
        'catalogue_file',
        help="""
A YAML file with the names of devices that nova_accel does not know, or that
are to have other names. By default such a device is called by its PCI ids, and
its line in ``device_spec`` must have a ``type``. The form is::

    "8086":
      name: Intel
      products:
        QAT:
          "4948": 6xxx

All ids are four lower-case hexadecimal digits in quotes. An entry adds to what
is known (``nova_accel/drivers/catalogue.json``) or overrules it. The names are
in the traits of the devices: to change one changes what device profiles have
to ask for. It is read when nova-compute starts.
"""),
    cfg.IntOpt(
        'report_interval_s', default=30, min=1,
        help='Seconds between two looks at the devices of this host, and two '
             'reports of them to the accelerator API, at the least: they are '
             'made when nova-compute updates its resources, which '
             '``[DEFAULT] update_resources_interval`` rules (by default every '
             '60 seconds).'),
    cfg.IntOpt(
        'reconcile_interval_s', default=300, min=1,
        help='Seconds between two comparisons, at the least, of what is held '
             'of the accelerators of this host with the instances that there '
             'are; what has leaked is freed. It is a part of the report, see '
             'report_interval_s, and asks Placement once for each resource '
             'provider of an accelerator.'),
    cfg.IntOpt(
        'max_concurrent_cleanings', default=4, min=1,
        help='How many devices that guests have given back are cleaned at a '
             'time. One of which the cleaning never ends takes one of these '
             'places until nova-compute is restarted; no server waits for '
             'it, but for the device.'),
    cfg.IntOpt(
        'publish_timeout_s', default=60, min=0,
        help='Seconds that the boot of a server waits at most for the first '
             'report of this host to be accepted by the accelerator API.'),
    cfg.IntOpt(
        'programming_timeout_s', default=600, min=1,
        help='Seconds that the programming of an FPGA region may take, with '
             'the download of its bitstream and the time that the card is '
             'busy with another region. A server whose regions take longer '
             'goes to another host. They are programmed while its image is '
             'downloaded.'),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
