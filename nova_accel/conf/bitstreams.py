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

from nova_accel import root_options

GROUP = 'nova_accel'

#: Seconds after which a silent Glance counts as away.
GLANCE_TIMEOUT_S = 60

OPTS = [
    *root_options.BITSTREAM_OPTS,
    cfg.IntOpt(
        'bitstream_cache_size_mb',
        default=10240,
        min=1,
        help=(
            'The size of the cache of bitstreams in MiB. When the cache is '
            'full, the least recently used bitstreams are removed, but none '
            'that is being programmed.'
        ),
    ),
    cfg.IntOpt(
        'bitstream_max_size_mb',
        default=1024,
        min=1,
        help=(
            'The largest bitstream, in MiB, that this host fetches. It has '
            'to fit into the cache, see bitstream_cache_size_mb.'
        ),
    ),
    cfg.IntOpt(
        'bitstream_fetch_timeout_s',
        default=600,
        min=1,
        help=(
            'Seconds that the download of a bitstream may take. The time is '
            'checked whenever data arrives. If no data arrives at all, '
            '``[glance] timeout`` ends the download; on a host with this '
            'driver its default is 60.'
        ),
    ),
    cfg.StrOpt(
        'bitstream_signatures',
        default='if_present',
        choices=[
            ('off', 'Signatures are not verified.'),
            (
                'if_present',
                'A bitstream without a signature may be loaded, '
                'but not one with a wrong signature.',
            ),
            (
                'required',
                'Only bitstreams of the operator (see '
                'bitstream_projects) with a correct signature may '
                'be loaded.',
            ),
        ],
        help="""
Whether bitstreams need signatures. A bitstream has the signature of its Glance
image, the property ``img_signature`` and three more. It is verified each time
that a bitstream is about to be loaded, also from the cache. The image names
the certificate, which the key manager (``[key_manager]``) must have.

A correct signature only proves that somebody with a certificate in the key
manager has signed the bitstream. Name the certificates that you trust in
``bitstream_trusted_certificates``.
""",
    ),
    cfg.ListOpt(
        'bitstream_projects',
        default=[],
        help="""
The ids of the projects whose images in Glance are the operator's bitstreams.
Public images are, too, because Glance lets only administrators publish images.

The functions of the operator's bitstreams (``function_uuid``,
``function_name``) are believed for everybody. They become traits in Placement,
and servers of all projects can ask for them. A bitstream of any other project
is found by its function only in its own project, and never gives a trait. It
is refused with ``bitstream_signatures = required``, because a signature covers
the bytes but not the properties of the image. Set the same on all compute
hosts.
""",
    ),
    cfg.ListOpt(
        'bitstream_trusted_certificates',
        default=[],
        help=(
            'The ids, in the key manager, of the certificates of trusted '
            'issuers: those that issue the certificates with which '
            'bitstreams are signed, and all intermediate ones. If the list '
            'is empty, ``[glance] default_trusted_certificate_ids`` is used '
            'if ``[glance] enable_certificate_validation`` is true; '
            'otherwise the issuer is not checked.'
        ),
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    conf.register_opts(OPTS, group=GROUP)
    # Without a timeout, a silent Glance would block this request for ever, and
    # with it all others for the same bitstream.
    conf.set_default('timeout', GLANCE_TIMEOUT_S, 'glance')


def list_opts() -> dict[str, list[cfg.Opt]]:
    return {GROUP: OPTS}
