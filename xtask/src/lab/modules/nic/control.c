// SPDX-License-Identifier: GPL-2.0
/* The files in debugfs that show the counters of a group and take the lines that change them. */
#include <linux/debugfs.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "fsnic.h"

static int show(struct seq_file *file, void *unused)
{
	struct group *group = file->private;
	unsigned int i;
	u64 now_ns;

	seq_puts(file, "name\tvalue\tnow_ns\tsince_ns\tbase\tper_ms\ton_ms\tperiod_ms\tfor_ms\tbits\tsaturates\t"
		       "hidden\terror\n");
	spin_lock(&group->lock);
	now_ns = ktime_get_ns();
	for (i = 0; i < group->count; i++) {
		const struct counter *c = &group->counters[i];

		seq_printf(file, "%s\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%llu\t%u\t%d\t%d\t%d\n", c->name,
			   counter_at(c, now_ns), now_ns, c->since_ns, c->value, c->per_ms, c->on_ms, c->period_ms,
			   c->for_ms, c->bits, c->saturates, c->hidden, c->error);
	}
	spin_unlock(&group->lock);
	return 0;
}

static int open(struct inode *inode, struct file *file)
{
	return single_open(file, show, inode->i_private);
}

static ssize_t write(struct file *file, const char __user *from, size_t size, loff_t *position)
{
	struct group *group = ((struct seq_file *)file->private_data)->private;
	u64 now_ns;
	char *text, *rest, *line;
	int error = 0;

	if (size > PAGE_SIZE)
		return -E2BIG;
	text = memdup_user_nul(from, size);
	if (IS_ERR(text))
		return PTR_ERR(text);
	/* A reader of ethtool's statistics counts the names first, and holds this lock meanwhile. */
	rtnl_lock();
	spin_lock(&group->lock);
	now_ns = ktime_get_ns();
	rest = text;
	while (!error && (line = strsep(&rest, "\n")))
		if (*line)
			error = group_line(group, line, &now_ns);
	spin_unlock(&group->lock);
	netdev_changed(group->nic);
	rtnl_unlock();
	kfree(text);
	return error ? error : size;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = open,
	.read = seq_read,
	.write = write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* The folder keeps its name when the network device is given another one. */
void control_add(struct nic *nic, struct dentry *parent)
{
	char name[16];
	int i;

	snprintf(name, sizeof(name), "fsnic%d", nic->platform->id);
	nic->folder = debugfs_create_dir(name, parent);
	for (i = 0; i < GROUPS; i++)
		debugfs_create_file(nic->groups[i].file, 0600, nic->folder, &nic->groups[i], &operations);
	health_control(nic);
}
