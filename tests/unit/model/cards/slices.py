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

"""Slices of cards, for tests."""

from hypothesis import strategies as st

from nova_accel.model.cards import card_slice

_PARTS = 8
_PART = card_slice.WHOLE_CARD // _PARTS


def eighths(
    shape: str, start: int, size: int, mode: str = card_slice.MIG
) -> card_slice.CardSlice:
    """The slice that starts at an eighth of its card, and has some."""
    return card_slice.CardSlice(shape, mode, start * _PART, size * _PART)


WHOLE = eighths('whole', 0, _PARTS, card_slice.WHOLE)

#: Some that exclude each other, and some that do not.
ANY = st.tuples(
    st.sampled_from([card_slice.MIG, 'vgpu:NVIDIA A40-12Q']),
    st.integers(0, _PARTS - 1),
    st.integers(1, _PARTS),
).map(
    lambda drawn: eighths(
        'mig:3g.40gb' if drawn[0] == card_slice.MIG else drawn[0],
        drawn[1],
        min(drawn[2], _PARTS - drawn[1]),
        drawn[0],
    )
)
