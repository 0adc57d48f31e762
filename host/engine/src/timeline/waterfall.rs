//! A timeline as one SVG picture: a row for each track, a bar for each span.

use super::{Category, Span, Timeline, Track};
use std::collections::BTreeSet;
use std::fmt::Write;

const WIDTH: f64 = 1400.0;
const LABEL_WIDTH: f64 = 150.0;
const ROW_HEIGHT: f64 = 26.0;
const HEADER_HEIGHT: f64 = 46.0;
/// Bars narrower than this, in pixels, are drawn this wide.
const BAR_WIDTH_MIN: f64 = 0.5;
/// Ticks on the time axis.
const TICKS: u32 = 10;

fn colour(category: Category) -> &'static str {
    match category {
        Category::Synthesis => "#4e79a7",
        Category::Queue => "#bab0ac",
        Category::KeyLoad => "#b07aa1",
        Category::Proving => "#d3e6c9",
        Category::Copy => "#f28e2b",
        Category::Kernel => "#59a14f",
        Category::Verification => "#edc948",
        Category::Release => "#9c755f",
        Category::Assembly => "#e15759",
    }
}

/// Kernels and copies are drawn inside their slot's bar: kernels in its upper half, copies in its lower.
fn rows(category: Category) -> (f64, f64) {
    match category {
        Category::Kernel => (3.0, 10.0),
        Category::Copy => (13.0, 10.0),
        _ => (3.0, 20.0),
    }
}

impl Timeline {
    /// The picture. Hovering a bar names it.
    pub fn waterfall_svg(&self) -> String {
        // The queue has as many spans at once as there are partitions waiting, which no row can show.
        let drawn = || self.spans().filter(|span| span.track != Track::Queue);
        let tracks: Vec<_> = drawn().map(|span| span.track).collect::<BTreeSet<_>>().into_iter().collect();
        let (start, end) = self.range().map_or((0, 1), |(start, end)| (start.0, end.0.max(start.0 + 1)));
        let x = |nanos: u64| LABEL_WIDTH + (nanos - start) as f64 / (end - start) as f64 * (WIDTH - LABEL_WIDTH - 10.0);
        let height = HEADER_HEIGHT + ROW_HEIGHT * tracks.len() as f64 + 10.0;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" \
             font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        legend(&mut svg);
        for tick in 0..=TICKS {
            let nanos = start + (end - start) / u64::from(TICKS) * u64::from(tick);
            let (x, ms) = (x(nanos), (nanos - start) as f64 / 1e6);
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {HEADER_HEIGHT}V{height}\" stroke=\"#ddd\"/><text x=\"{x:.1}\" y=\"40\">{ms:.1} ms</text>"
            );
        }
        for (row, track) in tracks.iter().enumerate() {
            let y = HEADER_HEIGHT + ROW_HEIGHT * row as f64;
            let _ = writeln!(svg, "<text x=\"5\" y=\"{:.1}\">{track}</text>", y + 17.0);
            let mut spans: Vec<_> = drawn().filter(|span| span.track == *track).collect();
            spans.sort_by_key(|span| matches!(span.category, Category::Kernel | Category::Copy));
            for span in spans {
                bar(&mut svg, span, (x(span.start.0), x(span.end.0)), y);
            }
        }
        svg.push_str("</svg>\n");
        svg
    }
}

fn legend(svg: &mut String) {
    for (i, category) in Category::ALL.into_iter().filter(|&category| category != Category::Queue).enumerate() {
        let x = LABEL_WIDTH + 120.0 * i as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"8\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"18\">{}</text>",
            colour(category),
            x + 16.0,
            category.name()
        );
    }
}

fn bar(svg: &mut String, span: &Span, (left, right): (f64, f64), y: f64) {
    let (top, height) = rows(span.category);
    let partition = span.partition.map_or(String::new(), |key| format!(", job {} partition {}", key.job.0, key.index));
    let _ = writeln!(
        svg,
        "<rect x=\"{left:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{height}\" fill=\"{}\"><title>{}{partition}: {:.3} ms\
         </title></rect>",
        y + top,
        (right - left).max(BAR_WIDTH_MIN),
        colour(span.category),
        escaped(&span.name),
        span.nanos() as f64 / 1e6
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
