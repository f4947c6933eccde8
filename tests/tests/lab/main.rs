//! The agent on real kernels with soft-RoCE: one machine for each kernel and scenario, read by several tests.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a step that fails is a failed test")]

mod bare;
mod bursts;
mod bursts_roce;
mod bursts_tcp;
mod calls;
mod counters;
mod daemon;
mod drivers;
mod exporter;
mod fast;
mod health;
mod leftovers;
mod load;
mod nic;
mod notices;
mod pause;
mod programs;
mod receive;
mod reload;
mod requests;
mod siw;
mod sources;
mod storms;
mod unit;

/// The tests of every kernel. Adding a kernel to the tests is one row here; the lab and the tables of facts must know
/// it too.
macro_rules! kernels {
    ($($module:ident = $kernel:literal,)+) => { $(
        mod $module {
            use tests::scenario::Run;

            use crate::{
                bare, bursts, bursts_roce, bursts_tcp, calls, counters, daemon, drivers, exporter, fast, health, leftovers, load, nic,
                notices, pause, programs, receive, reload, requests, siw, sources, storms, unit,
            };

            static FACTS: Run = Run::new($kernel, &calls::FACTS);
            static CALLS: Run = Run::new($kernel, &calls::CALLS);
            static LOAD: Run = Run::new($kernel, &load::SCENARIO);
            static PROGRAMS: Run = Run::new($kernel, &programs::SCENARIO);
            static DAEMON: Run = Run::new($kernel, &daemon::SCENARIO);
            static DRIVERS: Run = Run::with($kernel, &drivers::SCENARIO, tests::modules::siw);
            static HEALTH: Run = Run::new($kernel, &health::SCENARIO);
            static LEFTOVERS: Run = Run::new($kernel, &leftovers::SCENARIO);
            static NOTICES: Run = Run::new($kernel, &notices::SCENARIO);
            static RELOAD: Run = Run::new($kernel, &reload::SCENARIO);
            static PAUSE: Run = Run::new($kernel, &pause::SCENARIO);
            static RECEIVE: Run = Run::new($kernel, &receive::SCENARIO);
            static STORMS: Run = Run::new($kernel, &storms::SCENARIO);
            static EXPORTER: Run = Run::with($kernel, &exporter::SCENARIO, tests::node_exporter::files);
            static UNIT: Run = Run::with($kernel, &unit::SCENARIO, unit::files).under_systemd();
            static FAST: Run = Run::new($kernel, &fast::SCENARIO);
            static COUNTERS: Run = Run::new($kernel, &counters::SCENARIO);
            static SIW: Run = Run::with($kernel, &siw::SCENARIO, tests::modules::siw);
            static SOURCES: Run = Run::new($kernel, &sources::SCENARIO);
            static BARE: Run = Run::new($kernel, &bare::SCENARIO);
            static NIC: Run = Run::new($kernel, &nic::SCENARIO);
            static ROCE: Run = Run::new($kernel, &bursts_roce::SCENARIO);
            static BURSTS: bursts::Run = bursts::Run::new($kernel);
            static TCP: bursts_tcp::Run = bursts_tcp::Run::new($kernel);

            kernels!(@tests
                known_calls_end_as_the_table_says: calls::facts(&FACTS),
                failing_calls_end_alike_from_all_threads: load::facts(&FACTS),
                a_hanging_call_hangs: daemon::hang_fact(&FACTS),
                each_failing_call_is_one_event_with_its_answer: calls::failures(&CALLS),
                refused_probing_shows_when_asked_for: calls::probes(&CALLS),
                memory_that_was_being_registered_is_told: requests::memory(&CALLS, "truth"),
                queue_pairs_that_were_being_changed_are_told: requests::queue_pairs(&CALLS, "truth"),
                completion_queues_that_were_being_made_are_told: requests::completion_queues(&CALLS, "truth"),
                probing_alone_makes_no_event: calls::probing(&CALLS),
                good_calls_make_no_event: calls::decoy(&CALLS),
                other_processes_make_no_event: calls::bystander(&CALLS),
                the_commands_status_is_passed_on: calls::status(&CALLS),
                a_storm_is_counted_to_the_call: load::storm(&LOAD),
                sleeping_calls_are_all_seen: load::block(&LOAD),
                the_daemons_counters_start_at_zero_and_are_exact: daemon::counters(&DAEMON),
                a_hanging_call_shows_while_it_hangs: daemon::hanging(&DAEMON),
                hooks_attach_when_tracefs_is_mounted_later: daemon::mounted_later(&DAEMON),
                every_row_attaches_whose_function_is_there: drivers::all(&DRIVERS),
                the_devices_of_drivers_are_found: drivers::devices_of_drivers(&DRIVERS),
                the_default_set_attaches_and_nothing_else: drivers::default_set(&DRIVERS),
                hooks_attach_by_what_misses_nothing: drivers::means(&DRIVERS),
                hooks_do_not_hold_drivers: drivers::drivers_are_not_held(&DRIVERS),
                functions_return_what_the_table_says: drivers::results_are_what_the_table_says(&DRIVERS),
                discovery_ends_in_the_default_set: drivers::discovery(&DRIVERS),
                the_maps_take_the_memory_that_is_said: drivers::memory(&DRIVERS),
                good_programs_show_what_strace_shows: programs::good(&PROGRAMS),
                calls_are_counted_as_strace_counts_them: programs::counted(&PROGRAMS),
                a_wrong_gid_index_is_named: programs::wrong_gid(&PROGRAMS),
                a_link_that_goes_down_and_up_is_told: notices::link(&NOTICES),
                a_changed_address_is_told: notices::gid(&NOTICES),
                a_hanging_call_is_named_while_it_hangs: notices::stuck(&NOTICES),
                hanging_calls_are_filtered_as_failures_are: notices::stuck_filters(&NOTICES),
                a_rejected_connection_is_told_with_its_reason: notices::rejected(&NOTICES),
                an_unreachable_peer_is_told: notices::unreachable(&NOTICES),
                a_refused_call_of_the_connection_manager_is_named: notices::refused_binding(&NOTICES),
                what_firmware_refuses_is_named_down_to_its_syndrome: notices::firmware(&NOTICES),
                hooks_follow_a_driver_that_is_reloaded: reload::reloaded(&RELOAD),
                a_device_may_go_while_it_is_in_use: reload::held(&RELOAD),
                hooks_of_a_flapping_driver_are_left_alone_for_a_while: reload::quarantined(&RELOAD),
                counters_are_those_of_sysfs: counters::same_as_sysfs(&COUNTERS),
                known_traffic_gives_known_counts: counters::known_traffic(&COUNTERS),
                network_devices_are_read_beside: counters::network_devices(&COUNTERS),
                pause_is_a_share_of_the_time_by_direction: pause::by_direction(&PAUSE),
                pause_is_said_in_words: pause::in_words(&PAUSE),
                counters_wrap_and_begin_again: pause::wraps_and_resets(&PAUSE),
                counters_that_fail_do_so_alone: pause::fails_alone(&PAUSE),
                a_device_that_answers_errors_is_left_alone: pause::left_alone(&PAUSE),
                polls_out_of_budget_are_told_by_time: receive::polls(&RECEIVE),
                polls_out_of_budget_are_shown: receive::polls_shown(&RECEIVE),
                completion_queues_are_told_by_vector: receive::vectors(&RECEIVE),
                a_storm_from_this_host_is_told_as_such: storms::cause(&STORMS),
                pause_with_progress_is_no_storm: storms::progress(&STORMS),
                a_host_that_is_stopped_is_a_victim: storms::victim(&STORMS),
                a_storm_that_the_driver_counts_is_one: storms::reported(&STORMS),
                wraps_and_resets_make_no_finding: storms::nothing_else(&STORMS),
                iwarp_is_told_from_roce: siw::told(&SIW),
                iwarp_counts_on_its_network_device: siw::counters(&SIW),
                known_iwarp_traffic_gives_known_bytes: siw::traffic(&SIW),
                what_soft_iwarp_refuses_is_named: siw::failures(&SIW),
                connections_of_iwarp_are_named_down_to_the_driver: siw::connections(&SIW),
                losses_are_told_by_what_they_make_necessary: exporter::loss(&EXPORTER),
                each_loss_of_soft_roce_s_link_is_counted: exporter::downs(&EXPORTER),
                node_exporter_says_the_same_where_it_says_anything: exporter::beside(&EXPORTER),
                fast_samples_measure_what_was_set: fast::occupancy(&FAST),
                fast_samples_are_finer_than_sysfs: fast::finer_than_sysfs(&FAST),
                slow_and_lost_sources_are_told: fast::told(&FAST),
                standard_statistics_are_taken_first: sources::standard(&SOURCES),
                optional_counters_are_read_once_they_are_on: sources::optional(&SOURCES),
                counters_of_queue_pairs_are_told_by_set: sources::bound(&SOURCES),
                health_reporters_are_those_of_devlink: sources::reporters(&SOURCES),
                each_loss_of_a_link_is_counted_and_dated: sources::links(&SOURCES),
                changes_of_links_survive_a_flood: sources::flooded(&SOURCES),
                members_of_a_bond_are_named: sources::bonds(&SOURCES),
                a_driver_that_is_reloaded_is_read_again: sources::reloaded(&SOURCES),
                devices_of_other_namespaces_are_read: sources::namespaces(&SOURCES),
                without_type_information_hooks_attach_by_other_means: bare::means(&BARE),
                without_type_information_failures_are_named_alike: bare::failures(&BARE),
                without_type_information_probes_are_told_apart: bare::probes(&BARE),
                the_nic_shows_what_is_set: nic::set(&NIC),
                the_nic_shows_pause_where_it_is_on: nic::pause_names(&NIC),
                the_nic_fails_where_it_is_told_to: nic::failing(&NIC),
                the_nic_counts_on_the_kernels_clock: nic::growth(&NIC),
                the_nic_comes_and_goes: nic::comes_and_goes(&NIC),
                the_nic_gets_into_trouble: nic::trouble(&NIC),
                the_nic_can_be_another_drivers: nic::another_driver(&NIC),
                a_nic_that_is_not_well_is_told: health::told(&HEALTH),
                a_driver_s_own_function_names_its_device: health::driver(&HEALTH),
                trouble_is_filtered_by_device: health::filtered(&HEALTH),
                ordinary_work_is_no_trouble: health::quiet(&HEALTH),
                trouble_is_counted: health::counted(&HEALTH),
                dropped_packets_are_counted_by_reason: health::drops(&HEALTH),
                a_receiver_that_does_not_follow_is_counted: health::napi(&HEALTH),
                objects_are_counted_against_their_limits: health::resources(&HEALTH),
                addresses_are_told_with_their_index: health::gids(&HEALTH),
                counting_may_be_switched_off: health::switched_off(&HEALTH),
                sampled_rocev2_is_what_the_driver_counts: bursts_roce::packets(&ROCE),
                lost_rocev2_shows_as_sent_again: bursts_roce::losses(&ROCE),
                sampled_packets_are_all_there_are: bursts::conserved(&BURSTS),
                tunnels_add_their_headers: bursts::packed(&BURSTS),
                bytes_sent_again_are_those_of_the_socket: bursts::sent_again(&BURSTS),
                marks_of_a_switch_are_counted_as_it_counts_them: bursts_tcp::marked(&TCP),
                marks_of_a_lossy_switch_are_told_from_losses: bursts_tcp::marked_and_lost(&TCP),
                retransmits_are_those_of_the_kernel: bursts_tcp::sent_again(&TCP),
                retransmits_arrive_marked_and_unharmed: bursts_tcp::marked_again(&TCP),
                the_sampler_attaches_by_what_the_kernel_has: bursts::means(&BURSTS),
                the_service_is_well_formed_and_closed: unit::form(&UNIT),
                the_service_attaches_what_root_attaches: unit::hooks(&UNIT),
                the_service_measures_what_root_measures: unit::measured(&UNIT),
                failures_are_in_the_journal: unit::failures(&UNIT),
                a_broken_configuration_is_refused_by_the_service: unit::refused(&UNIT),
                a_killed_service_is_cleaned_up_and_a_stopped_one_leaves_nothing: unit::left(&UNIT),
                nothing_is_left_after_the_end: leftovers::ended(&LEFTOVERS),
                halting_removes_what_a_killed_agent_left: leftovers::halted(&LEFTOVERS),
                nothing_runs_after_a_kill_and_the_next_start_cleans_up: leftovers::killed(&LEFTOVERS),
            );
        }
    )+ };
    (@tests $($name:ident: $check:expr,)+) => { $(
        #[test]
        fn $name() {
            $check;
        }
    )+ };
}

kernels! {
    kernel_6_1 = "6.1",
    kernel_6_12 = "6.12",
    kernel_7_3 = "7.3",
}
