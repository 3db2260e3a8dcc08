// SPDX-License-Identifier: GPL-2.0
/*
 * labfpga - a software FPGA on a PCI function.
 *
 * It binds to QEMU's pci-testdev, registers an fpga_manager and an
 * fpga_region below the PCI device. The manager has the attribute of the
 * kernels of AMD and Altera:
 *
 *   firmware         write the name of a file in the firmware search path: the
 *                    region is programmed with it, or the write fails
 *
 * and the device one of its own (no vendor has it):
 *
 *   labfpga_loaded   "<id of the bitstream> <crc32> <bytes>", or "none"
 *
 * The parameter program_ms of the module says how long it takes, which does
 * not end when who has asked for it is killed.
 *
 * A bitstream is "LABF", 16 bytes of id, and anything. As an FPGA does, it
 * keeps what is loaded while another driver has the device.
 */
#include <linux/crc32.h>
#include <linux/delay.h>
#include <linux/fpga/fpga-mgr.h>
#include <linux/fpga/fpga-region.h>
#include <linux/module.h>
#include <linux/pci.h>

#define LABFPGA_MAGIC "LABF"
#define LABFPGA_ID_BYTES 16
#define LABFPGA_HEADER_BYTES (sizeof(LABFPGA_MAGIC) - 1 + LABFPGA_ID_BYTES)

struct labfpga_contents {
	u8 id[LABFPGA_ID_BYTES];
	u32 crc;
	size_t bytes;
	bool loaded;
};

struct labfpga {
	struct fpga_manager *manager;
	struct fpga_region *region;
	struct fpga_compat_id compat_id;
	struct mutex lock;	/* what is loaded, and loading it */
	struct labfpga_contents *contents;
};

static uint program_ms;
module_param(program_ms, uint, 0644);
MODULE_PARM_DESC(program_ms, "How long programming takes");

/* By slot and function: those of the lab are on one bus. */
static struct labfpga_contents labfpga_contents[256];

static enum fpga_mgr_states labfpga_state(struct fpga_manager *manager)
{
	struct labfpga *fpga = manager->priv;

	return fpga->contents->loaded ? FPGA_MGR_STATE_OPERATING
				      : FPGA_MGR_STATE_UNKNOWN;
}

static int labfpga_write_init(struct fpga_manager *manager,
			      struct fpga_image_info *info,
			      const char *buffer, size_t count)
{
	struct labfpga *fpga = manager->priv;
	const size_t magic = sizeof(LABFPGA_MAGIC) - 1;

	fpga->contents->loaded = false;
	fpga->contents->bytes = 0;
	fpga->contents->crc = ~0;
	if (count < LABFPGA_HEADER_BYTES ||
	    memcmp(buffer, LABFPGA_MAGIC, magic))
		return -EINVAL;
	memcpy(fpga->contents->id, buffer + magic, LABFPGA_ID_BYTES);
	return 0;
}

static int labfpga_write(struct fpga_manager *manager, const char *buffer,
			 size_t count)
{
	struct labfpga *fpga = manager->priv;

	msleep(program_ms);
	fpga->contents->crc = crc32_le(fpga->contents->crc, buffer, count);
	fpga->contents->bytes += count;
	return 0;
}

static int labfpga_write_complete(struct fpga_manager *manager,
				  struct fpga_image_info *info)
{
	struct labfpga *fpga = manager->priv;

	fpga->contents->crc = ~fpga->contents->crc;
	fpga->contents->loaded = true;
	return 0;
}

static const struct fpga_manager_ops labfpga_ops = {
	.initial_header_size = LABFPGA_HEADER_BYTES,
	.state = labfpga_state,
	.write_init = labfpga_write_init,
	.write = labfpga_write,
	.write_complete = labfpga_write_complete,
};

static ssize_t firmware_store(struct device *manager,
			      struct device_attribute *attr,
			      const char *buffer, size_t count)
{
	struct device *dev = manager->parent;
	struct labfpga *fpga = dev_get_drvdata(dev);
	struct fpga_image_info *info = fpga_image_info_alloc(dev);
	int ret;

	if (!info)
		return -ENOMEM;
	/* Given back by fpga_image_info_free(). */
	info->firmware_name = devm_kstrdup(dev, buffer, GFP_KERNEL);
	if (!info->firmware_name) {
		fpga_image_info_free(info);
		return -ENOMEM;
	}
	strim(info->firmware_name);
	mutex_lock(&fpga->lock);
	fpga->region->info = info;
	ret = fpga_region_program_fpga(fpga->region);
	fpga->region->info = NULL;
	mutex_unlock(&fpga->lock);
	fpga_image_info_free(info);
	return ret ? ret : count;
}
static DEVICE_ATTR_WO(firmware);

static ssize_t labfpga_loaded_show(struct device *dev,
				   struct device_attribute *attr, char *buffer)
{
	struct labfpga *fpga = dev_get_drvdata(dev);
	ssize_t ret;

	mutex_lock(&fpga->lock);
	if (fpga->contents->loaded)
		ret = sysfs_emit(buffer, "%16phN %08x %zu\n",
				 fpga->contents->id, fpga->contents->crc,
				 fpga->contents->bytes);
	else
		ret = sysfs_emit(buffer, "none\n");
	mutex_unlock(&fpga->lock);
	return ret;
}
static DEVICE_ATTR_RO(labfpga_loaded);

static struct attribute *labfpga_attrs[] = {
	&dev_attr_labfpga_loaded.attr,
	NULL
};
ATTRIBUTE_GROUPS(labfpga);

static int labfpga_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct fpga_region_info region = { 0 };
	struct labfpga *fpga;
	int ret;

	fpga = devm_kzalloc(&pdev->dev, sizeof(*fpga), GFP_KERNEL);
	if (!fpga)
		return -ENOMEM;
	mutex_init(&fpga->lock);
	fpga->contents = &labfpga_contents[pdev->devfn & 0xff];
	fpga->compat_id.id_h = 0x6c61626670676121ULL;
	fpga->compat_id.id_l = pci_dev_id(pdev);
	pci_set_drvdata(pdev, fpga);
	fpga->manager = fpga_mgr_register(&pdev->dev, "labfpga manager",
					  &labfpga_ops, fpga);
	if (IS_ERR(fpga->manager))
		return PTR_ERR(fpga->manager);
	region.mgr = fpga->manager;
	region.compat_id = &fpga->compat_id;
	fpga->region = fpga_region_register_full(&pdev->dev, &region);
	if (IS_ERR(fpga->region)) {
		fpga_mgr_unregister(fpga->manager);
		return PTR_ERR(fpga->region);
	}
	ret = device_create_file(&fpga->manager->dev, &dev_attr_firmware);
	if (ret) {
		fpga_region_unregister(fpga->region);
		fpga_mgr_unregister(fpga->manager);
	}
	return ret;
}

static void labfpga_remove(struct pci_dev *pdev)
{
	struct labfpga *fpga = pci_get_drvdata(pdev);

	device_remove_file(&fpga->manager->dev, &dev_attr_firmware);
	fpga_region_unregister(fpga->region);
	fpga_mgr_unregister(fpga->manager);
}

static const struct pci_device_id labfpga_ids[] = {
	{ PCI_DEVICE(0x1b36, 0x0005) },
	{ }
};
MODULE_DEVICE_TABLE(pci, labfpga_ids);

static struct pci_driver labfpga_driver = {
	.name = "labfpga",
	.id_table = labfpga_ids,
	.probe = labfpga_probe,
	.remove = labfpga_remove,
	.dev_groups = labfpga_groups,
};
module_pci_driver(labfpga_driver);

MODULE_DESCRIPTION("Software FPGA of the nova_accel lab");
MODULE_LICENSE("GPL");
