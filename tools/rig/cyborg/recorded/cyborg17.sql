CREATE TABLE `alembic_version` (
  `version_num` varchar(32) NOT NULL,
  PRIMARY KEY (`version_num`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
INSERT INTO `alembic_version` VALUES ('b47c8f2d1e3a');
CREATE TABLE `attach_handles` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `uuid` varchar(36) NOT NULL,
  `deployable_id` int(11) NOT NULL,
  `cpid_id` int(11) NOT NULL,
  `in_use` tinyint(1) DEFAULT NULL,
  `attach_type` enum('PCI','MDEV','TEST_PCI') NOT NULL,
  `attach_info` varchar(255) NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `uuid` (`uuid`),
  KEY `attach_handles_deployable_id_idx` (`deployable_id`),
  KEY `attach_handles_cpid_id_idx` (`cpid_id`),
  CONSTRAINT `attach_handles_ibfk_1` FOREIGN KEY (`deployable_id`) REFERENCES `deployables` (`id`),
  CONSTRAINT `attach_handles_ibfk_2` FOREIGN KEY (`cpid_id`) REFERENCES `controlpath_ids` (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=81 DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',1,'bdea884c-bb4c-4005-87a8-601bde78a293',1,1,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:55:00',2,'e2b5d335-8a3b-4b97-924e-e707feb763a9',1,1,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_1\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:55:00',3,'19225752-f440-4291-b430-db96a60278bb',1,1,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_2\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:55:00',4,'6a7c7d94-e0a3-42ad-8f2e-7d40ba5f6bd3',1,1,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_3\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:55:00',5,'bcecf232-0df1-4c53-b98e-e70550f1c5cc',1,1,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_4\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:55:00',6,'0d739943-5631-43f0-803f-0d98e49174e3',1,1,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_5\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:55:00',7,'75b3861f-4481-469b-9120-9740e653bc8f',1,1,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_6\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:55:00',8,'71775b80-8622-49f6-9930-2a85862ed982',1,1,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_7\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',9,'f2e42d0c-9518-455d-8d6d-07c4caa6035b',2,2,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',10,'fd7ccf81-51d5-4a5c-815a-ed9b80024a2d',3,2,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"1\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',11,'3794189b-f1a9-4c94-8cbd-2be8b7efbc14',4,2,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"2\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',12,'9a9c0eef-69a6-4461-8442-2cfa16266205',5,2,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"3\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',13,'1545dc51-7364-4e8d-b0b1-77f56c9618c9',6,2,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"4\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',14,'5cc15568-390d-4c29-8363-18d2799ab4e5',7,2,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"5\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',15,'1e6da5f6-a2f4-4562-9b50-b06e6c8524b9',8,2,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"6\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',16,'cb1906d3-a13f-4996-9060-fe4432ef80a5',9,2,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"7\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',17,'7b288269-ace6-4f98-b26c-4239855dc8c2',10,3,1,'PCI','{\"bus\": \"81\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',18,'616924c0-af30-4e81-90f9-8434283712d4',11,4,1,'PCI','{\"bus\": \"82\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',19,'fa0019e6-0685-45ff-b828-7e6cfd87b88e',12,5,1,'PCI','{\"bus\": \"83\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',20,'e5b9670c-fd2d-44ff-b40f-be8ee2878166',13,6,1,'PCI','{\"bus\": \"84\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:02',21,'d7a9d7df-bcd3-4e7f-8c1f-3212d1d65385',14,7,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:02',22,'7c761e02-ae22-4cdb-92fa-622cec2627bb',14,7,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_1\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:02',23,'8964ea92-64a1-4e11-b12f-fe2f6de44c1b',14,7,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_2\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:02',24,'23ab658b-2303-4ac5-aaa6-a9b53f89a8e6',14,7,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_3\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:03',25,'a7e644b1-bb9b-49a9-8718-8bf2986fe445',14,7,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_4\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:03',26,'9ec652a1-f88d-4f77-ba95-cf8ef3ab07dd',14,7,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_5\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:03',27,'d528a7a0-6f92-4383-bf79-15084e007234',14,7,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_6\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:03',28,'880a4029-df92-4e16-b85a-384a1dba5b2b',14,7,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_7\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:02',29,'cfb9fea7-69f8-434d-ae75-a788e555d431',15,8,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:02',30,'2d737b0d-ba9a-46d7-bd15-f10259096478',16,8,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"1\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:02',31,'ae426cd1-2ef0-4a07-b5ce-b08cba6ad7e7',17,8,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"2\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:02',32,'14ba3442-73fa-4f34-96f1-21db44cbcbdb',18,8,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"3\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:02',33,'a158cadb-79d7-4cd2-afc0-cb472578bc2c',19,8,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"4\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:02',34,'4d88b2b4-0274-48d3-9c0a-15e0eb983809',20,8,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"5\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:01',35,'c2625e5a-435a-4d1a-bbb1-d383f92564cc',21,8,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"6\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:01',36,'f9331e2b-232e-4047-8b7f-98973fb5c927',22,8,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"7\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:01',37,'0b854fb2-5b3a-4578-bb1e-ac600eb2af4a',23,9,1,'PCI','{\"bus\": \"81\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',38,'9a1e435e-d6da-42a4-930f-0060b333a205',24,10,1,'PCI','{\"bus\": \"82\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',39,'5365ea09-5aef-4e3d-b2f2-fa54f6ab79f4',25,11,1,'PCI','{\"bus\": \"83\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',40,'8b57945d-4979-4e3b-90ab-ba237cbaf611',26,12,1,'PCI','{\"bus\": \"84\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:05',41,'ad3739bc-f163-454e-8e3a-e57acccfe7d1',27,13,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:05',42,'1a26edf8-8ef5-4d77-8ef8-83916a024260',27,13,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_1\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:05',43,'85df9bfa-d5e4-4812-9a8c-273751a0a746',27,13,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_2\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:05',44,'9eedb3ca-6a65-4d88-8106-a3517195acc5',27,13,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_3\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:05',45,'b38aac36-e607-4920-9d4f-0fa388e69047',27,13,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_4\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:05',46,'8f2396bf-ac3c-49fc-9eea-1819e1596398',27,13,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_5\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:05',47,'83812977-7204-4457-bac5-efb1260e51c8',27,13,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_6\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:06',48,'e6b88336-6a6e-4a54-8ba1-ba11289635e7',27,13,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_7\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:05',49,'f4f3b998-fdcc-4f77-913c-cc80b2f97d11',28,14,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:05',50,'0aae9a20-583f-4d79-bc9b-2c529d049e0f',29,14,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"1\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:04',51,'d603ddbd-6b10-4887-99c0-652eb0f1b3b2',30,14,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"2\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:04',52,'625726b8-7ebf-422d-af2b-aadf16e8604a',31,14,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"3\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:04',53,'9221a92e-36b6-49d5-9aec-574faeea7b10',32,14,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"4\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:04',54,'1f0eb392-c3ed-45ee-bc32-d5545edb6c0b',33,14,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"5\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:04',55,'c3cc5c19-a995-4274-abce-f1b2865e2281',34,14,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"6\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:04',56,'8dc4f0a2-9104-452c-9c86-ca11e718234d',35,14,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"7\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:04',57,'4d068acd-5a8e-4895-aa38-c165605f7a43',36,15,1,'PCI','{\"bus\": \"81\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:04',58,'f41bdfa0-a2e8-467d-a208-63312ba2ad2d',37,16,1,'PCI','{\"bus\": \"82\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:04',59,'505d3997-5ae2-489d-b45a-15c68e87c877',38,17,1,'PCI','{\"bus\": \"83\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',60,'35510576-f9b5-486f-8bed-f595c357ba46',39,18,1,'PCI','{\"bus\": \"84\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:07',61,'9b6dab55-a374-43fc-99d1-2de7a69720e9',40,19,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:07',62,'1f10f57c-ac29-4310-a266-9c53df113cda',40,19,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_1\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:08',63,'9a587ebb-5774-475a-9a09-c83ef5980e3c',40,19,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_2\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:08',64,'cfd0c9ba-3828-4d44-b209-db991430c16b',40,19,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_3\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:08',65,'8bace2f6-7edf-4e9f-9b2a-45b8f0aeda88',40,19,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_4\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:08',66,'4dbb765f-1a57-4599-a21a-ed44267d91f7',40,19,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_5\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:08',67,'1413b6ae-a0c3-454e-9249-3b97acc7a9ba',40,19,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_6\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:08',68,'a0d239aa-86e5-4cad-aeda-520261530f34',40,19,1,'MDEV','{\"asked_type\": \"nvidia-223\", \"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\", \"vgpu_mark\": \"nvidia-223_7\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:07',69,'f451a695-8c76-4593-8205-a57d7f1a2760',41,20,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:07',70,'61d58815-0001-4880-8e11-889a6ac07d5c',42,20,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"1\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:07',71,'fd09fe0d-4a08-4852-b5f1-4888f4cdedf9',43,20,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"2\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:07',72,'01d2295f-834e-45e4-afa1-67704c10dfa5',44,20,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"3\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:07',73,'a5c32019-d65c-4fb9-8adf-a95512887d12',45,20,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"4\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:07',74,'f699f800-b095-4911-bbe7-bec515d620b4',46,20,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"5\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:07',75,'83264783-b244-42c7-91fc-5016b798d1d0',47,20,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"6\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',76,'eeed0369-0e5b-4b02-acce-1cd1113a51b4',48,20,1,'PCI','{\"bus\": \"3d\", \"device\": \"01\", \"domain\": \"0000\", \"function\": \"7\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',77,'af332149-c624-4afb-a8b6-95840e96e079',49,21,1,'PCI','{\"bus\": \"81\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',78,'0c34f566-bc83-4907-989a-d1f1ff8a1ade',50,22,1,'PCI','{\"bus\": \"82\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',79,'57e727c5-ad60-4057-847e-ba5e146872e6',51,23,1,'PCI','{\"bus\": \"83\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `attach_handles` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',80,'09ce3cd4-2ce1-46b5-973c-9ca115b6a6d4',52,24,1,'PCI','{\"bus\": \"84\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
CREATE TABLE `attributes` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `uuid` varchar(36) NOT NULL,
  `deployable_id` int(11) NOT NULL,
  `key` text NOT NULL,
  `value` text NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `uuid` (`uuid`),
  KEY `ix_attributes_deployable_id` (`deployable_id`),
  CONSTRAINT `attributes_ibfk_1` FOREIGN KEY (`deployable_id`) REFERENCES `deployables` (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=93 DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,1,'1e9c328b-ecd5-4900-8bb5-a2f8cef24c9a',1,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,2,'b283741a-5135-4959-9ffc-b37f35654699',1,'trait1','CUSTOM_NVIDIA_1EB8_T4_2B');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,3,'ac369759-40a4-4882-9c85-d0f7efe3bacb',1,'rc','VGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,4,'ec7f6f45-018a-425c-8561-e4f729090216',2,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,5,'9be3bbee-87c1-49e7-87b5-3909f44a1768',3,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,6,'3b22da5f-b993-4e1b-a608-e13c41fe04ad',4,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,7,'04991a3c-1397-4746-8fea-fe8fd1115832',5,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,8,'42fcc2a8-4cbb-42a8-a2dc-30414b6f103b',6,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,9,'9c365190-376b-4a02-84e0-568de89d7745',7,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,10,'15c51b4d-8325-4d1b-acc9-e7dc2151b4c0',8,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,11,'50e53b27-7d68-42b0-989e-fa2c3add7e60',9,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,12,'7ebe3742-baea-4bbb-96ba-28cc0235392a',10,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,13,'164acae5-ad4d-4414-9e23-f74ffc555be4',10,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,14,'1200ad71-63ee-4b3c-a139-08432fa2f8b6',10,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,15,'7d1eea58-0803-41e1-989e-784d567c3eab',11,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,16,'f85b5105-e6fa-40a3-b0ec-2443ae8f03a2',11,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,17,'c637bc9c-8f86-48ff-afda-4d75ff5e2725',11,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,18,'d90e80cc-9ff7-4bfb-b8cc-72273bf8cbc1',12,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,19,'f76cd848-c332-4f57-bf6f-5547bee83e0e',12,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,20,'83a3e2d1-2dee-459f-99b9-40a12f4fa8d2',12,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,21,'40df27a8-5aac-4cb2-873d-e4b95023b671',13,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,22,'ec279c05-e832-4a5b-b4f2-a4fff80d31ec',13,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:54:58',NULL,23,'1e567813-f4ef-4f0a-b507-e877ea52dc20',13,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,24,'3cf8e4f1-f1b6-4337-946e-4e74ca498831',14,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,25,'e1594e72-24d7-4585-9dd9-68d7e8216c47',14,'trait1','CUSTOM_NVIDIA_1EB8_T4_2B');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,26,'54472c97-d287-431a-a89e-c16c38e31dc8',14,'rc','VGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,27,'9904ae21-b081-48fb-acbe-a200846c7359',15,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,28,'72931a5d-f8eb-4635-88eb-58dd29cdda0c',16,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,29,'a8f568a4-2951-4372-8432-60e44773e133',17,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,30,'e818b267-9038-4b27-954f-ab97a67152a4',18,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,31,'d623fb51-f359-4f0e-b803-63f6c6e28b1c',19,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,32,'e5139f1b-985c-4560-9970-8a75bf9bd847',20,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,33,'65ba12bf-ef3b-4c11-ba3d-67b279c712a9',21,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,34,'b44d6390-cd3c-4b1d-b190-cf911ab18046',22,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,35,'2a3cb020-105d-4301-ba67-afaac89dda15',23,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,36,'7b9ebc6c-d625-4bdb-a4de-f21b711ab738',23,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,37,'35756caa-a7f9-4d08-8826-62f59820fdb2',23,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,38,'b82e8e6b-c3ef-4d8a-b2e4-fe87288a73e9',24,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:00',NULL,39,'b6ada4cb-e1aa-4ad6-99ef-48ed351726f3',24,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:01',NULL,40,'2bac45bc-ab65-4009-95b5-a85764df46dd',24,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:01',NULL,41,'e69a60eb-dc1a-4961-8f14-6624ac886731',25,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:01',NULL,42,'f58fb5f6-84c0-471e-9611-ceda70aeeec4',25,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:01',NULL,43,'50dd7fd3-c909-4e3e-880c-0b317f7042b9',25,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:01',NULL,44,'0a9b52cf-b726-4bf7-bc2c-e607eddcf012',26,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:01',NULL,45,'90304e6f-a130-4abc-9208-d4ef5d7bdba7',26,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:01',NULL,46,'01257eb2-1376-4086-a5c7-8a5f0b44cca8',26,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,47,'5f3259b2-e7c9-4d6b-879c-b08884380aee',27,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,48,'2dee08e9-a5da-4f55-a653-d424ec2aedd0',27,'trait1','CUSTOM_NVIDIA_1EB8_T4_2B');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,49,'b1b02490-f5d0-4441-8dc9-dafc1b6c7638',27,'rc','VGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,50,'3ca9a8cb-7fad-441d-9222-4785c335b46c',28,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,51,'a6f10a04-a779-4506-911d-8839e8a5d4d9',29,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,52,'0c5aef0e-1c59-4ec3-bb88-20a6fd3a90d4',30,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,53,'983326fc-f288-4da6-84d2-9185af59d81f',31,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,54,'1800ea6b-1512-465e-a637-5416fe0c431e',32,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,55,'dd7baca6-f7d9-495c-93dc-ff239ce5b8d6',33,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,56,'4aae896c-5b17-467d-8ce8-2a754719927d',34,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,57,'96e86632-f65c-4318-8d8e-45c83608b607',35,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,58,'29a25e8e-8f60-47f9-97d5-e83bf1073674',36,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,59,'3010e808-9144-4658-a270-16cae0f9fd33',36,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,60,'5d7a317f-706f-494a-a261-372dd922970e',36,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,61,'0016eee8-8e9a-4609-8a0e-4c8d0db0b119',37,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,62,'2a58b627-cd27-4653-803f-08f24fd79290',37,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,63,'145c3712-9b4e-44c6-b8e1-7b83c0c060c8',37,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,64,'b487a500-cea3-48ac-874e-538db340d147',38,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,65,'2c25e98b-436f-4e12-a314-46da7322048b',38,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,66,'4148006f-02c4-4b3a-a58b-0cc6f537f1cb',38,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,67,'d38a97aa-10e1-42bb-ac88-7587f051884e',39,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,68,'92bd92c3-6df7-40cb-9431-5fac44a54ead',39,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:03',NULL,69,'29450ff7-0f6c-4adc-ac37-a8cb89c6fcb6',39,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,70,'4b386ccb-0280-42ed-a680-a5633296282f',40,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,71,'20cef891-4d92-4475-a8a8-d2d0d79a0513',40,'trait1','CUSTOM_NVIDIA_1EB8_T4_2B');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,72,'7dad53c9-1ad1-4853-b1b4-1a25c9dd2840',40,'rc','VGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,73,'40c5de24-171d-46ef-aa13-13c200ad36f0',41,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,74,'b29d8adc-d2ce-4ab0-9794-97e56b47ba3c',42,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,75,'c7fff639-57e3-4994-bc55-d62960282fe4',43,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,76,'0b1444a6-29b4-4480-8493-541c0ec047e9',44,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,77,'caccaa9b-1f55-4eb7-90e6-9a93179e1671',45,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,78,'e6f2eb1a-b86a-4709-a1fe-e4fc0c5f6882',46,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,79,'d40950dd-3679-43cc-961b-ace4ffe3265d',47,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,80,'461d5896-b8d5-4f65-9f42-58bd63abfaf0',48,'rc','CUSTOM_QAT');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,81,'b81914d3-da15-43ae-a95e-352b908a74ce',49,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,82,'f05f46f9-4038-4b08-8ce0-81bdff6af05b',49,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,83,'3a2c59d2-513e-4a3b-b42d-8dceeb256169',49,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,84,'d6857011-c67b-4879-ab1a-8089826c8a8a',50,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,85,'682b583c-cb75-4a5e-a51d-947e177bf4ae',50,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,86,'b4904fcb-6850-4033-a6fe-940d29a6eb9b',50,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,87,'d564c818-e543-4c20-8a67-7184056f74e3',51,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,88,'b03ff87f-71ca-442b-b15e-cd0352b4389f',51,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,89,'d4afe8a6-ea4d-4daf-bdbb-e465020f2797',51,'rc','PGPU');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,90,'6565efa3-94a5-4c92-b635-db8f7f9e6714',52,'trait0','OWNER_CYBORG');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,91,'095d897e-b458-48e5-827a-184b0623e5d8',52,'trait1','CUSTOM_NVIDIA_1EB8');
INSERT INTO `attributes` VALUES ('2026-11-24 05:55:06',NULL,92,'53c82c6a-e4ed-4aaf-b044-40291ab57f8f',52,'rc','PGPU');
CREATE TABLE `controlpath_ids` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `uuid` varchar(36) NOT NULL,
  `device_id` int(11) NOT NULL,
  `cpid_type` enum('PCI') NOT NULL,
  `cpid_info` varchar(255) NOT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `uuid` (`uuid`),
  KEY `ix_controlpath_ids_device_id` (`device_id`),
  CONSTRAINT `controlpath_ids_ibfk_1` FOREIGN KEY (`device_id`) REFERENCES `devices` (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=25 DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:54:58',NULL,1,'b454cb76-e1c4-4728-8294-b7ac7a8d593c',1,'PCI','{\"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:54:58',NULL,2,'82e0d042-64d7-4340-baea-58bcb01735b8',2,'PCI','{\"bus\": \"3d\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:54:58',NULL,3,'9c3068cc-b900-4da2-b3ff-ad957032525e',3,'PCI','{\"bus\": \"81\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:54:58',NULL,4,'4f91dd19-6238-444e-a0f3-83525f8fdb69',4,'PCI','{\"bus\": \"82\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:54:58',NULL,5,'fd8f506d-a9fc-421e-b8c5-8d34fe6af0b5',5,'PCI','{\"bus\": \"83\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:54:58',NULL,6,'3ec93d38-52c2-4323-8be4-14d8ce53de46',6,'PCI','{\"bus\": \"84\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:00',NULL,7,'06228699-667c-4679-9e01-0c527def14f2',7,'PCI','{\"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:00',NULL,8,'536f4bcd-36ec-443a-b1df-6e8d18b85761',8,'PCI','{\"bus\": \"3d\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:00',NULL,9,'fac5457c-8417-4a43-b6c4-ab26dc9bb08e',9,'PCI','{\"bus\": \"81\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:00',NULL,10,'9a99ecce-13df-40d0-8d50-ccb878df9983',10,'PCI','{\"bus\": \"82\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:01',NULL,11,'e1ef261b-7528-4908-970e-142afd11edf7',11,'PCI','{\"bus\": \"83\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:01',NULL,12,'849e3c7a-e021-4751-8a6b-6d12071fe0ac',12,'PCI','{\"bus\": \"84\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:03',NULL,13,'702ea817-7289-44c0-bdc6-fb131e1f1773',13,'PCI','{\"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:03',NULL,14,'ca127be5-313d-4ad9-9f41-b49b52e34e23',14,'PCI','{\"bus\": \"3d\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:03',NULL,15,'d1391bc6-bbff-472b-86d4-76f5bcb620a9',15,'PCI','{\"bus\": \"81\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:03',NULL,16,'099815c4-aac3-40e3-be0b-1ec5d2a5e3a7',16,'PCI','{\"bus\": \"82\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:03',NULL,17,'d7b4fc20-671f-42d6-ac55-932e7ce7b05e',17,'PCI','{\"bus\": \"83\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:03',NULL,18,'81c32442-a727-4409-b5e8-3071725f2190',18,'PCI','{\"bus\": \"84\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:06',NULL,19,'585ed1c3-0a9b-45bf-a635-eaf3dc8a6065',19,'PCI','{\"bus\": \"5e\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:06',NULL,20,'b5da49de-d145-4017-9ca7-e31092c412d1',20,'PCI','{\"bus\": \"3d\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:06',NULL,21,'2543418d-70cf-468d-a4ae-a79d4d3bb20b',21,'PCI','{\"bus\": \"81\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:06',NULL,22,'86d1a0d9-c38d-40e4-b36f-137b6a9165fd',22,'PCI','{\"bus\": \"82\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:06',NULL,23,'a168d318-377e-416d-a7b6-963841ce879b',23,'PCI','{\"bus\": \"83\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
INSERT INTO `controlpath_ids` VALUES ('2026-11-24 05:55:06',NULL,24,'6816f876-ca68-44ea-a1ff-5fd79f618a6b',24,'PCI','{\"bus\": \"84\", \"device\": \"00\", \"domain\": \"0000\", \"function\": \"0\"}');
CREATE TABLE `deployables` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `uuid` varchar(36) NOT NULL,
  `parent_id` int(11) DEFAULT NULL,
  `root_id` int(11) DEFAULT NULL,
  `name` varchar(255) NOT NULL,
  `num_accelerators` int(11) NOT NULL,
  `device_id` int(11) NOT NULL,
  `rp_uuid` varchar(36) DEFAULT NULL,
  `driver_name` varchar(100) DEFAULT NULL,
  `bitstream_id` varchar(36) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `uuid` (`uuid`),
  KEY `deployables_parent_id_idx` (`parent_id`),
  KEY `deployables_device_id_idx` (`device_id`),
  KEY `deployables_root_id_idx` (`root_id`),
  CONSTRAINT `deployables_ibfk_1` FOREIGN KEY (`parent_id`) REFERENCES `deployables` (`id`) ON DELETE CASCADE,
  CONSTRAINT `deployables_ibfk_2` FOREIGN KEY (`root_id`) REFERENCES `deployables` (`id`) ON DELETE CASCADE,
  CONSTRAINT `deployables_ibfk_3` FOREIGN KEY (`device_id`) REFERENCES `devices` (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=53 DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',1,'9f729088-2d0d-4c01-8185-8887f21ac43f',NULL,NULL,'compute-1_0000:5e:00.0',8,1,'7f9e7467-3b25-38ec-9866-3a3b9c4c009e','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',2,'408e8d7f-e6bc-441e-b83f-a86e2f7578ec',NULL,NULL,'compute-1_0000:3d:01.0',1,2,'3cdb211f-b6e6-3cc0-b449-60609d5f5970','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',3,'c045fe04-d89e-4e61-a239-04c5facd85d5',NULL,NULL,'compute-1_0000:3d:01.1',1,2,'4f6b051f-0bb7-3f89-990b-17c47d3fdadc','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',4,'47ffd7c6-973a-4952-b820-99ff6223ec19',NULL,NULL,'compute-1_0000:3d:01.2',1,2,'57e1be1f-f8d3-30a3-8188-3baafd782cd8','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',5,'ffbf5aa2-c47e-4121-89df-2839b3e1387c',NULL,NULL,'compute-1_0000:3d:01.3',1,2,'515613ea-de11-3757-99ac-ea4ff9666c8e','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',6,'83fb0e8e-769d-45e9-9661-253736bede65',NULL,NULL,'compute-1_0000:3d:01.4',1,2,'839fda96-09c5-31fe-b369-9954bc538e61','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',7,'b24f98c7-6835-4be9-a625-839126aeff79',NULL,NULL,'compute-1_0000:3d:01.5',1,2,'46a5e5b0-724a-3026-914e-8af2b172fd54','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',8,'8dcaf940-54d4-4928-b817-9fd3bea2c6b9',NULL,NULL,'compute-1_0000:3d:01.6',1,2,'a711fdff-7a60-3dc4-9bcf-59d01cb17ece','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',9,'930a81d5-9bac-49fb-a634-2cb6c409fd69',NULL,NULL,'compute-1_0000:3d:01.7',1,2,'861eeb69-b5e6-308f-8aaf-8fa31d04c039','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',10,'f43a2e7e-e0be-4ec6-a830-867726641d7c',NULL,NULL,'compute-1_0000:81:00.0',1,3,'004ccf00-8f18-3ccc-9604-acd601b9e0b3','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',11,'119fa892-effa-43b0-bc1c-5856d1e1aa10',NULL,NULL,'compute-1_0000:82:00.0',1,4,'a73cf3df-b813-3c69-af91-6734bd851273','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',12,'61b297b3-da66-48ba-8685-e9af84983bab',NULL,NULL,'compute-1_0000:83:00.0',1,5,'7bf27c70-cb79-3a75-8744-6ed0a4cfa73f','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',13,'daad100a-9121-44bc-ac7a-f2d0cc55d5b7',NULL,NULL,'compute-1_0000:84:00.0',1,6,'7756369f-6d2e-3eb6-9fd7-54bbbad02141','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',14,'1f959804-1934-4a34-97df-13ed0148f64d',NULL,NULL,'compute-2_0000:5e:00.0',8,7,'fc663f55-6637-3f4c-acc7-8806fe70062b','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',15,'a9e2d06c-8abc-4597-a6e6-ddbe099035e8',NULL,NULL,'compute-2_0000:3d:01.0',1,8,'5f2d8f51-1451-39a0-81d8-ba7737c9ed54','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',16,'adb638ef-a41b-4c0e-8b67-59cf46fff40c',NULL,NULL,'compute-2_0000:3d:01.1',1,8,'4149aca5-bb64-38af-b834-ef975bf4747b','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',17,'d8fc96cc-9e08-4aa3-9937-5d6f486c2953',NULL,NULL,'compute-2_0000:3d:01.2',1,8,'f93efe6e-1c69-3d17-8f3b-3257dc63e8ff','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',18,'5c6196ff-79ba-4f38-9137-116deb57173e',NULL,NULL,'compute-2_0000:3d:01.3',1,8,'44c31e4d-1bc6-3876-98fa-12f27745e0bb','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',19,'5484bd79-7321-4681-8dae-0a37e6e8be39',NULL,NULL,'compute-2_0000:3d:01.4',1,8,'c4367447-87d7-3be6-ad86-bcc86b33dd70','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',20,'db5b6f9c-49e6-4949-baf4-561b3b25597b',NULL,NULL,'compute-2_0000:3d:01.5',1,8,'a02e2fd8-673e-3aa0-b091-5d02e4c23f6c','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',21,'c7e2d688-0f47-49a1-a792-6935a70c4930',NULL,NULL,'compute-2_0000:3d:01.6',1,8,'31209711-bdb2-317c-a440-5aa219919193','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',22,'92bbb343-5d60-4285-ab50-8d9c9f92e5e9',NULL,NULL,'compute-2_0000:3d:01.7',1,8,'d346a4af-6990-36a4-822b-c8471cdd20eb','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',23,'915bdf86-126c-47fe-95fd-07c1592d1359',NULL,NULL,'compute-2_0000:81:00.0',1,9,'c01d95eb-a2a7-3d5c-99c4-9255b3e93946','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:01',24,'270b3361-69f9-4eb8-83f0-c3c0006acf16',NULL,NULL,'compute-2_0000:82:00.0',1,10,'d25a55a4-a8f0-3ee3-b862-b72d8759bb2f','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',25,'98139c10-18be-4f66-bf34-c5558a29b9a5',NULL,NULL,'compute-2_0000:83:00.0',1,11,'f20e0224-d7af-3c2f-8a8e-ad8abcedb216','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',26,'607c8fef-0b69-4593-9bd9-0a742d9ed5c6',NULL,NULL,'compute-2_0000:84:00.0',1,12,'67555c71-01e1-3056-aebb-0a48b842b33f','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',27,'2565df20-1860-4ff8-942d-f88f17fc7c00',NULL,NULL,'compute-3_0000:5e:00.0',8,13,'f7b73562-652e-3954-a72c-5936cfdfa6c7','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',28,'98630834-8da8-4db5-addd-15d9b961b31b',NULL,NULL,'compute-3_0000:3d:01.0',1,14,'d71c9e24-ba69-3b86-b510-6d6616ac8d22','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',29,'f5c7ebeb-4c57-4b37-8007-8801c1cd3119',NULL,NULL,'compute-3_0000:3d:01.1',1,14,'7d739ff2-41f2-347d-9981-4d2960e8913d','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',30,'50f5d16d-6931-4a64-8524-2a7f9a0a52fa',NULL,NULL,'compute-3_0000:3d:01.2',1,14,'687cddb6-76b7-3c17-a7bc-bfd1fbfe207a','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',31,'d502aaca-ee89-44e4-b216-4991a010cdc6',NULL,NULL,'compute-3_0000:3d:01.3',1,14,'c21e6860-e2fb-3af2-a7a9-5776d6dfdce6','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',32,'2852bac9-ec85-4a5a-8421-77a625020dfb',NULL,NULL,'compute-3_0000:3d:01.4',1,14,'34f74851-4b80-33b2-8882-c7360364fad0','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',33,'5bae9827-d0e5-4fc7-a144-2df9eb8a8507',NULL,NULL,'compute-3_0000:3d:01.5',1,14,'b92dd07b-e0d4-30bb-960e-e9ab97c9d1cf','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',34,'7db8d2b2-32b9-4d16-92e9-6c505df99222',NULL,NULL,'compute-3_0000:3d:01.6',1,14,'e02d7a1b-5388-3755-98e2-3b24abc9d8e4','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',35,'d4360993-b555-45e1-be0a-e182b9f7f2ad',NULL,NULL,'compute-3_0000:3d:01.7',1,14,'7fecab73-d857-356d-9b43-e70f2e266fd1','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',36,'b57acb73-77a2-4a73-8292-6bb7589ff29b',NULL,NULL,'compute-3_0000:81:00.0',1,15,'abc5ec08-c0bf-3479-9ba5-dc82053080f5','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',37,'74c32610-32cd-4ea3-96dd-48569a8a3d78',NULL,NULL,'compute-3_0000:82:00.0',1,16,'f09670da-f991-33b4-9ad2-103d6ee4c79f','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',38,'35a06578-e14b-4a62-992c-3a152001afee',NULL,NULL,'compute-3_0000:83:00.0',1,17,'6302b3a0-b43f-37a2-926c-a616baa93193','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',39,'cba16396-d8b7-4019-a93b-b4eca978c1cb',NULL,NULL,'compute-3_0000:84:00.0',1,18,'a7134f7c-77e5-30d4-b3b1-773001fd5d19','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',40,'bbe35893-51ad-4142-87d1-17c351d571b5',NULL,NULL,'compute-4_0000:5e:00.0',8,19,'7fede3d0-c5df-38b7-aa0a-eeac8f7d8790','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',41,'3244baf2-226f-488a-8cd5-0455bbb1139d',NULL,NULL,'compute-4_0000:3d:01.0',1,20,'4fcd62ad-9eed-3020-8423-0ccd9f2b75fe','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',42,'035fe1da-2a3f-41a4-a1dd-817b28878742',NULL,NULL,'compute-4_0000:3d:01.1',1,20,'a8df224b-7ba9-311c-923e-31b27a1732cd','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',43,'36ee53d6-8f54-430d-be6b-e37eea89b678',NULL,NULL,'compute-4_0000:3d:01.2',1,20,'a6bdbe14-76bc-3e44-ae04-8da01352df38','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',44,'84f3822a-525c-4640-a0b8-22669b62bed2',NULL,NULL,'compute-4_0000:3d:01.3',1,20,'13c31f5f-12d1-3bfb-a373-ec3f442c5b1e','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',45,'2dea1306-7fe2-4b2f-ae1c-11c2ac71d906',NULL,NULL,'compute-4_0000:3d:01.4',1,20,'95d66db2-65d3-355c-be7a-9d33e70fb8a3','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',46,'db7d78e6-c7ac-4d39-b3ac-7ff98a030e3b',NULL,NULL,'compute-4_0000:3d:01.5',1,20,'e4dea1d0-9a89-3f3a-ab54-bffa282a0b0e','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',47,'2299e145-28c6-43dc-a019-af1c6f543ee6',NULL,NULL,'compute-4_0000:3d:01.6',1,20,'927e4110-6dec-3dc5-8ce0-f8b0ddaf0283','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',48,'e66f1073-d31a-4fd7-af2f-fe5e5d5d46a6',NULL,NULL,'compute-4_0000:3d:01.7',1,20,'e539a21e-481a-38dd-97f6-fec9f84006b4','intel',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',49,'e249b404-e8a5-4110-90d8-4f55df056377',NULL,NULL,'compute-4_0000:81:00.0',1,21,'61306778-ba3a-37ef-927e-ec8e9814b3c5','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',50,'484d9569-267e-4bb3-9710-662e2a10f0a5',NULL,NULL,'compute-4_0000:82:00.0',1,22,'5cf7d2b3-1a46-3b66-8f43-7f61fc46fc79','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',51,'4f503b57-6162-4164-9fbf-365e9b0da286',NULL,NULL,'compute-4_0000:83:00.0',1,23,'172dbba9-dbc0-3126-9419-9c6b14986656','NVIDIA',NULL);
INSERT INTO `deployables` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',52,'a40d8902-80d6-41c3-bdd0-fd9b1c71e599',NULL,NULL,'compute-4_0000:84:00.0',1,24,'265505c4-dfbf-3c93-aa82-0a81fbc8e25d','NVIDIA',NULL);
CREATE TABLE `device_profiles` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `uuid` varchar(36) NOT NULL,
  `name` varchar(255) NOT NULL,
  `profile_json` text NOT NULL,
  `description` text DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `uniq_device_profiles0uuid` (`uuid`),
  UNIQUE KEY `uniq_device_profiles0name` (`name`)
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `device_profiles` VALUES ('2026-11-24 05:54:58',NULL,1,'2f0eb286-5b37-429c-9c29-3443d66641b4','vgpu','{\"groups\": [{\"resources:VGPU\": \"1\", \"trait:CUSTOM_NVIDIA_1EB8_T4_2B\": \"required\"}]}',NULL);
INSERT INTO `device_profiles` VALUES ('2026-11-24 05:54:58',NULL,2,'72388701-d04e-48b0-903e-b438877d35f3','qat','{\"groups\": [{\"resources:CUSTOM_QAT\": \"1\"}]}',NULL);
INSERT INTO `device_profiles` VALUES ('2026-11-24 05:54:58',NULL,3,'964fb053-edc4-4c00-8baf-dd6edb9fa415','gpu','{\"groups\": [{\"resources:PGPU\": \"1\", \"trait:CUSTOM_NVIDIA_1EB8\": \"required\"}]}',NULL);
CREATE TABLE `devices` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `uuid` varchar(36) NOT NULL,
  `type` enum('GPU','FPGA','AICHIP','QAT','NIC','SSD','MDEV','PCI','NVME') NOT NULL,
  `vendor` varchar(255) NOT NULL,
  `model` varchar(255) NOT NULL,
  `std_board_info` text DEFAULT NULL,
  `vendor_board_info` text DEFAULT NULL,
  `hostname` varchar(255) NOT NULL,
  `status` enum('enabled','maintaining') NOT NULL,
  `device_state` enum('available','allocated','pending_cleaning','cleaning','error') DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `uuid` (`uuid`)
) ENGINE=InnoDB AUTO_INCREMENT=25 DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `devices` VALUES ('2026-11-24 05:54:58',NULL,1,'75e4d023-f6e4-4728-9435-cf5201792f97','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-1','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:54:58',NULL,2,'d9eb5b8c-03a7-41f1-91ea-580933d58e55','QAT','0x8086','miss_model_info','{\"product_id\": \"0x37c8\"}','miss_vb_info','compute-1','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:54:58',NULL,3,'f18f1b05-96cc-4b2e-918a-4df1e3c4fe6e','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-1','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:54:58',NULL,4,'81758ec8-dce0-42c8-bd6c-c728a7ffa9f0','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-1','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:54:58',NULL,5,'a61f067e-bcd7-490f-8d38-0b8ff4d1b813','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-1','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:54:58',NULL,6,'d784d980-71a5-495b-853c-efe1c44e49f5','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-1','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:00',NULL,7,'91e59b17-5865-4ba5-953f-86a6e9d6aa71','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-2','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:00',NULL,8,'d1861571-6250-487a-b87d-9dc46e92f954','QAT','0x8086','miss_model_info','{\"product_id\": \"0x37c8\"}','miss_vb_info','compute-2','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:00',NULL,9,'306089e6-a9d2-4ca1-b10b-55603cb6f7fa','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-2','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:00',NULL,10,'6e832a8e-e9fc-4e95-80a2-9393933ed3ad','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-2','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:01',NULL,11,'54fd8722-a6bb-4e7a-80b3-48d46594c132','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-2','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:01',NULL,12,'a9684655-b7b2-4c39-abb2-0921ff5969d6','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-2','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:03',NULL,13,'36170ac0-311b-4ab6-b818-9df17ee93997','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-3','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:03',NULL,14,'43f8f066-7f47-41d9-b740-5b60cc6ff49b','QAT','0x8086','miss_model_info','{\"product_id\": \"0x37c8\"}','miss_vb_info','compute-3','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:03',NULL,15,'35e5a536-37cb-4f68-bb83-ae5bf1b0b68a','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-3','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:03',NULL,16,'6c5124df-178b-4765-92e8-fb3378c231e6','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-3','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:03',NULL,17,'4ec9bb28-85e0-412f-a97c-c7c8f5665211','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-3','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:03',NULL,18,'77830fab-96a2-4d81-9383-69b501106b1b','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-3','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:06',NULL,19,'36de140c-b2d0-4b44-8a75-11e9b6198246','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-4','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:06',NULL,20,'99e9a2bd-13b3-4efe-96a4-2b4604fd48ce','QAT','0x8086','miss_model_info','{\"product_id\": \"0x37c8\"}','miss_vb_info','compute-4','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:06',NULL,21,'d0c3fcf6-83fc-4c28-aa30-92ca891a58bf','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-4','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:06',NULL,22,'cc815216-c3ba-47c0-944a-25c5b98fbfd8','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-4','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:06',NULL,23,'add76582-403f-474c-93cb-09d84590412c','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-4','enabled','available');
INSERT INTO `devices` VALUES ('2026-11-24 05:55:06',NULL,24,'a33c0066-cd5b-4f38-98d7-b8f45dad548e','GPU','10de','NVIDIA Corporation TU104GL [Tesla T4]','{\"product_id\": \"1eb8\", \"controller\": \"3D controller\"}','{\"vendor_info\": \"gpu_vb_info\"}','compute-4','enabled','available');
CREATE TABLE `extended_accelerator_requests` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `uuid` varchar(36) NOT NULL,
  `project_id` varchar(255) DEFAULT NULL,
  `state` enum('Initial','BindStarted','Bound','Unbound','BindFailed','Deleting') NOT NULL,
  `device_profile_id` int(11) NOT NULL,
  `hostname` varchar(255) DEFAULT NULL,
  `device_rp_uuid` varchar(36) DEFAULT NULL,
  `attach_handle_id` int(11) DEFAULT NULL,
  `substate` enum('Initial') NOT NULL,
  `deployable_id` int(11) DEFAULT NULL,
  `device_profile_group_id` int(11) NOT NULL,
  `instance_uuid` varchar(36) DEFAULT NULL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `uuid` (`uuid`),
  KEY `extArqs_device_rp_uuid_idx` (`device_rp_uuid`),
  KEY `extArqs_project_id_idx` (`project_id`),
  KEY `extArqs_attach_handle_id_idx` (`attach_handle_id`),
  KEY `extArqs_deployable_id_idx` (`deployable_id`),
  KEY `extArqs_device_profile_id_idx` (`device_profile_id`),
  KEY `extArqs_instance_uuid_idx` (`instance_uuid`),
  CONSTRAINT `extended_accelerator_requests_ibfk_1` FOREIGN KEY (`device_profile_id`) REFERENCES `device_profiles` (`id`),
  CONSTRAINT `extended_accelerator_requests_ibfk_2` FOREIGN KEY (`attach_handle_id`) REFERENCES `attach_handles` (`id`),
  CONSTRAINT `extended_accelerator_requests_ibfk_3` FOREIGN KEY (`deployable_id`) REFERENCES `deployables` (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=81 DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci;
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',1,'56f63813-9333-4e1a-a739-8fa441a2dccf','cccccccccccccccccccccccccccccccc','Bound',3,'compute-1.example','7756369f-6d2e-3eb6-9fd7-54bbbad02141',20,'Initial',13,0,'89f7702a-e95c-4a18-8fa4-a9c0ceda47b6');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',2,'bc3aa930-50f7-4363-82c7-d81cfcc6cdc2','cccccccccccccccccccccccccccccccc','Bound',3,'compute-1.example','7bf27c70-cb79-3a75-8744-6ed0a4cfa73f',19,'Initial',12,0,'93a63266-c654-4001-8d4b-6489ddaeb42d');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:58',3,'60fc8798-002c-44aa-ad10-11bb9e738fec','cccccccccccccccccccccccccccccccc','Bound',3,'compute-1.example','a73cf3df-b813-3c69-af91-6734bd851273',18,'Initial',11,0,'63663368-def9-4c14-9354-d07cf09275a1');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:58','2026-11-24 05:54:59',4,'f4933bca-fa42-4326-837b-559bd3e18015','cccccccccccccccccccccccccccccccc','Bound',3,'compute-1.example','004ccf00-8f18-3ccc-9604-acd601b9e0b3',17,'Initial',10,0,'387a2000-d8d6-44f6-b0b4-e9b729aeb509');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:59','2026-11-24 05:54:59',5,'cbe00123-f4a5-4d15-bea6-8f2ccdd007bb','cccccccccccccccccccccccccccccccc','Bound',2,'compute-1.example','861eeb69-b5e6-308f-8aaf-8fa31d04c039',16,'Initial',9,0,'f57c53cf-4653-4f03-be3b-dd50a3454be0');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:59','2026-11-24 05:54:59',6,'ef678c54-a1cd-4668-8b68-f8a63a5660b4','cccccccccccccccccccccccccccccccc','Bound',2,'compute-1.example','a711fdff-7a60-3dc4-9bcf-59d01cb17ece',15,'Initial',8,0,'828a4cb3-6a5e-4144-bee1-17b2bdf254ca');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:59','2026-11-24 05:54:59',7,'22880d19-f769-42ce-8d0d-37e0be201d5f','cccccccccccccccccccccccccccccccc','Bound',2,'compute-1.example','46a5e5b0-724a-3026-914e-8af2b172fd54',14,'Initial',7,0,'292a8917-5c7c-49ca-ab4d-57bce3b32d0e');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:59','2026-11-24 05:54:59',8,'c8b46531-15c9-452d-9815-5953f3ee4ec2','cccccccccccccccccccccccccccccccc','Bound',2,'compute-1.example','839fda96-09c5-31fe-b369-9954bc538e61',13,'Initial',6,0,'1ea1a365-20e5-472a-bf75-642ef6c6ab82');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:59','2026-11-24 05:54:59',9,'5d1d409f-cf00-440d-914e-f11bd3ea7b3a','cccccccccccccccccccccccccccccccc','Bound',2,'compute-1.example','515613ea-de11-3757-99ac-ea4ff9666c8e',12,'Initial',5,0,'9abcd045-24fa-4af7-924c-2962456d79e9');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:59','2026-11-24 05:54:59',10,'46567fcc-ba74-4649-8b11-bff799c5968b','cccccccccccccccccccccccccccccccc','Bound',2,'compute-1.example','57e1be1f-f8d3-30a3-8188-3baafd782cd8',11,'Initial',4,0,'e93dd564-737a-43c4-a38a-38fa9259276c');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:59','2026-11-24 05:54:59',11,'a55f85b8-8343-405a-8667-5a32c6f58060','cccccccccccccccccccccccccccccccc','Bound',2,'compute-1.example','4f6b051f-0bb7-3f89-990b-17c47d3fdadc',10,'Initial',3,0,'14973a13-ec7b-41a2-ae83-6c0041e595a4');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:59','2026-11-24 05:54:59',12,'875f703f-c072-4aa2-a485-50f54edf2641','cccccccccccccccccccccccccccccccc','Bound',2,'compute-1.example','3cdb211f-b6e6-3cc0-b449-60609d5f5970',9,'Initial',2,0,'0f2c10d1-e84b-43a2-bcf8-1d66fa13d048');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:59','2026-11-24 05:54:59',13,'8aeece7c-35b9-4e16-be73-4b7a017ce92d','cccccccccccccccccccccccccccccccc','Bound',1,'compute-1.example','7f9e7467-3b25-38ec-9866-3a3b9c4c009e',1,'Initial',1,0,'ec735ef3-ecc8-49d0-a9c7-8ad8b47c75e9');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:54:59','2026-11-24 05:55:00',14,'21b9753b-802b-4007-a8ce-bd3cc5cc9335','cccccccccccccccccccccccccccccccc','Bound',1,'compute-1.example','7f9e7467-3b25-38ec-9866-3a3b9c4c009e',2,'Initial',1,0,'130dc816-35f1-4239-a581-370666021f45');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',15,'845ac461-75ca-4d37-ac04-0bed20efdf68','cccccccccccccccccccccccccccccccc','Bound',1,'compute-1.example','7f9e7467-3b25-38ec-9866-3a3b9c4c009e',3,'Initial',1,0,'4d5f839e-9c7e-452e-8e7c-fd28c01ca18a');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',16,'1754d6f5-4204-4ab7-8d64-2d9fb667effa','cccccccccccccccccccccccccccccccc','Bound',1,'compute-1.example','7f9e7467-3b25-38ec-9866-3a3b9c4c009e',4,'Initial',1,0,'5d7e3c2a-9c1b-4e4d-b887-294c8a2c40fa');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',17,'d2af08c1-1f49-443b-b9cd-789016489a44','cccccccccccccccccccccccccccccccc','Bound',1,'compute-1.example','7f9e7467-3b25-38ec-9866-3a3b9c4c009e',5,'Initial',1,0,'76fc7440-14fa-4358-acab-532ba7ea2b07');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',18,'2538696c-aff6-4c1f-a522-d11a6ebb9245','cccccccccccccccccccccccccccccccc','Bound',1,'compute-1.example','7f9e7467-3b25-38ec-9866-3a3b9c4c009e',6,'Initial',1,0,'a04b1ed3-28c6-4edb-8d48-e64b20e22a74');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',19,'289b6aaa-9c42-4c94-b295-c836b2638674','cccccccccccccccccccccccccccccccc','Bound',1,'compute-1.example','7f9e7467-3b25-38ec-9866-3a3b9c4c009e',7,'Initial',1,0,'95ceb231-3bfb-4f6b-bc56-83994df63301');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:00','2026-11-24 05:55:00',20,'8ed368eb-556f-4ab4-b4ae-ee5300ebad3b','cccccccccccccccccccccccccccccccc','Bound',1,'compute-1.example','7f9e7467-3b25-38ec-9866-3a3b9c4c009e',8,'Initial',1,0,'8369c95e-5bdd-4581-93cb-75e8372acabb');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',21,'4ed7131c-e8a4-4499-b07b-d0cc245f0592','cccccccccccccccccccccccccccccccc','Bound',3,'compute-2.example','67555c71-01e1-3056-aebb-0a48b842b33f',40,'Initial',26,0,'20969ade-926e-4856-9606-1dcb9c38f383');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',22,'6f86d677-4256-4e09-b2d5-a29509ee7c2f','cccccccccccccccccccccccccccccccc','Bound',3,'compute-2.example','f20e0224-d7af-3c2f-8a8e-ad8abcedb216',39,'Initial',25,0,'46c8cb70-d932-498e-b285-57f1fabb0bf7');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',23,'e3cf1704-34fa-4f29-b640-3a33dbcf1011','cccccccccccccccccccccccccccccccc','Bound',3,'compute-2.example','d25a55a4-a8f0-3ee3-b862-b72d8759bb2f',38,'Initial',24,0,'6247a120-0a01-42c9-bef2-6b8e58258842');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',24,'d6ea3f1e-b2e8-486c-ab31-050606a261a1','cccccccccccccccccccccccccccccccc','Bound',3,'compute-2.example','c01d95eb-a2a7-3d5c-99c4-9255b3e93946',37,'Initial',23,0,'fb8febe3-a636-465a-a5c3-08e12557e185');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',25,'750f4482-1315-4aff-b077-95bee9319094','cccccccccccccccccccccccccccccccc','Bound',2,'compute-2.example','d346a4af-6990-36a4-822b-c8471cdd20eb',36,'Initial',22,0,'d9908311-8f2b-416f-8b55-f5f5e0a3c49f');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:01',26,'e79aef3a-aa61-43e0-90ff-b31b8072d1a4','cccccccccccccccccccccccccccccccc','Bound',2,'compute-2.example','31209711-bdb2-317c-a440-5aa219919193',35,'Initial',21,0,'78c63305-e8ae-4d4a-8e74-0f093b9b1edd');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:01','2026-11-24 05:55:02',27,'e1c2c865-7342-4752-bf08-3871481685de','cccccccccccccccccccccccccccccccc','Bound',2,'compute-2.example','a02e2fd8-673e-3aa0-b091-5d02e4c23f6c',34,'Initial',20,0,'1a39b16e-1099-436d-855b-e9fdb7725155');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:02','2026-11-24 05:55:02',28,'0e0bc56c-704f-45a8-9fc8-3fe5ca90940a','cccccccccccccccccccccccccccccccc','Bound',2,'compute-2.example','c4367447-87d7-3be6-ad86-bcc86b33dd70',33,'Initial',19,0,'34073583-d8df-4721-b0a2-11ced0925f50');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:02','2026-11-24 05:55:02',29,'7e6b2170-bbb8-4562-b71c-f10322a95342','cccccccccccccccccccccccccccccccc','Bound',2,'compute-2.example','44c31e4d-1bc6-3876-98fa-12f27745e0bb',32,'Initial',18,0,'544c6e16-3d8a-4d36-bfeb-0e6b75b759f8');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:02','2026-11-24 05:55:02',30,'baf1a2d8-0ec9-4f24-87e5-34cc66bd87a3','cccccccccccccccccccccccccccccccc','Bound',2,'compute-2.example','f93efe6e-1c69-3d17-8f3b-3257dc63e8ff',31,'Initial',17,0,'fdce7fad-bf06-4ae3-a5c4-c4c7de9e09df');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:02','2026-11-24 05:55:02',31,'7f943087-f3ef-4533-90c4-6d9a75b38a3a','cccccccccccccccccccccccccccccccc','Bound',2,'compute-2.example','4149aca5-bb64-38af-b834-ef975bf4747b',30,'Initial',16,0,'c5ac0a27-153b-4ded-95a5-a425a3aa0905');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:02','2026-11-24 05:55:02',32,'72e669b0-2dd6-4160-9da0-947cbf14fdf5','cccccccccccccccccccccccccccccccc','Bound',2,'compute-2.example','5f2d8f51-1451-39a0-81d8-ba7737c9ed54',29,'Initial',15,0,'5eb5845d-85e5-4edd-8baf-708ea7abe615');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:02','2026-11-24 05:55:02',33,'a1abe44e-f6d3-4678-bf11-07e84e5a2dca','cccccccccccccccccccccccccccccccc','Bound',1,'compute-2.example','fc663f55-6637-3f4c-acc7-8806fe70062b',21,'Initial',14,0,'1b346f4d-503d-473b-a656-665ef8fbb11c');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:02','2026-11-24 05:55:02',34,'643298b6-1bac-4cd1-8efc-0436ef8f93eb','cccccccccccccccccccccccccccccccc','Bound',1,'compute-2.example','fc663f55-6637-3f4c-acc7-8806fe70062b',22,'Initial',14,0,'d1e20541-ba2b-447c-9540-2b5ec73acdab');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:02','2026-11-24 05:55:02',35,'c0c4ee53-b4ce-405c-8c3e-3a1a1653c14c','cccccccccccccccccccccccccccccccc','Bound',1,'compute-2.example','fc663f55-6637-3f4c-acc7-8806fe70062b',23,'Initial',14,0,'865e945e-0ae4-4064-a2a6-d31ee5fcf926');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:02','2026-11-24 05:55:02',36,'6ef0bd0c-3479-4ecf-9637-05f857b392db','cccccccccccccccccccccccccccccccc','Bound',1,'compute-2.example','fc663f55-6637-3f4c-acc7-8806fe70062b',24,'Initial',14,0,'6ba8e9c5-f01a-45ad-9814-cf03e636aa2c');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',37,'4db548df-64e5-4c41-a5bc-d63712cae45e','cccccccccccccccccccccccccccccccc','Bound',1,'compute-2.example','fc663f55-6637-3f4c-acc7-8806fe70062b',25,'Initial',14,0,'e949b767-16c6-416e-8ab5-ae3bd9133cd3');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',38,'7b8b07b0-ba0f-47c2-a5fe-a3f6ebf41b3e','cccccccccccccccccccccccccccccccc','Bound',1,'compute-2.example','fc663f55-6637-3f4c-acc7-8806fe70062b',26,'Initial',14,0,'355b980e-bf0e-458e-9fd0-36a45d0f5c0d');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',39,'ed511d29-c98a-4b33-9bf5-d7c71110dc9d','cccccccccccccccccccccccccccccccc','Bound',1,'compute-2.example','fc663f55-6637-3f4c-acc7-8806fe70062b',27,'Initial',14,0,'85d48ffa-1b40-476c-a34e-13eeecd5be4d');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',40,'bb66bfb1-7ec6-4d20-8936-97f22c376365','cccccccccccccccccccccccccccccccc','Bound',1,'compute-2.example','fc663f55-6637-3f4c-acc7-8806fe70062b',28,'Initial',14,0,'8df6d789-9d70-437e-9de2-d63034a39a43');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:03','2026-11-24 05:55:03',41,'46469d7a-c48a-44f0-ba3b-497246dabafd','cccccccccccccccccccccccccccccccc','Bound',3,'compute-3.example','a7134f7c-77e5-30d4-b3b1-773001fd5d19',60,'Initial',39,0,'805fd185-2bbd-4cab-b376-f724c5b6162d');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:04','2026-11-24 05:55:04',42,'873c892a-e7d4-43c8-8c61-4133fcc20501','cccccccccccccccccccccccccccccccc','Bound',3,'compute-3.example','6302b3a0-b43f-37a2-926c-a616baa93193',59,'Initial',38,0,'ea46f801-9c3c-4f66-8200-d31f2dd3fd79');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:04','2026-11-24 05:55:04',43,'beb4d328-69bb-489f-91d8-7de9c9fd7b5e','cccccccccccccccccccccccccccccccc','Bound',3,'compute-3.example','f09670da-f991-33b4-9ad2-103d6ee4c79f',58,'Initial',37,0,'d96bf8b1-62f3-40be-a13e-f2c7a8754477');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:04','2026-11-24 05:55:04',44,'5ea2a2bd-a2e0-4e15-a438-a86d180a72f3','cccccccccccccccccccccccccccccccc','Bound',3,'compute-3.example','abc5ec08-c0bf-3479-9ba5-dc82053080f5',57,'Initial',36,0,'576360bd-8f93-4162-b1a7-59e36f0c7d67');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:04','2026-11-24 05:55:04',45,'821bf907-23f4-4949-8bfb-91942e17ccaf','cccccccccccccccccccccccccccccccc','Bound',2,'compute-3.example','7fecab73-d857-356d-9b43-e70f2e266fd1',56,'Initial',35,0,'01d6a287-f800-44fc-b9bb-776f0d82f0a3');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:04','2026-11-24 05:55:04',46,'e7dd8363-7243-437d-ab0b-d6d634d3132f','cccccccccccccccccccccccccccccccc','Bound',2,'compute-3.example','e02d7a1b-5388-3755-98e2-3b24abc9d8e4',55,'Initial',34,0,'972aa236-03a5-4340-bd8c-eb65e16b7952');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:04','2026-11-24 05:55:04',47,'cbabf0fb-f86c-4f8e-99d2-23847010a828','cccccccccccccccccccccccccccccccc','Bound',2,'compute-3.example','b92dd07b-e0d4-30bb-960e-e9ab97c9d1cf',54,'Initial',33,0,'4f622f45-0785-4d65-bf69-a66d643fbae8');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:04','2026-11-24 05:55:04',48,'fcb46669-0e08-4004-863f-4ba0c826552f','cccccccccccccccccccccccccccccccc','Bound',2,'compute-3.example','34f74851-4b80-33b2-8882-c7360364fad0',53,'Initial',32,0,'026fd80c-234c-4c21-9cfd-4b678676bd63');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:04','2026-11-24 05:55:04',49,'f37c5f3d-11b7-4a9e-8024-d67505fd1c8a','cccccccccccccccccccccccccccccccc','Bound',2,'compute-3.example','c21e6860-e2fb-3af2-a7a9-5776d6dfdce6',52,'Initial',31,0,'30d49fd9-7e4c-4a02-8cc9-4f1e5f45320f');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:04','2026-11-24 05:55:05',50,'4497e860-c206-409f-bfcf-42bf727dbf32','cccccccccccccccccccccccccccccccc','Bound',2,'compute-3.example','687cddb6-76b7-3c17-a7bc-bfd1fbfe207a',51,'Initial',30,0,'ebd9e078-73e1-4a6b-802b-d5170c6905a1');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:05','2026-11-24 05:55:05',51,'36450080-8251-4713-adf3-2d5211c87398','cccccccccccccccccccccccccccccccc','Bound',2,'compute-3.example','7d739ff2-41f2-347d-9981-4d2960e8913d',50,'Initial',29,0,'0d5324de-ec8f-4ba2-b0ca-3214143c22e7');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:05','2026-11-24 05:55:05',52,'04577d9d-e898-48ef-bcc1-07cae248e344','cccccccccccccccccccccccccccccccc','Bound',2,'compute-3.example','d71c9e24-ba69-3b86-b510-6d6616ac8d22',49,'Initial',28,0,'5b132420-1842-4346-b8fe-89c6615b0e17');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:05','2026-11-24 05:55:05',53,'e01ca180-95e7-4a61-b468-122bf108e062','cccccccccccccccccccccccccccccccc','Bound',1,'compute-3.example','f7b73562-652e-3954-a72c-5936cfdfa6c7',41,'Initial',27,0,'4c2deacb-f465-4752-9bd8-1042bae0e70f');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:05','2026-11-24 05:55:05',54,'23d5612f-4c45-430f-8ddd-da72be1c6628','cccccccccccccccccccccccccccccccc','Bound',1,'compute-3.example','f7b73562-652e-3954-a72c-5936cfdfa6c7',42,'Initial',27,0,'974373c3-ce5e-4847-90c8-4b53a47f6f5d');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:05','2026-11-24 05:55:05',55,'80f2899a-5cc7-47b8-9cc3-90afd79b6cbc','cccccccccccccccccccccccccccccccc','Bound',1,'compute-3.example','f7b73562-652e-3954-a72c-5936cfdfa6c7',43,'Initial',27,0,'1660ee88-73d6-47b2-ab8d-0971492fb886');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:05','2026-11-24 05:55:05',56,'493de8c6-f18d-4cc0-b82f-5025727ca7d5','cccccccccccccccccccccccccccccccc','Bound',1,'compute-3.example','f7b73562-652e-3954-a72c-5936cfdfa6c7',44,'Initial',27,0,'270e3f92-98bf-4946-93b7-623a316a8d78');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:05','2026-11-24 05:55:05',57,'ef0d9274-8ff2-4b21-8f2e-535ce6c296a0','cccccccccccccccccccccccccccccccc','Bound',1,'compute-3.example','f7b73562-652e-3954-a72c-5936cfdfa6c7',45,'Initial',27,0,'c531e785-d6a9-4a85-951d-e68f7b081e94');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:05','2026-11-24 05:55:05',58,'eb679cc2-8e07-469c-bd08-c12009839c88','cccccccccccccccccccccccccccccccc','Bound',1,'compute-3.example','f7b73562-652e-3954-a72c-5936cfdfa6c7',46,'Initial',27,0,'7d55c319-3436-43c5-8a8f-d0decf29c7ec');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:05','2026-11-24 05:55:06',59,'8495dca8-8fea-48c5-b2d6-f1ca5121d082','cccccccccccccccccccccccccccccccc','Bound',1,'compute-3.example','f7b73562-652e-3954-a72c-5936cfdfa6c7',47,'Initial',27,0,'7f27d696-c421-47b2-91ff-2118653cdcd3');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',60,'afa23328-5a19-4c12-b223-e9e0b6270412','cccccccccccccccccccccccccccccccc','Bound',1,'compute-3.example','f7b73562-652e-3954-a72c-5936cfdfa6c7',48,'Initial',27,0,'dafad0d5-da13-4feb-86e3-020de8dd67be');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',61,'0bdeb875-d000-45dc-b3d0-c427f9b9b490','cccccccccccccccccccccccccccccccc','Bound',3,'compute-4.example','265505c4-dfbf-3c93-aa82-0a81fbc8e25d',80,'Initial',52,0,'333b0bc9-888f-46a4-bc8a-4b32e01f384c');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',62,'38ed16bc-bafd-44e4-bfea-03ade2526c44','cccccccccccccccccccccccccccccccc','Bound',3,'compute-4.example','172dbba9-dbc0-3126-9419-9c6b14986656',79,'Initial',51,0,'1b5075e1-02b7-42c3-bb2f-7fc1330ac3e8');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',63,'e5005529-b63e-41a6-9661-a51e501bdca8','cccccccccccccccccccccccccccccccc','Bound',3,'compute-4.example','5cf7d2b3-1a46-3b66-8f43-7f61fc46fc79',78,'Initial',50,0,'5de9ca8c-f898-40df-8945-1cf4463df177');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:06',64,'836a0a91-4adb-41a4-aa38-7a2473bd5533','cccccccccccccccccccccccccccccccc','Bound',3,'compute-4.example','61306778-ba3a-37ef-927e-ec8e9814b3c5',77,'Initial',49,0,'1e294377-9c80-4c6d-84e2-b7670dbb22c5');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:06','2026-11-24 05:55:07',65,'644bc2d1-6f3e-4085-82d7-9ba47702f6cb','cccccccccccccccccccccccccccccccc','Bound',2,'compute-4.example','e539a21e-481a-38dd-97f6-fec9f84006b4',76,'Initial',48,0,'9fe92734-eb59-4019-8942-9f9878983559');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:07','2026-11-24 05:55:07',66,'ba5c8b53-3c85-4fb8-a6e6-e56b6987a499','cccccccccccccccccccccccccccccccc','Bound',2,'compute-4.example','927e4110-6dec-3dc5-8ce0-f8b0ddaf0283',75,'Initial',47,0,'64cf8119-7dc2-48d7-a41c-558372070e8c');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:07','2026-11-24 05:55:07',67,'b78698a8-0d18-4bbf-a5a7-4263542c4b36','cccccccccccccccccccccccccccccccc','Bound',2,'compute-4.example','e4dea1d0-9a89-3f3a-ab54-bffa282a0b0e',74,'Initial',46,0,'eebba997-4239-4514-89cb-b1f50d90fe35');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:07','2026-11-24 05:55:07',68,'3cbc4540-584d-47a9-9280-b52c1494da12','cccccccccccccccccccccccccccccccc','Bound',2,'compute-4.example','95d66db2-65d3-355c-be7a-9d33e70fb8a3',73,'Initial',45,0,'836bae31-95af-4c00-a520-10a7edaf30b5');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:07','2026-11-24 05:55:07',69,'a0b252fc-16ae-4cdb-9ee8-218520ee375e','cccccccccccccccccccccccccccccccc','Bound',2,'compute-4.example','13c31f5f-12d1-3bfb-a373-ec3f442c5b1e',72,'Initial',44,0,'96f6ea0b-2cfd-4da9-a808-909852f62282');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:07','2026-11-24 05:55:07',70,'280558e5-6989-4c1c-ba5d-08d837847052','cccccccccccccccccccccccccccccccc','Bound',2,'compute-4.example','a6bdbe14-76bc-3e44-ae04-8da01352df38',71,'Initial',43,0,'6ca0290b-f5cc-4105-b2ff-5a77d0a6fa1a');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:07','2026-11-24 05:55:07',71,'33a02424-0086-4eaf-9759-fdcc0a02af1b','cccccccccccccccccccccccccccccccc','Bound',2,'compute-4.example','a8df224b-7ba9-311c-923e-31b27a1732cd',70,'Initial',42,0,'9bd07f4d-909f-48dc-a541-6d4c88fb91b9');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:07','2026-11-24 05:55:07',72,'cc8df2df-dd1c-494e-93e4-dcc511cc9511','cccccccccccccccccccccccccccccccc','Bound',2,'compute-4.example','4fcd62ad-9eed-3020-8423-0ccd9f2b75fe',69,'Initial',41,0,'9a0bbe03-73c3-4972-8466-5e6634d99012');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:07','2026-11-24 05:55:07',73,'169b9ccc-1e04-4e03-ac93-5e2bc4a08b25','cccccccccccccccccccccccccccccccc','Bound',1,'compute-4.example','7fede3d0-c5df-38b7-aa0a-eeac8f7d8790',61,'Initial',40,0,'a2de3c5e-201a-4073-a781-3176db73bd8c');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:07','2026-11-24 05:55:07',74,'50485b45-b32f-4c1f-ab90-2239cc63582c','cccccccccccccccccccccccccccccccc','Bound',1,'compute-4.example','7fede3d0-c5df-38b7-aa0a-eeac8f7d8790',62,'Initial',40,0,'87af8e79-13c6-462c-ac7b-df2f8a88ba3e');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:08','2026-11-24 05:55:08',75,'848fd69b-7ba5-4bf1-b3e3-6b4e451a457d','cccccccccccccccccccccccccccccccc','Bound',1,'compute-4.example','7fede3d0-c5df-38b7-aa0a-eeac8f7d8790',63,'Initial',40,0,'4e7d9945-7373-46ff-9fa7-e3b55d5ae8da');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:08','2026-11-24 05:55:08',76,'374f4987-3791-4f0b-9506-d47b8f03c013','cccccccccccccccccccccccccccccccc','Bound',1,'compute-4.example','7fede3d0-c5df-38b7-aa0a-eeac8f7d8790',64,'Initial',40,0,'415f13ba-bf49-402c-ab3e-b848bf4642c7');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:08','2026-11-24 05:55:08',77,'47051bd0-dc9b-41ce-932e-d66d92180776','cccccccccccccccccccccccccccccccc','Bound',1,'compute-4.example','7fede3d0-c5df-38b7-aa0a-eeac8f7d8790',65,'Initial',40,0,'75d46832-91b8-4e71-8c03-4980b64e51de');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:08','2026-11-24 05:55:08',78,'86d1450a-72bd-4cf8-9c0d-de7eff01151c','cccccccccccccccccccccccccccccccc','Bound',1,'compute-4.example','7fede3d0-c5df-38b7-aa0a-eeac8f7d8790',66,'Initial',40,0,'b4b3f116-4952-4e8f-97a5-3096c3409da2');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:08','2026-11-24 05:55:08',79,'045c2579-787b-4b6a-8332-e1c880f0bc70','cccccccccccccccccccccccccccccccc','Bound',1,'compute-4.example','7fede3d0-c5df-38b7-aa0a-eeac8f7d8790',67,'Initial',40,0,'60daa664-07e5-4d76-b561-a64b60a72da9');
INSERT INTO `extended_accelerator_requests` VALUES ('2026-11-24 05:55:08','2026-11-24 05:55:08',80,'7f50f9b7-4225-4121-b160-bd5dd514c4f2','cccccccccccccccccccccccccccccccc','Bound',1,'compute-4.example','7fede3d0-c5df-38b7-aa0a-eeac8f7d8790',68,'Initial',40,0,'c56586bd-21cd-42b5-a47d-8cd9ccb325d5');
CREATE TABLE `quota_usages` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `project_id` varchar(255) DEFAULT NULL,
  `user_id` varchar(255) DEFAULT NULL,
  `resource` varchar(255) NOT NULL,
  `in_use` int(11) NOT NULL,
  `reserved` int(11) NOT NULL,
  `until_refresh` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `ix_quota_usages_project_id` (`project_id`),
  KEY `ix_quota_usages_user_id` (`user_id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
CREATE TABLE `reservations` (
  `created_at` datetime DEFAULT NULL,
  `updated_at` datetime DEFAULT NULL,
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `uuid` varchar(36) NOT NULL,
  `usage_id` int(11) NOT NULL,
  `project_id` varchar(255) DEFAULT NULL,
  `user_id` varchar(255) DEFAULT NULL,
  `resource` varchar(255) DEFAULT NULL,
  `delta` int(11) NOT NULL,
  `expire` datetime DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `usage_id` (`usage_id`),
  KEY `ix_reservations_project_id` (`project_id`),
  KEY `ix_reservations_user_id` (`user_id`),
  KEY `reservations_uuid_idx` (`uuid`),
  CONSTRAINT `reservations_ibfk_1` FOREIGN KEY (`usage_id`) REFERENCES `quota_usages` (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
