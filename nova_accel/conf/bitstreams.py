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

"""``[nova_accel]`` of nova-compute: bitstreams, cached and trusted."""

from oslo_config import cfg

GROUP = 'nova_accel'

#: Seconds after which a silent Glance counts as away.
GLANCE_TIMEOUT_S = 60

OPTS = [
    cfg.StrOpt(
        'bitstream_cache_directory',
        default='$state_path/nova_accel_bitstreams',
        help='Where this host keeps bitstreams that it has fetched from '
             'Glance: a directory for nova_accel alone, which is made if it '
             'is not there. Everything in it can be removed while '
             'nova-compute is stopped.'),
    cfg.IntOpt(
        'bitstream_cache_size_mb', default=10240, min=1,
        help='Size in MiB of the cache of bitstreams. When a further one is '
             'fetched, those make room that were not used for the longest '
             'time; one that is being programmed never does.'),
    cfg.IntOpt(
        'bitstream_max_size_mb', default=1024, min=1,
        help='The largest bitstream, in MiB, that this host fetches. It has '
             'to fit into the cache, see bitstream_cache_size_mb.'),
    cfg.IntOpt(
        'bitstream_fetch_timeout_s', default=600, min=1,
        help='Seconds that the download of a bitstream may take. It is '
             'looked at whenever data arrives; that no data arrives at all '
             'is ended by ``[glance] timeout``, which on a host with this '
             'driver is 60 unless it is set.'),
    cfg.StrOpt(
        'bitstream_signatures', default='if_present',
        choices=[
            ('off', 'Signatures are not looked at.'),
            ('if_present', 'A bitstream without a signature may be loaded; '
                           'one with a signature that does not verify may '
                           'not.'),
            ('required', 'Only bitstreams of the operator (see '
                         'bitstream_projects) with a signature that '
                         'verifies may be loaded.')],
        help="""
What is asked of the signatures of bitstreams, which are those of Glance images
(the properties ``img_signature`` and three more). They are verified each time
that a bitstream is about to be loaded, also from the cache, with the
certificate that the image names and the key manager (``[key_manager]``) has.

By itself a signature says that somebody with a certificate in the key manager
has signed the bitstream. Name the certificates that you trust in
``bitstream_trusted_certificates`` to say who.
"""),
    cfg.ListOpt(
        'bitstream_projects', default=[],
        help="""
The ids of the projects whose images in Glance are the operator's bitstreams.
Public images are, too, for Glance has only administrators publish images.

What the operator's bitstreams say that they do (``function_uuid``,
``function_name``) is believed for everybody: it becomes traits in Placement,
and they are found by a function. A bitstream of any other project is found by
a function for its own project alone, never gives a trait, and is refused with
``bitstream_signatures = required``, since a signature is about the bytes and
not about what the image says. Set the same on all compute hosts.
"""),
    cfg.ListOpt(
        'bitstream_trusted_certificates', default=[],
        help='The ids, in the key manager, of the certificates that are '
             'trusted to issue those with which bitstreams are signed, and '
             'of all between them. With an empty list they are those of '
             '``[glance] default_trusted_certificate_ids`` if '
             '``enable_certificate_validation`` there is true, and otherwise '
             'the issuer is not asked for.'),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)
    # Without a timeout, a silent Glance would block this request for ever, and
    # with it all others for the same bitstream.
    conf.set_default('timeout', GLANCE_TIMEOUT_S, 'glance')


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
