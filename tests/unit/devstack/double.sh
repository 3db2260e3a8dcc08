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
# What the plugin needs of DevStack, in the files of a temporary directory.
# With DEVSTACK_DIR, a checkout of DevStack, its own functions write the files.

STACK_USER=$(id -un)
TOP_DIR=${DEVSTACK_DIR:-}
ENABLED_SERVICES=${ENABLED_SERVICES:-n-api,n-sch,n-cpu,placement-api,tempest}
VIRT_DRIVER=${VIRT_DRIVER:-libvirt}
SERVICE_HOST=192.0.2.1
SERVICE_LISTEN_ADDRESS=0.0.0.0
NOVA_SERVICE_PROTOCOL=http
NOVA_SERVICE_HOST=$SERVICE_HOST
REGION_NAME=RegionOne
API_WORKERS=3
SERVICE_TIMEOUT=60
KEYSTONE_SERVICE_URI=http://$SERVICE_HOST/identity
SERVICE_PASSWORD=secret
SERVICE_PROJECT_NAME=service
SERVICE_DOMAIN_NAME=Default

# Where Nova's programs look beside /etc/nova.
NOVA_CONF_DIR=$HOME/.nova
NOVA_CONF=$NOVA_CONF_DIR/nova.conf
NOVA_UWSGI_CONF=$NOVA_CONF_DIR/nova-api-uwsgi.ini
PLACEMENT_CONF=$HOME/placement.conf
TEMPEST_CONFIG=$HOME/tempest.conf
NOVA_ACCEL_CONF_DIR=$HOME/nova_accel

if [[ -n "$TOP_DIR" ]]; then
    source "$TOP_DIR/functions-common"
    source "$TOP_DIR/inc/ini-config"
    source <(sed -n '/^function configure_keystoneauth /,/^}/p' \
        "$TOP_DIR/lib/keystone")
else
    INI=(python3 -I -S "$(dirname "${BASH_SOURCE[0]}")/ini.py")
    function iniset { "${INI[@]}" set "$@"; }
    function iniset_multiline { "${INI[@]}" set_multiline "$@"; }
    function iniadd_literal { "${INI[@]}" add_literal "$@"; }
    function iniget { "${INI[@]}" get "$@"; }
    function iniget_multiline { "${INI[@]}" get "$@"; }
    function inidelete { "${INI[@]}" delete "$@"; }

    function trueorfalse {
        case ${!2:-} in
            1 | [yY]es | YES | [tT]rue | TRUE) echo True ;;
            0 | [nN]o | NO | [fF]alse | FALSE) echo False ;;
            *) echo "$1" ;;
        esac
    }

    function is_service_enabled {
        local service
        for service in "$@"; do
            [[ ",$ENABLED_SERVICES," == *",$service,"* ]] && return 0
        done
        return 1
    }

    function enable_service {
        [[ ",${DISABLED_SERVICES:-}," == *",$1,"* ]] ||
            ENABLED_SERVICES+=",$1"
    }
    function define_plugin { :; }

    function configure_keystoneauth {
        iniset "$1" "$3" auth_type password
        iniset "$1" "$3" interface public
        iniset "$1" "$3" auth_url "$KEYSTONE_SERVICE_URI"
        iniset "$1" "$3" username "$2"
        iniset "$1" "$3" password "$SERVICE_PASSWORD"
        iniset "$1" "$3" user_domain_name "$SERVICE_DOMAIN_NAME"
        iniset "$1" "$3" project_name "$SERVICE_PROJECT_NAME"
        iniset "$1" "$3" project_domain_name "$SERVICE_DOMAIN_NAME"
    }
fi

# Nothing outside of the directory is changed. What would be is written down.
function say { printf '%s\n' "$*" >>"$HOME/calls"; }
function sudo { "$@"; }
function die {
    shift
    echo "$*" >&2
    exit 1
}
function echo_summary { :; }
function async_wait { say async_wait "$@"; }
function setup_develop { say setup_develop "$@"; }
function recreate_database { say recreate_database "$@"; }
function run_process { say run_process "$@"; }
function wait_for_service { say wait_for_service "$@"; }
function stop_process { say stop_process "$@"; }
function get_or_create_service { say service "$@"; }
function get_or_create_endpoint { say endpoint "$@"; }
function database_connection_url { echo "sqlite:///$HOME/$1.sqlite"; }
function which { echo "/usr/bin/$1"; }

# What DevStack itself has written before the plugin does.
function write_devstacks_files {
    mkdir -p "$NOVA_CONF_DIR/rootwrap.d"
    iniset "$NOVA_CONF" DEFAULT compute_driver libvirt.LibvirtDriver
    iniset "$NOVA_CONF" DEFAULT state_path "$HOME/state"
    iniset "$NOVA_CONF" filter_scheduler enabled_filters \
        ComputeFilter,SameHostFilter
    iniset "$NOVA_CONF" keystone_authtoken www_authenticate_uri \
        "$KEYSTONE_SERVICE_URI"
    iniset "$NOVA_UWSGI_CONF" uwsgi module nova.wsgi.osapi_compute:application
    iniset "$NOVA_UWSGI_CONF" uwsgi buffer-size 65535
    iniset "$PLACEMENT_CONF" DEFAULT debug True
}

# devstack PLUGIN MODE [PHASE]...
function devstack {
    local directory=$1 mode=$2 phase
    shift 2
    source "$directory/settings"
    for phase in "${@:-}"; do
        source "$directory/plugin.sh" "$mode" $phase
    done
}
