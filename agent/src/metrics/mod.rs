//! Prometheus.
