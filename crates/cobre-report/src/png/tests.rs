use super::*;

fn panel(at: Positions, series: Vec<Series>) -> Panel {
    Panel {
        id: "storage".to_owned(),
        title: "Water stored".to_owned(),
        about: String::new(),
        pick: "Reservoir".to_owned(),
        x: "stage".to_owned(),
        at,
        views: vec![
            View::scaled("All", "storage", "hm³", series.clone()),
            View::scaled("São Simão / 2", "storage", "hm³", series),
        ],
    }
}

/// The colours of the pixels of a picture, and how many have each.
fn colors(bytes: &[u8]) -> std::collections::HashMap<[u8; 3], usize> {
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .expect("a picture");
    let mut data = vec![0; reader.output_buffer_size().expect("it has a size")];
    reader.next_frame(&mut data).expect("it is whole");
    let mut counts = std::collections::HashMap::new();
    for pixel in data.chunks_exact(3) {
        *counts.entry([pixel[0], pixel[1], pixel[2]]).or_insert(0) += 1;
    }
    counts
}

#[test]
fn what_is_switched_on_is_painted() {
    let line = Series::new("median", SeriesMark::Line, 0, vec![1.0, 2.0, 3.0]);
    let single = Series {
        scenario: Some(0),
        ..Series::new("scenario 4", SeriesMark::Line, 1, vec![3.0, 2.0, 1.0])
    };
    let panel = panel(Positions::Numbers(vec![1.0, 2.0, 3.0]), vec![line, single]);
    let paint = |shown: bool| {
        let single = Single {
            scenario: 3,
            name: String::new(),
            shown,
        };
        colors(&picture(&panel, &panel.views[0], &[single]))
    };
    let (blue, vermilion) = ([0, 0x72, 0xb2], [0xd5, 0x5e, 0]);
    assert!(paint(true).contains_key(&blue) && paint(true).contains_key(&vermilion));
    assert!(paint(false).contains_key(&blue) && !paint(false).contains_key(&vermilion));
}

#[test]
fn a_lonely_stage_is_painted() {
    let high = Series::band("all", 0, 100, vec![1.0], vec![4.0]);
    let dot = Series::new("median", SeriesMark::Line, 1, vec![2.0]);
    let bar = Series::new("bar", SeriesMark::Bar, 2, vec![2.0]);
    let panel = panel(Positions::Numbers(vec![1.0]), vec![high, dot, bar]);
    let found = colors(&picture(&panel, &panel.views[0], &[]));
    for color in [[0, 0x72, 0xb2], [0xd5, 0x5e, 0], [0, 0x9e, 0x73]] {
        assert!(found.get(&color).copied().unwrap_or(0) > 20, "{color:?}");
    }
}

#[test]
fn missing_values_and_nothing_at_all_do_no_harm() {
    let gaps = Series::new("x", SeriesMark::Line, 0, vec![f64::NAN, 1.0, f64::NAN]);
    let panel_of = panel(Positions::Numbers(vec![1.0, 2.0, 3.0]), vec![gaps]);
    picture(&panel_of, &panel_of.views[0], &[]);
    let empty = panel(Positions::Names(Vec::new()), Vec::new());
    picture(&empty, &empty.views[0], &[]);
}

#[test]
fn files_are_named_by_panel_and_view() {
    let panel = panel(Positions::Numbers(vec![1.0]), Vec::new());
    assert_eq!(file_name(&panel, 0), "storage.png");
    assert_eq!(file_name(&panel, 1), "storage-02-s-o-sim-o---2.png");
}

#[test]
fn a_ribbon_has_the_same_colour_in_the_legend() {
    let band = |name: &str, tint: u8, low: f64| {
        Series::band(name, 0, tint, vec![low; 3], vec![10.0 - low; 3])
    };
    let bands = vec![band("all", 14, 1.0), band("half", 32, 3.0)];
    let panel = panel(Positions::Numbers(vec![1.0, 2.0, 3.0]), bands);
    let found = colors(&picture(&panel, &panel.views[0], &[]));
    let like = |wanted: [u8; 3]| {
        let near = |color: &[u8; 3]| (0..3).all(|part| color[part].abs_diff(wanted[part]) < 3);
        let counts = found.iter().filter(|(color, _)| near(color));
        counts.map(|(_, count)| *count).sum::<usize>()
    };
    assert!(like([148, 196, 222]) > 10_000, "{found:?}");
    // What the inner one is on white ground, where it never lies.
    assert_eq!(like([173, 210, 230]), 0, "{found:?}");
}

#[test]
fn a_stage_between_stages_without_values_is_painted() {
    let gaps = || vec![f64::NAN, 4.0, f64::NAN];
    let low = vec![f64::NAN, 1.0, f64::NAN];
    let series = vec![
        Series::band("all", 0, 100, low, gaps()),
        Series::new("median", SeriesMark::Line, 1, gaps()),
    ];
    let panel = panel(Positions::Numbers(vec![1.0, 2.0, 3.0]), series);
    let found = colors(&picture(&panel, &panel.views[0], &[]));
    for (color, legend) in [([0, 0x72, 0xb2], 600), ([0xd5, 0x5e, 0], 100)] {
        assert!(found[&color] > legend, "{color:?}: {}", found[&color]);
    }
}
