// SPDX-License-Identifier: GPL-2.0
/*
 * labgpu - the kernel's sample mtty (samples/vfio-mdev) below PCI functions.
 *
 * mtty makes mediated devices below a virtual parent. libvirt and Nova know
 * parents that are PCI functions only, so here each function that the driver
 * labgpu is bound to becomes one too: QEMU's "edu" by its id, and any other, a
 * virtual function for instance, by driver_override.
 *
 * It also loses functions of bus 0: the config space of the one whose number
 * (device << 3 | function) is written to the parameter "lost" reads all ones,
 * as that of a device that has fallen off the bus.
 */
#include <linux/mdev.h>
#include <linux/module.h>
#include <linux/pci.h>

/* mtty as it is, but as a part of this module. */
#pragma push_macro("module_init")
#pragma push_macro("module_exit")
#undef module_init
#undef module_exit
#define module_init(function)
#define module_exit(function)
#include "mtty.c"
#pragma pop_macro("module_init")
#pragma pop_macro("module_exit")

static int lost = -1;
module_param(lost, int, 0644);

static struct pci_bus *bus0;
static struct pci_ops *real_ops;

static int lossy_read(struct pci_bus *bus, unsigned int devfn, int where,
		      int size, u32 *value)
{
	if (devfn != READ_ONCE(lost))
		return real_ops->read(bus, devfn, where, size, value);
	PCI_SET_ERROR_RESPONSE(value);
	return PCIBIOS_DEVICE_NOT_FOUND;
}

static int lossy_write(struct pci_bus *bus, unsigned int devfn, int where,
		       int size, u32 value)
{
	if (devfn != READ_ONCE(lost))
		return real_ops->write(bus, devfn, where, size, value);
	return PCIBIOS_DEVICE_NOT_FOUND;
}

static struct pci_ops lossy_ops = {
	.read = lossy_read,
	.write = lossy_write,
};

/* A type embeds its kobject, so every parent needs types of its own. */
struct labgpu {
	struct mdev_parent parent;
	struct mtty_type types[ARRAY_SIZE(mtty_types)];
	struct mdev_type *pointers[ARRAY_SIZE(mtty_types)];
};

static int labgpu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct labgpu *gpu = devm_kzalloc(&pdev->dev, sizeof(*gpu), GFP_KERNEL);
	int i;

	if (!gpu)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(mtty_types); i++) {
		gpu->types[i].nr_ports = mtty_types[i].nr_ports;
		gpu->types[i].type.sysfs_name = mtty_types[i].type.sysfs_name;
		gpu->types[i].type.pretty_name =
			mtty_types[i].type.pretty_name;
		gpu->pointers[i] = &gpu->types[i].type;
	}
	pci_set_drvdata(pdev, gpu);
	return mdev_register_parent(&gpu->parent, &pdev->dev, &mtty_driver,
				    gpu->pointers, ARRAY_SIZE(gpu->pointers));
}

static void labgpu_remove(struct pci_dev *pdev)
{
	struct labgpu *gpu = pci_get_drvdata(pdev);

	mdev_unregister_parent(&gpu->parent);
}

static const struct pci_device_id labgpu_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{ }
};
MODULE_DEVICE_TABLE(pci, labgpu_ids);

static struct pci_driver labgpu_driver = {
	.name = "labgpu",
	.id_table = labgpu_ids,
	.probe = labgpu_probe,
	.remove = labgpu_remove,
};

static int __init labgpu_init(void)
{
	int ret = mtty_dev_init();

	if (ret)
		return ret;
	ret = pci_register_driver(&labgpu_driver);
	if (ret) {
		mtty_dev_exit();
		return ret;
	}
	bus0 = pci_find_bus(0, 0);
	if (bus0)
		real_ops = pci_bus_set_ops(bus0, &lossy_ops);
	return 0;
}

static void __exit labgpu_exit(void)
{
	if (bus0)
		pci_bus_set_ops(bus0, real_ops);
	pci_unregister_driver(&labgpu_driver);
	mtty_dev_exit();
}

module_init(labgpu_init);
module_exit(labgpu_exit);
