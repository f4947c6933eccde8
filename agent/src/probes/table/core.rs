//! `ib_core`: objects, pinned memory, address tables and limits, the same for all drivers.

use super::super::{Hook, Layer};
use super::row;

const MODULES: &[&str] = &["ib_core", "ib_uverbs", "ib_uverbs_support"];

const fn core(name: &'static str, functions: &'static [&'static str]) -> Hook {
    row(Layer::Core, MODULES, name, functions)
}

pub(super) const ROWS: &[Hook] = &[
    core("umem_get", &["__ib_umem_get_va", "ib_umem_get"]).long(),
    core("umem_dmabuf_get", &["ib_umem_dmabuf_get_with_dma_device", "ib_umem_dmabuf_get"]).long(),
    core("umem_odp_get", &["ib_umem_odp_get"]).long(),
    core("destroy_cq", &["ib_destroy_cq_user"]),
    core("destroy_qp", &["ib_destroy_qp_user"]),
    core("destroy_srq", &["ib_destroy_srq_user"]),
    core("dereg_mr", &["ib_dereg_mr_user"]),
    core("dealloc_pd", &["ib_dealloc_pd_user"]),
    core("destroy_ah", &["rdma_destroy_ah_user"]),
    core("get_gid_attr", &["rdma_get_gid_attr"]).long(),
    core("resolve_ethernet", &["rdma_addr_find_l2_eth_by_grh"]),
    core("cgroup_charge", &["ib_rdmacg_try_charge"]),
    core("umem_get_described", &["ib_umem_get_attr_or_va", "ib_umem_get_attr"]).long().session(),
    core("umem_dmabuf_get_pinned", &["ib_umem_dmabuf_get_pinned_with_dma_device", "ib_umem_dmabuf_get_pinned"])
        .long()
        .session(),
    core("umem_dmabuf_get_revocable", &["ib_umem_dmabuf_get_pinned_revocable_and_lock"]).long().session(),
    core("umem_dmabuf_map_pages", &["ib_umem_dmabuf_map_pages"]).session(),
    core("umem_odp_alloc_implicit", &["ib_umem_odp_alloc_implicit"]).long().session(),
    core("umem_odp_alloc_child", &["ib_umem_odp_alloc_child"]).long().session(),
    core("umem_odp_map", &["ib_umem_odp_map_dma_and_lock"]).session(),
    core("umem_copy_from", &["ib_umem_copy_from"]).session(),
    core("create_qp_user", &["ib_create_qp_user"]).long().session(),
    core("modify_qp_user", &["ib_modify_qp_with_udata"]).session(),
    core("modify_qp_inner", &["_ib_modify_qp"]).session(),
    core("create_srq_user", &["ib_create_srq_user"]).long().session(),
    core("create_ah_user", &["rdma_create_user_ah"]).long().session(),
    core("alloc_xrcd", &["ib_alloc_xrcd_user"]).long().session(),
    core("dealloc_xrcd", &["ib_dealloc_xrcd_user"]).session(),
    core("destroy_wq", &["ib_destroy_wq_user"]).session(),
    core("query_qp", &["ib_query_qp"]).session(),
    core("query_port", &["ib_query_port"]).session(),
    core("query_gid", &["rdma_query_gid"]).session(),
    core("resolve_ip", &["rdma_resolve_ip"]).session(),
    core("bind_counter", &["rdma_counter_bind_qp_auto"]).session(),
    core("unbind_counter", &["rdma_counter_unbind_qp"]).session(),
    core("restrack_get", &["rdma_restrack_get"]).session(),
    core("user_mmap_io", &["rdma_user_mmap_io"]).session(),
    core("mmap_entry_insert", &["rdma_user_mmap_entry_insert_range"]).session(),
];
