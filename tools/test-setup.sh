#!/usr/bin/env bash
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
# Zuul's role test-setup runs it before the tests: a user who may create
# databases, on each server that bindep.txt names for tests.
set -eu
user=openstack_citest
sudo systemctl start mariadb postgresql
sudo mariadb <<SQL
CREATE USER IF NOT EXISTS '$user'@'%' IDENTIFIED BY '$user';
GRANT ALL PRIVILEGES ON *.* TO '$user'@'%';
SQL
sudo -u postgres psql --quiet --set=ON_ERROR_STOP=1 <<SQL
DROP ROLE IF EXISTS $user;
CREATE ROLE $user LOGIN CREATEDB PASSWORD '$user';
SQL
