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

"""Nova's instances, each read from the database of its cell."""

import collections
from collections.abc import Iterable
from typing import Any

from nova import context as nova_context
from nova import objects

from nova_accel.api.compute import nova_setup


def read(
    context: nova_context.RequestContext,
    uuids: Iterable[str],
    *expected_attrs: str,
) -> 'list[objects.Instance]':
    """The instances that exist, each in the context of its cell.

    :param context: an administrator's, that is of no cell yet
    """
    nova_setup.ensure()
    objects.register_all()
    mappings = objects.InstanceMappingList.get_by_instance_uuids(
        context, list(uuids)
    )
    cells: dict[str, Any] = {}
    uuids_of: dict[str, list[str]] = collections.defaultdict(list)
    for mapping in mappings:
        if mapping.cell_mapping is not None:
            cells[mapping.cell_mapping.uuid] = mapping.cell_mapping
            uuids_of[mapping.cell_mapping.uuid].append(mapping.instance_uuid)
    found = []
    for uuid, cell in cells.items():
        with nova_context.target_cell(context, cell) as cell_context:
            found.extend(
                objects.InstanceList.get_by_filters(
                    cell_context,
                    {'uuid': uuids_of[uuid], 'deleted': False},
                    expected_attrs=list(expected_attrs),
                )
            )
    return found
