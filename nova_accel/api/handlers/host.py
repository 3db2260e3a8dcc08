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

"""``/hosts``: the reports of nova-compute about its devices."""

import webob

from nova_accel import exceptions
from nova_accel.api.compute import region_stocking
from nova_accel.api.handlers import owner_news
from nova_accel.api.handlers import usage
from nova_accel.api.http import request
from nova_accel.api.notifications import programming_notification
from nova_accel.db import cleaning_results
from nova_accel.db import host as host_db
from nova_accel.db import programming as programming_db
from nova_accel.db import provisioning
from nova_accel.model import host_contract
from nova_accel.model.devices import hardware
from nova_accel.model.fpga import programming_record


def report(req: webob.Request) -> webob.Response:
    context = request.authorize(req)
    hostname = request.path_hostname(req)
    body = request.json_body(req)
    hardware.check_derived(
        hostname, body['node_uuid'], body.get('devices', ())
    )
    orders, turned = host_db.report(
        hostname=hostname,
        node_uuid=body['node_uuid'],
        service_host=body['service_host'],
        devices=body.get('devices'),
        digest=body['digest'],
        orders_seen=body.get('orders_seen'),
        contract=int(body[host_contract.KEY]),
        # JSON Schema takes 1.0 for an integer.
        part=None if 'part' not in body else int(body['part']),
        others=body.get('others'),
        findings=body.get('findings', ()),
        orders_published=body.get('orders_published'),
    )
    owner_news.tell(context, turned)
    owner_news.look_for_silence(context)
    usage.forget_old()
    region_stocking.order()
    if orders is None:
        return webob.Response(status=204, content_type=None)
    return webob.Response(
        json_body={'orders': region_stocking.added(hostname, orders).to_dict()}
    )


def set_cleaning(req: webob.Request) -> webob.Response:
    """Note how the ordered cleaning of attach handles has ended."""
    request.authorize(req)
    hostname = request.path_hostname(req)
    body = request.json_body(req)
    both = body['failed'].keys() & set(body['cleaned'])
    if both:
        raise exceptions.InvalidRequest(
            f'both cleaned and failed: {", ".join(sorted(both))}'
        )
    cleaning_results.note(
        hostname, body['cleaned'], body['failed'], int(body['revision'])
    )
    return webob.Response(status=204, content_type=None)


def set_provisioning(req: webob.Request) -> webob.Response:
    """Note which ARQs have devices that the host makes again: all of them.

    nova-compute may wait for some of them. So it is told which are bound
    again, and which have failed.
    """
    request.authorize(req)
    hostname = request.path_hostname(req)
    body = request.json_body(req)
    changed = provisioning.replace(
        hostname, body['arqs'], body.get('failed', ())
    )
    if changed:
        from nova_accel.api.compute import bound_event

        bound_event.send(changed)
    return webob.Response(status=204, content_type=None)


def set_programming(req: webob.Request) -> webob.Response:
    """Note that the programming of a region has begun, or how it ended."""
    context = request.authorize(req)
    hostname = request.path_hostname(req)
    body = request.json_body(req)
    record = programming_record.from_report(
        request.path_uuid(req, 'uuid'), body
    )
    programming_db.note(hostname, record)
    programming_notification.send(context, hostname, record)
    return webob.Response(status=204, content_type=None)
