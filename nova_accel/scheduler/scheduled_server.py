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

"""The server that a request is for, as its cell knows it."""

from nova import context as nova_context
from nova import exception
from nova import objects


def find(
    ctxt: nova_context.RequestContext, request_spec: 'objects.RequestSpec'
) -> 'objects.Instance | None':
    """The server with its flavor, None if it is in no cell yet."""
    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(
            ctxt, request_spec.instance_uuid
        )
        if mapping.cell_mapping is None:
            return None
        with nova_context.target_cell(
            ctxt, mapping.cell_mapping
        ) as cell_context:
            return objects.Instance.get_by_uuid(
                cell_context,
                request_spec.instance_uuid,
                expected_attrs=['flavor'],
            )
    except (exception.InstanceMappingNotFound, exception.InstanceNotFound):
        return None
