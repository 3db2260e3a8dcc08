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

import queue
import threading
import types

import testtools

from rig.loopback import woken_workers


class TestStop(testtools.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.worker = types.SimpleNamespace(
            work_queue=queue.Queue(), should_stop=False
        )

    def test_an_idle_worker_is_woken(self) -> None:
        woken_workers._stop(self.worker)
        self.assertTrue(self.worker.should_stop)
        self.assertFalse(self.worker.work_queue.empty())

    def test_the_garbage_collector_stops_one_amid_its_get(self) -> None:
        def collect() -> None:
            with self.worker.work_queue.mutex:
                woken_workers._stop(self.worker)

        thread = threading.Thread(target=collect, daemon=True)
        thread.start()
        thread.join(10)
        self.assertFalse(thread.is_alive())
        self.assertTrue(self.worker.should_stop)
