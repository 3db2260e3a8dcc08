# shellcheck shell=bash
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
# Sourced by DevStack with a mode and a phase: installs nova_accel into the
# Python of Nova's services, and configures them as the installation guide
# says. The contract is https://docs.openstack.org/devstack/latest/plugins.html

NOVA_ACCEL_PASTE=$NOVA_ACCEL_CONF_DIR/api-paste.ini
NOVA_ACCEL_UWSGI_CONF=$NOVA_ACCEL_CONF_DIR/nova-accel-api-uwsgi.ini
# In a file of its own: DevStack starts nova-compute with a copy of nova.conf.
NOVA_ACCEL_DATABASE_CONF=$NOVA_ACCEL_CONF_DIR/database.conf

# The programs that read that file, beside the API.
NOVA_ACCEL_DATABASE_PROGRAMS="nova-scheduler nova-accel-manage
    nova-accel-status"

# Where Nova's services find the pool.
NOVA_ACCEL_API_URL=http://$NOVA_ACCEL_API_HOST:$NOVA_ACCEL_API_PORT/accelerator

# What the WSGI servers of the API are told.
NOVA_ACCEL_CONFIG_FILES="$NOVA_ACCEL_PASTE;nova.conf;$NOVA_ACCEL_DATABASE_CONF"

function check_nova_accel {
    if [[ "$VIRT_DRIVER" != libvirt ]] && is_service_enabled n-cpu; then
        die $LINENO "nova_accel works with VIRT_DRIVER=libvirt alone, and it" \
            "is $VIRT_DRIVER"
    fi
    if is_service_enabled cyborg; then
        die $LINENO "Cyborg and nova_accel have the same service type:" \
            "remove the plugin of one of them"
    fi
}

function install_nova_accel {
    setup_develop "$NOVA_ACCEL_DIR" services
}

# [filter_scheduler] of nova.conf: what is loaded already, and ours.
function configure_nova_accel_scheduler {
    local section=filter_scheduler available enabled weights
    available=$(iniget_multiline "$NOVA_CONF" $section available_filters)
    enabled=$(iniget "$NOVA_CONF" $section enabled_filters)
    weights=$(iniget "$NOVA_CONF" $section weight_classes)
    # shellcheck disable=SC2086 # each is a value
    iniset_multiline "$NOVA_CONF" $section available_filters \
        ${available:-nova.scheduler.filters.all_filters} \
        nova_accel.scheduler.candidate_filter.AcceleratorFilter
    iniset "$NOVA_CONF" $section enabled_filters \
        "${enabled:-$NOVA_FILTERS},AcceleratorFilter"
    iniset "$NOVA_CONF" $section weight_classes \
        "${weights:-nova.scheduler.weights.all_weighers},nova_accel.scheduler.weigher.AcceleratorWeigher"
    iniset "$NOVA_CONF" nova_accel cyborg_compatible \
        "$NOVA_ACCEL_CYBORG_COMPATIBLE"
}

function configure_nova_accel_compute {
    local lines line add=iniset
    iniset "$NOVA_CONF" DEFAULT compute_driver nova_accel.LibvirtDriver
    configure_keystoneauth "$NOVA_CONF" nova nova_accel_client
    # Here Nova reads valid_interfaces in its place.
    inidelete "$NOVA_CONF" nova_accel_client interface
    iniset "$NOVA_CONF" nova_accel_client valid_interfaces internal
    iniset "$NOVA_CONF" nova_accel_client region_name "$REGION_NAME"
    mapfile -t lines <<<"$NOVA_ACCEL_DEVICE_SPEC"
    for line in "${lines[@]}"; do
        [[ -z "${line// /}" ]] && continue
        $add "$NOVA_CONF" nova_accel device_spec "$line"
        # It needs the section, which iniset has made.
        add=iniadd_literal
    done
    sudo install -m 0644 \
        "$NOVA_ACCEL_DIR/etc/nova_accel/rootwrap.d/nova_accel.filters" \
        "$NOVA_CONF_DIR/rootwrap.d/nova_accel.filters"
}

function configure_nova_accel_placement {
    iniset "$PLACEMENT_CONF" placement randomize_allocation_candidates true
    iniset "$PLACEMENT_CONF" placement \
        allocation_candidates_generation_strategy breadth-first
    iniset "$PLACEMENT_CONF" placement max_allocation_candidates 100000
}

function configure_nova_accel_database {
    local program
    rm -f "$NOVA_ACCEL_DATABASE_CONF"
    iniset "$NOVA_ACCEL_DATABASE_CONF" nova_accel_database connection \
        "$(database_connection_url nova_accel)"
    for program in $NOVA_ACCEL_DATABASE_PROGRAMS; do
        mkdir -p "$NOVA_CONF_DIR/$program.conf.d"
        ln -sf "$NOVA_ACCEL_DATABASE_CONF" \
            "$NOVA_CONF_DIR/$program.conf.d/nova_accel.conf"
    done
}

# The paste file goes to nova-api and to the pool.
function configure_nova_accel_api {
    local installed=$NOVA_ACCEL_DIR/etc/nova_accel
    cp "$installed/api-paste.ini" "$NOVA_ACCEL_PASTE"
    iniset "$NOVA_UWSGI_CONF" uwsgi env \
        "OS_NOVA_CONFIG_FILES=$NOVA_ACCEL_CONFIG_FILES"
    cp "$installed/nova-accel-api-uwsgi.ini" "$NOVA_ACCEL_UWSGI_CONF"
    iniset "$NOVA_ACCEL_UWSGI_CONF" uwsgi env \
        "OS_NOVA_CONFIG_FILES=$NOVA_ACCEL_CONFIG_FILES"
    iniset "$NOVA_ACCEL_UWSGI_CONF" uwsgi http \
        "$NOVA_ACCEL_API_LISTEN_ADDRESS:$NOVA_ACCEL_API_PORT"
    # DevStack's units make no directory below /run.
    mkdir -p -m 0700 "$NOVA_ACCEL_CONF_DIR/sockets"
    iniset "$NOVA_ACCEL_UWSGI_CONF" uwsgi sockets "$NOVA_ACCEL_CONF_DIR/sockets"
    iniset "$NOVA_ACCEL_UWSGI_CONF" uwsgi processes "$API_WORKERS"
    # Distributions have them in packages of their own.
    iniset "$NOVA_ACCEL_UWSGI_CONF" uwsgi plugins http,fastrouter,python3
}

function configure_nova_accel {
    # It writes nova.conf, too, in the background.
    async_wait configure_neutron_nova
    sudo install -d -o "$STACK_USER" "$NOVA_ACCEL_CONF_DIR"
    if is_service_enabled n-sch; then
        configure_nova_accel_scheduler
    fi
    if is_service_enabled n-cpu; then
        configure_nova_accel_compute
    fi
    if is_service_enabled placement-api; then
        configure_nova_accel_placement
    fi
    if is_service_enabled nova-accel-api; then
        configure_nova_accel_database
        configure_nova_accel_api
    fi
}

function create_nova_accel_endpoints {
    local public
    public=$NOVA_SERVICE_PROTOCOL://$NOVA_SERVICE_HOST/compute/accelerator/v2
    get_or_create_service nova-accel accelerator "Accelerators of Nova"
    get_or_create_endpoint accelerator "$REGION_NAME" \
        "$public" "$public" "$NOVA_ACCEL_API_URL/v2"
}

function init_nova_accel {
    recreate_database nova_accel
    "$NOVA_BIN_DIR/nova-accel-manage" --config-file "$NOVA_CONF" \
        --config-file "$NOVA_ACCEL_DATABASE_CONF" db sync
}

function start_nova_accel {
    run_process nova-accel-api \
        "$(which uwsgi) --procname-prefix nova-accel-api --ini $NOVA_ACCEL_UWSGI_CONF"
    wait_for_service "$SERVICE_TIMEOUT" "$NOVA_ACCEL_API_URL" ||
        die $LINENO "nova-accel-api did not start"
}

function configure_nova_accel_tempest {
    iniset "$TEMPEST_CONFIG" service_available cyborg True
}

function cleanup_nova_accel {
    local program
    for program in $NOVA_ACCEL_DATABASE_PROGRAMS; do
        rm -f "$NOVA_CONF_DIR/$program.conf.d/nova_accel.conf"
    done
    sudo rm -rf "$NOVA_ACCEL_CONF_DIR"
    sudo rm -f "$NOVA_CONF_DIR/rootwrap.d/nova_accel.filters"
}

case "$1/${2:-}" in
    stack/pre-install)
        check_nova_accel
        ;;
    stack/install)
        echo_summary "Installing nova_accel"
        install_nova_accel
        ;;
    # Before DevStack starts Nova's services.
    stack/post-config)
        echo_summary "Configuring nova_accel"
        configure_nova_accel
        if is_service_enabled nova-accel-api; then
            init_nova_accel
            create_nova_accel_endpoints
            start_nova_accel
        fi
        ;;
    stack/test-config)
        if is_service_enabled tempest; then
            configure_nova_accel_tempest
        fi
        ;;
    unstack/*)
        stop_process nova-accel-api
        ;;
    clean/*)
        cleanup_nova_accel
        ;;
esac
