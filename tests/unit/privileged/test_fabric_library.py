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

import os
import pathlib
import shutil
import subprocess
import sys

import ddt
import fixtures
import testtools

from nova_accel.privileged import fabric_library

#: It says on its errors what it is asked, in the layout of nv_fm_types.h.
_LIBRARY = r'''
#include <stdio.h>
#include <stdlib.h>
struct connection {
    unsigned version; char address[256]; unsigned timeout; unsigned is_unix;
    unsigned type;
};
struct function { unsigned domain, bus, device, function; };
static int status(const char *name) {
    const char *value = getenv(name);
    return value ? atoi(value) : 0;
}
int fmLibInit(void) { return status("INIT"); }
int fmLibShutdown(void) { fprintf(stderr, "shutdown\n"); return 0; }
int fmConnect(struct connection *given, void **handle) {
    unsigned newest = status("NEWEST") ? status("NEWEST") : 2;
    if (given->version >> 24 != newest) return -6;
    if ((given->version & 0xffffff) != (newest == 2 ? 272 : 268)) return -1;
    fprintf(stderr, "connect %s %u %u\n", given->address, given->is_unix,
            newest == 2 ? given->type : 0);
    *handle = (void *)0x123456789abcdef0;
    return status("CONNECT");
}
int fmDisconnect(void *handle) {
    fprintf(stderr, "disconnect %p\n", handle);
    return 0;
}
int fmActivateFabricPartitionWithVFs(
        void *handle, unsigned id, struct function *list, unsigned count) {
    fprintf(stderr, "activate %p %u:", handle, id);
    for (unsigned i = 0; i < count; i++)
        fprintf(stderr, " %x.%x.%x.%x", list[i].domain, list[i].bus,
                list[i].device, list[i].function);
    fprintf(stderr, "\n");
    return status("ACTIVATE");
}
'''


@ddt.ddt
class TestFabricLibrary(testtools.TestCase):
    def setUp(self):
        super().setUp()
        compiler = shutil.which('cc')
        if compiler is None:
            self.skipTest('there is no C compiler')
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (directory / 'nvfm.c').write_text(_LIBRARY)
        self.library = directory / 'libnvfm.so.1'
        subprocess.run(
            [
                compiler,
                '-shared',
                '-fPIC',
                '-o',
                self.library,
                directory / 'nvfm.c',
            ],
            check=True,
        )

    def run_with(self, endpoint='127.0.0.1:6666', **environment):
        done = subprocess.run(
            [
                sys.executable,
                '-I',
                fabric_library.__file__,
                self.library,
                endpoint,
                '3',
                '0000:1b:00.4',
                '00012:3d:01.7',
            ],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr.splitlines()

    def test_all_functions_in_their_order(self):
        self.assertEqual(
            (
                0,
                '',
                [
                    'connect 127.0.0.1:6666 0 1',
                    'activate 0x123456789abcdef0 3: 0.1b.0.4 12.3d.1.7',
                    'disconnect 0x123456789abcdef0',
                    'shutdown',
                ],
            ),
            self.run_with(),
        )

    def test_a_socket(self):
        self.assertEqual(
            'connect /run/fm/socket 1 2', self.run_with('/run/fm/socket')[2][0]
        )

    def test_an_older_library(self):
        status, _output, calls = self.run_with(NEWEST='1')
        self.assertEqual(0, status)
        self.assertEqual('connect 127.0.0.1:6666 0 0', calls[0])

    @ddt.data(
        ('INIT', 'fmLibInit', 0),
        ('CONNECT', 'fmConnect', 2),
        ('ACTIVATE', 'fmActivateFabricPartitionWithVFs', 4),
    )
    @ddt.unpack
    def test_refusals(self, step, name, calls):
        status, output, done = self.run_with(**{step: '-7'})
        self.assertEqual(249, status)
        self.assertEqual(f'{name} returned -7\n', output)
        self.assertEqual(calls, len(done))

    def test_a_library_that_is_too_new(self):
        status, output, _calls = self.run_with(NEWEST='3')
        self.assertEqual(250, status)
        self.assertEqual('fmConnect returned -6\n', output)
