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

"""The REST API: Cyborg's v2 wire, and calls of our own compute hosts.

``routes`` has the whole URL surface. A resource is one file each in
``handlers``, ``schemas`` and ``policies``. ``http`` has what these share of a
request and its answer, ``middleware`` the filters before them. ``compute``
calls nova-compute, ``notifications`` tells others of changes.
"""
