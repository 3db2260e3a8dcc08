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

import json

import hypothesis
from hypothesis import strategies
import testtools

from nova_accel import exceptions
from nova_accel.model.links import fabric
from nova_accel.model.links import fabric_listing

Outcome = fabric_listing.Outcome


def gpu(module, uuid='', available=18, most=18):
    return {
        'physicalId': module,
        'uuid': uuid,
        'pciBusId': '00000000:00:00.0',
        'numNvLinksAvailable': available,
        'maxNumNvLinks': most,
        'nvlinkLineRateMBps': 26562,
    }


def partition(number, *gpus, active=0):
    return {
        'partitionId': number,
        'isActive': active,
        'numGpus': len(gpus),
        'gpuInfo': list(gpus),
    }


def listing(*partitions, key='partitionInfo'):
    return json.dumps({'version': 1, 'numPartitions': 1, key: partitions})


class TestOutcome(testtools.TestCase):
    def test_what_decides(self):
        for status, expected in (
            (0, Outcome.DONE),
            (-3, Outcome.NOT_SUPPORTED),
            (-4, Outcome.NOT_IN_USE),
            (-7, Outcome.IN_USE),
            (-8, Outcome.NOT_READY),
            (-18, Outcome.NOT_IN_USE),
            (-22, Outcome.NOT_READY),
            (-24, Outcome.IN_USE),
            (-2, Outcome.FAILED),
            (-9, Outcome.FAILED),
            (-100, Outcome.FAILED),
        ):
            self.assertEqual(
                expected, fabric_listing.outcome(status & 0xFF), status
            )

    def test_a_tool_that_fails_itself(self):
        for status in (1, 2, 126, 127):
            self.assertEqual(Outcome.FAILED, fabric_listing.outcome(status))

    def test_a_signal_is_no_return_value(self):
        for signal in range(1, 32):
            self.assertEqual(Outcome.FAILED, fabric_listing.outcome(-signal))


class TestPartitions(testtools.TestCase):
    def test_as_they_are_listed(self):
        found = fabric_listing.partitions(
            listing(
                partition(3, gpu(3), gpu(1), active=1),
                partition(7, gpu(1, available=0, most=0)),
            )
        )
        self.assertEqual(
            (
                fabric.Partition(3, frozenset({1, 3}), True, True, (3, 1)),
                fabric.Partition(7, frozenset({1}), False, True, (1,)),
            ),
            found,
        )

    def test_a_link_that_is_down(self):
        for unusable, broken in (
            (fabric_listing.NOTHING, gpu(3, available=17)),
            (
                fabric_listing.Unusable({}, frozenset({'gpu-3'})),
                gpu(3, uuid='GPU-3'),
            ),
        ):
            found = fabric_listing.partitions(
                listing(
                    partition(3, gpu(1), broken),
                    partition(4, gpu(2), gpu(4)),
                    partition(9, broken),
                ),
                unusable,
            )
            self.assertEqual(
                [False, True, True], [each.is_supported for each in found]
            )

    def test_what_is_unsupported(self):
        found = fabric_listing.partitions(
            listing(partition(3, gpu(1), gpu(3)), partition(7, gpu(1))),
            fabric_listing.Unusable(
                {3: frozenset({1, 3}), 4: frozenset({2, 4})}, frozenset()
            ),
        )
        self.assertEqual(
            [(3, False), (7, True), (4, False)],
            [(each.number, each.is_supported) for each in found],
        )

    def test_malformed(self):
        good = partition(3, gpu(1), gpu(3))
        for output in (
            '',
            'Failed to get partition list. fmReturn: -8',
            '[' * 100_000,
            '3',
            listing('x'),
            listing(good, good),
            listing(good, {**good, 'partitionId': 4}),
            listing({**good, 'partitionId': 64}),
            listing({**good, 'partitionId': -1}),
            listing({**good, 'partitionId': True}),
            listing({**good, 'partitionId': 1e300}),
            listing({**good, 'isActive': 2}),
            listing(partition(3)),
            listing(partition(3, gpu(1), gpu(1))),
            listing(partition(3, gpu(256))),
            listing(partition(3, gpu('1'))),
            listing(partition(3, gpu(1, uuid=7), gpu(2))),
            listing(partition(3, *map(gpu, range(17)))),
            listing(*(partition(n % 64, gpu(1)) for n in range(65))),
        ):
            error = self.assertRaises(
                exceptions.DeviceError, fabric_listing.partitions, output
            )
            self.assertLess(len(str(error)), 2000)

    @hypothesis.given(
        strategies.recursive(
            strategies.none()
            | strategies.booleans()
            | strategies.integers()
            | strategies.floats()
            | strategies.text(),
            lambda inner: (
                strategies.lists(inner, max_size=4)
                | strategies.dictionaries(
                    strategies.sampled_from(
                        (
                            'partitionInfo',
                            'partitionId',
                            'gpuInfo',
                            'isActive',
                            'physicalId',
                            'gpuPhysicalIds',
                            'portNum',
                            'uuid',
                        )
                    ),
                    inner,
                    max_size=5,
                )
            ),
        )
    )
    def test_whatever_is_said(self, value):
        output = json.dumps(value)
        for parse in (
            fabric_listing.partitions,
            fabric_listing.unsupported,
            fabric_listing.failed,
        ):
            try:
                parse(output)
            except exceptions.DeviceError:
                continue


class TestOthers(testtools.TestCase):
    def test_unsupported(self):
        self.assertEqual(
            {3: frozenset({1, 3})},
            fabric_listing.unsupported(
                listing(
                    {'partitionId': 3, 'numGpus': 2, 'gpuPhysicalIds': [1, 3]}
                )
            ),
        )
        self.assertEqual({}, fabric_listing.unsupported(listing()))

    def test_failed(self):
        self.assertEqual(
            {'gpu-1', '00000000:1b:00.0'},
            fabric_listing.failed(
                listing(
                    {
                        'uuid': 'GPU-1',
                        'pciBusId': '00000000:1B:00.0',
                        'portNum': [4],
                    },
                    {
                        'uuid': 'GPU-2',
                        'pciBusId': '00000000:00:00.0',
                        'portNum': [],
                    },
                    key='gpuInfo',
                )
            ),
        )

    def test_said(self):
        self.assertEqual('it says nothing', fabric_listing.message(' \n'))
        self.assertEqual('a b', fabric_listing.message('a\n b\n'))
        self.assertLess(len(fabric_listing.message('x' * 5000)), 1100)
