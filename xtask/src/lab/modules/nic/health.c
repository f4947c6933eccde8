// SPDX-License-Identifier: GPL-2.0
/* The health reporter of an end in devlink, and the file in debugfs through which it reports. */
#include <linux/debugfs.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/version.h>
#include <net/devlink.h>

#include "fsnic.h"

struct health {
	struct devlink_health_reporter *reporter;
};

/* What is reported with a first `!` stays broken. */
static int recover(struct devlink_health_reporter *reporter, void *context, struct netlink_ext_ack *extack)
{
	const char *message = context;

	return message && *message == '!' ? -EIO : 0;
}

static const struct devlink_health_reporter_ops reporter_operations = {
	.name = "fw",
	.recover = recover,
};

static const struct devlink_ops operations = {};

static ssize_t write(struct file *file, const char __user *from, size_t size, loff_t *position)
{
	struct health *health = devlink_priv(file->private_data);
	char *text, *message;
	bool stays;
	int error;

	if (size > PAGE_SIZE)
		return -E2BIG;
	text = memdup_user_nul(from, size);
	if (IS_ERR(text))
		return PTR_ERR(text);
	message = strim(text);
	stays = *message == '!';
	error = devlink_health_report(health->reporter, message, message);
	kfree(text);
	/* That nothing recovered is what was asked for. */
	return error && !stays ? error : size;
}

static const struct file_operations file_operations = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = write,
};

int health_start(struct nic *nic)
{
	struct health *health;
	int error;

	nic->devlink = devlink_alloc(&operations, sizeof(*health), &nic->platform->dev);
	if (!nic->devlink)
		return -ENOMEM;
	health = devlink_priv(nic->devlink);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 18, 0)
	health->reporter = devlink_health_reporter_create(nic->devlink, &reporter_operations, 0, nic);
#else
	health->reporter = devlink_health_reporter_create(nic->devlink, &reporter_operations, nic);
#endif
	if (IS_ERR(health->reporter)) {
		error = PTR_ERR(health->reporter);
		devlink_free(nic->devlink);
		return error;
	}
	devlink_register(nic->devlink);
	return 0;
}

void health_control(struct nic *nic)
{
	debugfs_create_file("health", 0200, nic->folder, nic->devlink, &file_operations);
}

void health_end(struct nic *nic)
{
	struct health *health = devlink_priv(nic->devlink);

	devlink_unregister(nic->devlink);
	devlink_health_reporter_destroy(health->reporter);
	devlink_free(nic->devlink);
}
