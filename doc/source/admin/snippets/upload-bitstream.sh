openstack image create matrix-multiplication \
    --file matrix.gbs --disk-format raw --container-format bare \
    --tag FPGA \
    --property vendor=Intel \
    --property board="PAC Arria10" \
    --property region_uuid=9926ab6d-6c92-5a68-aabc-a7d84c545738 \
    --property function_uuid=d8424dc4-a4a3-c413-f89e-433683f9040b \
    --property function_name=matrix-multiplication
