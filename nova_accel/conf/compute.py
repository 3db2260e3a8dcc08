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

from nova_accel import root_options

GROUP = 'nova_accel'

OPTS = [
    *root_options.DEVICE_OPTS,
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
            'Leaked accelerators are freed, and lost allocations are made '
            'again. The comparison is a part of the report, see '
            'report_interval_s, and asks Placement once for each resource '
            'provider of an accelerator. It is made sooner if a guest could '
            'not be made, or if the last one has left something to repair.'
        ),
    ),
    cfg.BoolOpt(
        'replace_failed',
        default=True,
        help=(
            'Whether a server that is started, or rebooted hard, gets another '
            'unit of this host for each of its accelerators that has failed. '
            'A device with "clean" in its line of device_spec may have data '
            'of the server: it is replaced only if the owner asks for it.'
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
