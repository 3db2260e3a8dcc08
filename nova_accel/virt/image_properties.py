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

"""The properties of a server's image, also those that Nova does not know.

Nova keeps all properties of the image that an instance boots from, also if
the image is a volume's. A rebuild of the instance replaces them. Only Nova's
image objects drop the properties that they do not know.
"""

from typing import Any

from nova import objects
from nova import utils


def of(instance: objects.Instance) -> dict[str, Any]:
    """The properties of the image that an instance was made of last."""
    prefix = utils.SM_IMAGE_PROP_PREFIX
    return {
        name.removeprefix(prefix): value
        for name, value in instance.system_metadata.items()
        if name.startswith(prefix)
    }
