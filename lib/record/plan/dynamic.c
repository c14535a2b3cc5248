// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lines that define events for a recording, and those of the presets. */
#include "record/plan/plan.h"

const char *dynamic_behind_kind(const char *line)
{
	if (!islower((unsigned char)*line++))
		return NULL;
	line += strspn(line, "0123456789");
	return *line == ':' ? line + 1 : NULL;
}

bool dynamic_event_defined(const char *text)
{
	return dynamic_behind_kind(text) && strchr(text, ' ');
}

static bool dynamic_is_word(const char *s, size_t len)
{
	return len && !isdigit((unsigned char)*s) && word_len(s, len, "") == len;
}

char *dynamic_event_name(const char *line, const char **why)
{
	const char *group = dynamic_behind_kind(line), *slash, *end;
	char *name;

	*why = "names no GROUP/EVENT, as in p:virt/kick";
	if (!group)
		return NULL;
	end = group + strcspn(group, " ");
	slash = memchr(group, '/', (size_t)(end - group));
	if (!slash || !dynamic_is_word(group, (size_t)(slash - group)) ||
	    !dynamic_is_word(slash + 1, (size_t)(end - slash - 1)))
		return NULL;
	*why = "one line is one event";
	if (strchr(line, '\n'))
		return NULL;
	*why = "out of memory";
	name = str_printf("%.*s", (int)(end - group), group);
	if (name)
		name[slash - group] = ':';
	return name;
}

/*
 * Buffers that drivers add (virtqueue_add_sgs() ... of drivers/virtio/virtio_ring.c): device is dev->index of
 * vq->vdev. length of struct scatterlist is behind page_link and offset; an entry has 32 bytes on 64-bit
 * machines (CONFIG_NEED_SG_DMA_LENGTH, which arm64 and x86 select). virtqueue_add_sgs() takes lists: the
 * first entry of each, with the low byte of page_link, where SG_END is. The others take one list of
 * descriptors.
 */
/* clang-format off */
#define QUEUE(event, function) "p:virtio/" event " " function \
	" device=+0(+32($arg1)):s32 queue=+0(+24($arg1)):string "
#define LIST(i, at) " len" i "=+12(+" at "($arg2)):u32 end" i "=+0(+" at "($arg2)):u8"
#define LISTS LIST("0", "0") LIST("1", "8") LIST("2", "16") LIST("3", "24")
#define LENGTHS " len0=+12($arg2):u32 len1=+44($arg2):u32 len2=+76($arg2):u32 len3=+108($arg2):u32" \
	" len4=+140($arg2):u32 len5=+172($arg2):u32 len6=+204($arg2):u32 len7=+236($arg2):u32"
#define ADDS_OUT(event, function) QUEUE(event, function) "out=$arg3:u32" LENGTHS
#define ADDS_IN(event, function) QUEUE(event, function) "in=$arg3:u32" LENGTHS
/* clang-format on */

const char *const *dynamic_preset(const char *name)
{
	/*
	 * struct virtqueue begins with list (16 bytes), callback (8) and name, Linux 3.x to
	 * 7.x (include/linux/virtio.h). The transports' notify functions are called by pointer, where
	 * virtqueue_notify() is inlined into some of its callers. ioeventfd_write() of virt/kvm/eventfd.c has
	 * the address third.
	 */
	static const char *const virtio[] = {
		"p:virtio/kick vp_notify vq=$arg1:x64 queue=+0(+24($arg1)):string",
		"p:virtio/kick_mmio vm_notify vq=$arg1:x64 queue=+0(+24($arg1)):string",
		"p:virtio/interrupt vring_interrupt irq=$arg1:s32 vq=$arg2:x64 queue=+0(+24($arg2)):string",
		QUEUE("add", "virtqueue_add_sgs") "out=$arg3:u32 in=$arg4:u32" LISTS,
		ADDS_OUT("add_out", "virtqueue_add_outbuf"),
		ADDS_OUT("add_out_premapped", "virtqueue_add_outbuf_premapped"),
		ADDS_IN("add_in", "virtqueue_add_inbuf"),
		ADDS_IN("add_in_ctx", "virtqueue_add_inbuf_ctx"),
		ADDS_IN("add_in_premapped", "virtqueue_add_inbuf_premapped"),
		ADDS_IN("add_in_cache_clean", "virtqueue_add_inbuf_cache_clean"),
		"p:virtio/doorbell ioeventfd_write addr=$arg3:x64",
		"p:virtio/signal vhost_signal dev=$arg1:x64 vq=$arg2:x64",
		NULL,
	};
	/*
	 * A guest's request on its way through QEMU (trace-events of accel/kvm, system and hw/virtio): KVM
	 * gives a vCPU back, a device's registers are read and written, a queue is kicked, a request taken
	 * and returned, the guest notified; and the VM stopped, which moves its clock.
	 */
	static const char *const qemu[] = {
		"sdt_qemu:kvm_run_exit",
		"sdt_qemu:memory_region_ops_read",
		"sdt_qemu:memory_region_ops_write",
		"sdt_qemu:virtio_queue_notify",
		"sdt_qemu:virtqueue_pop",
		"sdt_qemu:virtqueue_fill",
		"sdt_qemu:virtio_notify",
		"sdt_qemu:virtio_notify_irqfd",
		"sdt_qemu:vm_state_notify",
		NULL,
	};

	if (!strcmp(name, "qemu"))
		return qemu;
	return strcmp(name, "virtio") ? NULL : virtio;
}
