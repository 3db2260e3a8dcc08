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

"""The GPU instances that cards can have, of cards that are not in MIG mode.

Such a card does not tell its profiles. ``mig_places.json`` has them by the
PCI ids of NVIDIA's cards: names, and sizes and starts in slices of memory.
The profiles of A30 and A100 are from NVIDIA's go-nvml
(``pkg/nvml/mock/gpus``), and the profiles of H100 from the output of
``nvidia-smi mig -lgipp``. The profiles of H200 and B200 are inferred: these
cards have the same seven slices of computing and eight of memory.
Profiles that differ from others only in their engines (``+me``) are left out.
"""

import functools
from importlib import resources
import json

from nova_accel.host import mig


@functools.cache
def _all() -> dict[str, tuple[mig.Profile, ...]]:
    tables = json.loads(
        resources.files(__package__)
        .joinpath('mig_places.json')
        .read_text(encoding='utf-8')
    )
    return {
        product_id: tuple(
            mig.Profile(name, places['size'], tuple(places['starts']))
            for name, places in table['profiles'].items()
        )
        for table in tables
        for product_id in table['product_ids']
    }


def of(product_id: str) -> tuple[mig.Profile, ...]:
    """The profiles of a card, none if it is not known.

    :param product_id: four lower-case hexadecimal digits, of NVIDIA
    """
    return _all().get(product_id, ())
