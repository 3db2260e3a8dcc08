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

"""Recordings of real hosts, each against an answer written by hand.

The topologies of NCCL (``nccl-topo``) are compared with nothing. They tell the
xGMI neighbours of AMD's GPUs, which nova_accel does not read. No other
recording has its GPUs at the same addresses, so none is of the same machine.
"""

# Its __init__ decides between eventlet and native threads; anything else of
# Nova imported before it leaves the process half patched.
import nova.tests.functional  # noqa: F401 isort: skip
