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
* ``driver`` (required): ``pci``, ``mdev``, or that of an installed plugin.
* ``type``: one of ``AICHIP``, ``FPGA``, ``GPU``, ``NIC``, ``QAT``, ``SSD``,
  ``TIME``, ``VGPU``; by default what is known of the PCI ids.
* ``resource_class``: a ``CUSTOM_`` class instead of the type's own.
* ``traits``: a list of further ``CUSTOM_`` traits.
* ``pool``: false to give each device a resource provider of its own.
* ``mdev_type``: the type of mediated devices that a card is to make.

At least one of ``vendor_id`` and ``address`` is needed. A device that Nova's
own ``[pci] device_spec`` or ``[devices]`` claims is refused.

Example::

    device_spec = {"vendor_id": "8086", "product_id": "37c9", "driver": "pci"}
    device_spec = {"address": "0000:81:00.0", "driver": "mdev",
                   "mdev_type": "nvidia-11"}
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
        'publish_timeout_s', default=60, min=0,
        help='Seconds that the boot of a server waits at most for the first '
             'report of this host to be accepted by the accelerator API.'),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
