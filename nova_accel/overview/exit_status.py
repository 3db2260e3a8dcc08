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

"""Commands whose exit status is an answer."""

import argparse

from nova_accel.overview import printing

#: The exit status if there is no answer.
UNKNOWN = 2


class Answering(printing.Command):
    """A command that has an exit status of its own for a failure."""

    def run(self, parsed_args: argparse.Namespace) -> int:
        try:
            with printing.printable_faults():
                return self.answer(parsed_args)
        except Exception as error:
            if self.app.options.debug:
                raise
            self.warn(str(error))
            return UNKNOWN

    def answer(self, parsed_args: argparse.Namespace) -> int:
        """Do what is asked for.

        :returns: the exit status
        """
        raise NotImplementedError
