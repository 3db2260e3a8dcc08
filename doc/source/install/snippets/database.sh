mysql -e "CREATE DATABASE nova_accel CHARACTER SET utf8mb4"
mysql -e "CREATE USER nova_accel IDENTIFIED BY 'PASSWORD'"
mysql -e "GRANT ALL ON nova_accel.* TO nova_accel"
