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

import collections
import copy
import datetime

import hypothesis
from hypothesis import strategies as st
import testtools

from nova_accel import exceptions
from nova_accel.db.rows import attach_handle

SLOTS = [
    attach_handle.Slot('compute-1', f'rp-{provider}', resource_class)
    for provider in range(2)
    for resource_class in ('FPGA', 'VGPU')
]

STOCKS = st.dictionaries(st.sampled_from(SLOTS), st.integers(0, 3)).map(
    lambda amounts: {
        slot: [
            f'{slot.rp_uuid} {slot.resource_class} {number}'
            for number in range(amount)
        ]
        for slot, amount in amounts.items()
    }
)

WANTED = st.lists(st.sampled_from(SLOTS), max_size=5).map(
    lambda slots: {f'arq-{number}': slot for number, slot in enumerate(slots)}
)


class TestStock(testtools.TestCase):
    @hypothesis.given(STOCKS, st.lists(WANTED, max_size=4))
    def test_allots_all_or_nothing_and_nothing_twice(
        self,
        free: dict[attach_handle.Slot, list[str]],
        wishes: list[dict[str, attach_handle.Slot]],
    ) -> None:
        stock = attach_handle.Stock(copy.deepcopy(free), {}, {})
        left = {slot: set(handles) for slot, handles in free.items()}
        for wanted in wishes:
            amounts = collections.Counter(wanted.values())
            enough = all(
                len(left.get(slot, ())) >= amount
                for slot, amount in amounts.items()
            )
            if not enough:
                self.assertRaises(
                    exceptions.AcceleratorsBusy, stock.allot, wanted
                )
                continue
            allotted = stock.allot(wanted)
            self.assertEqual(sorted(wanted), sorted(allotted.values()))
            for handle, arq in allotted.items():
                self.assertIn(handle, left[wanted[arq]])
                left[wanted[arq]].remove(handle)

    def test_says_what_is_short(self) -> None:
        stock = attach_handle.Stock({SLOTS[0]: ['handle']}, {}, {})
        error = self.assertRaises(
            exceptions.AcceleratorsBusy,
            stock.allot,
            {'a': SLOTS[0], 'b': SLOTS[0]},
        )
        self.assertEqual(
            '2 FPGA of resource provider rp-0 on host compute-1 are wanted '
            'and 1 are free',
            str(error),
        )

    def test_says_why_no_more_are_free(self) -> None:
        stock = attach_handle.Stock(
            {SLOTS[0]: []},
            {
                SLOTS[0]: ['being cleaned', 'faulty: hot', 'being cleaned'],
                SLOTS[1]: ['disabled by an administrator'],
            },
            {},
        )
        error = self.assertRaises(
            exceptions.AcceleratorsBusy, stock.allot, {'a': SLOTS[0]}
        )
        self.assertEqual(
            '1 FPGA of resource provider rp-0 on host compute-1 are wanted '
            'and 0 are free (2 being cleaned, 1 faulty: hot)',
            str(error),
        )

    def test_providers(self) -> None:
        stock = attach_handle.Stock({SLOTS[0]: []}, {}, {})
        slot = SLOTS[0]
        stock.check_providers([slot, slot._replace(resource_class='VGPU')])
        error = self.assertRaises(
            exceptions.NotFound,
            stock.check_providers,
            [
                slot,
                slot._replace(hostname='compute-2'),
                slot._replace(rp_uuid='rp-1'),
            ],
        )
        self.assertEqual(
            'Resource provider rp-1 not found on host compute-1; '
            'Resource provider rp-0 not found on host compute-2',
            str(error),
        )

    def test_silent_hosts(self) -> None:
        minute = datetime.timedelta(minutes=1)
        stock = attach_handle.Stock(
            {}, {}, {'compute-1': minute, 'compute-2': 2 * minute}
        )
        self.assertEqual({'compute-2'}, stock.silent_hosts(60))
