//! Timelines: sets of times, summaries, and files that are read back.

use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use std::collections::BTreeSet;
use zkhost_engine::ids::{DeviceId, JobKey, PartitionKey, SlotId, Time};
use zkhost_engine::timeline::{Category, Gap, Intervals, Span, Timeline, Track};

const MILLISECOND: u64 = 1_000_000;

fn slot(index: u16) -> Track {
    Track::Slot(SlotId { device: DeviceId(0), index })
}

/// Spans given in milliseconds.
fn timeline(spans: &[(Track, Category, u64, u64, u64)]) -> Timeline {
    let mut timeline = Timeline::default();
    for &(track, category, start, end, bytes) in spans {
        timeline.push(Span {
            track,
            category,
            name: category.name().into(),
            partition: Some(PartitionKey { job: JobKey(3), index: 1 }),
            start: Time(start * MILLISECOND),
            end: Time(end * MILLISECOND),
            bytes,
        });
    }
    timeline
}

/// Two slots of one device: copies of one behind kernels of the other, two gaps.
fn two_slots() -> Timeline {
    timeline(&[
        (Track::Synthesis(0), Category::Synthesis, 0, 10, 0),
        (slot(0), Category::Proving, 10, 60, 0),
        (slot(0), Category::Copy, 10, 20, 500_000_000),
        (slot(0), Category::Kernel, 20, 60, 0),
        (slot(1), Category::Proving, 15, 100, 0),
        (slot(1), Category::Copy, 30, 40, 500_000_000),
        (slot(1), Category::Kernel, 60, 90, 0),
        (slot(0), Category::Proving, 120, 140, 0),
        (slot(0), Category::Kernel, 120, 140, 0),
        (Track::Synthesis(0), Category::Synthesis, 105, 115, 0),
        (Track::Check(0), Category::Verification, 100, 105, 0),
    ])
}

#[test]
fn intervals_equal_sets_of_points() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..500 {
        let mut draw = || {
            let pairs: Vec<_> = (0..rng.next_u64() % 8)
                .map(|_| {
                    let start = rng.next_u64() % 60;
                    (start, start + rng.next_u64() % 12)
                })
                .collect();
            let points: BTreeSet<_> = pairs.iter().flat_map(|&(start, end)| start..end).collect();
            (pairs.into_iter().collect::<Intervals>(), points)
        };
        let ((a, a_points), (b, b_points)) = (draw(), draw());
        let points = |set: &Intervals| set.iter().flat_map(|(start, end)| start..end).collect::<Vec<_>>();
        assert_eq!(points(&a), a_points.iter().copied().collect::<Vec<_>>());
        assert_eq!(points(&a.intersect(&b)), a_points.intersection(&b_points).copied().collect::<Vec<_>>());
        assert_eq!(points(&a.minus(&b)), a_points.difference(&b_points).copied().collect::<Vec<_>>());
        assert_eq!(a.nanos(), a_points.len() as u64);
    }
}

#[test]
fn a_summary_has_busy_time_hidden_copies_and_every_gap_once() {
    let summary = two_slots().summary();
    let device = &summary.devices[0];
    assert!(device.by_device_events);
    let ms = |nanos| nanos / MILLISECOND;
    assert_eq!((ms(device.wall_nanos), ms(device.busy_nanos)), (130, 90));
    assert_eq!((ms(device.copy_nanos), ms(device.hidden_copy_nanos), device.copied_bytes), (20, 10, 1_000_000_000));
    let gaps: Vec<_> = device.gaps.iter().map(|&(gap, nanos)| (gap, ms(nanos))).collect();
    assert_eq!(
        gaps,
        [(Gap::Copy, 10), (Gap::Host, 10), (Gap::Synthesis, 10), (Gap::Verification, 5), (Gap::NoWork, 5)]
    );
    let sum: u64 = gaps.iter().map(|(_, nanos)| nanos).sum();
    assert_eq!(sum + 90, 130, "busy and idle make up the wall time");
    let text = summary.to_string();
    assert!(text.contains("device 0: kernels busy 69.2 % of 130.0 ms"), "{text}");
    assert!(text.contains("copied 1000.0 MB at 50.0 GB/s, 50 % behind kernels of other slots"), "{text}");
    assert!(text.contains("idle       10.0 ms (7.7 %): waiting for synthesis"), "{text}");
}

#[test]
fn copies_at_the_same_time_use_the_link_once_and_hide_nothing() {
    let timeline = timeline(&[
        (slot(0), Category::Proving, 0, 30, 0),
        (slot(0), Category::Copy, 0, 20, 1_000_000),
        (slot(0), Category::Kernel, 20, 30, 0),
        (slot(1), Category::Proving, 0, 30, 0),
        (slot(1), Category::Copy, 10, 30, 1_000_000),
    ]);
    let device = &timeline.summary().devices[0];
    let ms = |nanos| nanos / MILLISECOND;
    assert_eq!((ms(device.link_nanos), ms(device.copy_nanos), ms(device.hidden_copy_nanos)), (30, 40, 10));
}

#[test]
fn a_trace_is_read_back_as_it_was() {
    let timeline = two_slots();
    let mut bytes = vec![];
    timeline.write_trace(&mut bytes).unwrap();
    assert_eq!(Timeline::read_trace(&bytes).unwrap(), timeline);
    let trace: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| event["args"]["name"] == "device 0 slot 1"));
    let kernel = events.iter().find(|event| event["cat"] == "kernel").unwrap();
    assert_eq!((&kernel["ts"], &kernel["dur"]), (&20_000.0.into(), &40_000.0.into()), "in microseconds");
}

#[test]
fn what_is_no_trace_is_refused_with_a_sentence() {
    let event = r#"{"ph":"X","cat":"kernel","pid":1,"tid":1,"args":{"start_ns":1,"end_ns":2}}"#;
    let trace = |event: &str| format!(r#"{{"traceEvents":[{event}]}}"#);
    assert!(Timeline::read_trace(trace(event).as_bytes()).is_ok());
    for (bad, expected) in [
        ("".to_owned(), "the trace is not JSON"),
        ("[]".to_owned(), "the trace has no list \"traceEvents\""),
        (trace(&event.replace("kernel", "lunch")), "event 0 of the trace: its category is none of ours"),
        (trace(&event.replace(r#""tid":1"#, r#""tid":99999999"#)), "event 0 of the trace: its process and thread"),
        (trace(&event.replace(r#""end_ns":2"#, r#""end_ns":0"#)), "event 0 of the trace: it has no start and end"),
        (trace(&event.replace("args", "arms")), "event 0 of the trace: it has no \"args\""),
    ] {
        let error = Timeline::read_trace(bad.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_waterfall_has_a_bar_for_every_span_and_a_row_for_every_worker() {
    let timeline = two_slots();
    let svg = timeline.waterfall_svg();
    assert_eq!(svg.matches("<title>").count(), timeline.spans().count());
    for row in ["device 0 slot 0", "device 0 slot 1", "synthesis 0", "check 0"] {
        assert!(svg.contains(&format!(">{row}</text>")), "{row}");
    }
    assert!(Timeline::default().waterfall_svg().ends_with("</svg>\n"), "an empty one is a picture too");
}

#[test]
fn a_copy_of_what_is_new_goes_on_from_the_mark_of_the_last() {
    let mut whole = two_slots();
    let first = whole.since(0);
    assert_eq!((&first, first.mark()), (&whole, 11));
    assert_eq!(whole.since(first.mark()).spans().count(), 0);
    let new = timeline(&[(slot(0), Category::Kernel, 1, 2, 0), (slot(1), Category::Copy, 0, 1, 7)]);
    new.spans().for_each(|span| whole.push(span.clone()));
    let second = whole.since(first.mark());
    assert!(second.spans().eq(new.spans()));
    assert_eq!(second.mark(), whole.mark());
    assert_eq!(whole.since(u64::MAX).spans().count(), 0, "a mark of another timeline gives nothing");
}
