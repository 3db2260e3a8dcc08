openstack service create --name nova-accel accelerator
openstack endpoint create --region RegionOne accelerator public \
    https://compute.example.com/accelerator/v2
openstack endpoint create --region RegionOne accelerator internal \
    http://controller.example.com:6666/accelerator/v2
