nova-accel-manage db sync
nova-accel-manage db version
