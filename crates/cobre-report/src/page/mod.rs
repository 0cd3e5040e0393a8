//! The page: words and tables as HTML, charts as data that the scripts of the page draw.

use std::fmt::Write;

use cobre_results::layout::REPORT_MARK;
use serde::Serialize;

use crate::Report;
use crate::chart::{Panel, Section, TextTable};
use crate::palette::COLORS;
use crate::simulation::Single;

const STYLE: &str = include_str!("page.css");
/// In the order they build on each other.
const SCRIPTS: [&str; 6] = [
    include_str!("numbers.js"),
    include_str!("elements.js"),
    include_str!("plot.js"),
    include_str!("rows.js"),
    include_str!("panel.js"),
    include_str!("page.js"),
];

/// The data of the charts, as the scripts of the page read them.
#[derive(Serialize)]
struct Data<'r> {
    singles: &'r [Single],
    panels: Vec<&'r Panel>,
}

/// True if a file that begins with these bytes is a report.
pub(crate) fn is_own(head: &[u8]) -> bool {
    let beginning = &head[..head.len().min(2048)];
    beginning
        .windows(REPORT_MARK.len())
        .any(|part| part == REPORT_MARK.as_bytes())
}

/// The whole page.
pub(crate) fn html(report: &Report) -> String {
    let panels = report.sections.iter().flat_map(|section| &section.panels);
    let data = Data {
        singles: &report.singles,
        panels: panels.collect(),
    };
    let title = escaped(&report.name);
    let mut body = String::new();
    head(report, &mut body);
    for section in &report.sections {
        self::section(section, &mut body);
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         {REPORT_MARK}{version}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title} – Cobre report</title>\n<style>\n{colors}{STYLE}</style>\n</head>\n<body>\n\
         {body}{foot}\
         <script type=\"application/json\" id=\"data\">{data}</script>\n\
         <script>\n(() => {{\n\"use strict\";\n{scripts}}})();\n</script>\n</body>\n</html>\n",
        version = escaped(env!("CARGO_PKG_VERSION")),
        colors = colors(),
        foot = foot(report),
        data = quoted(&data),
        scripts = SCRIPTS.concat(),
    )
}

/// The footnote of the page of a run.
pub(crate) const FOOTNOTE: &str = "Percentiles: P5 is the value below which 5 % of the scenarios lie, \
    found on the sorted values by linear interpolation (as NumPy, pandas and R do by default). Means are over all \
    scenarios. Single scenarios are chosen by the order of their totals. Charts have five significant digits; the \
    Parquet tables have them all.";

fn foot(report: &Report) -> String {
    format!(
        "</main>\n<footer>\n<p>{}</p>\n</footer>\n\
         <noscript><p class=\"note\">The charts need JavaScript; cobre report --png writes them as pictures.</p></noscript>\n",
        escaped(report.footnote)
    )
}

fn head(report: &Report, to: &mut String) {
    let name = escaped(&report.name);
    let about = escaped(&report.about);
    let _ = writeln!(
        to,
        "<header>\n<div class=\"bar\">\n<div><h1>{name}</h1>\n\
         <p class=\"by\">{about}</p></div>\n\
         <button type=\"button\" id=\"theme\" hidden>Dark</button>\n</div>\n<dl class=\"figures\">"
    );
    for (what, value) in &report.headline {
        let (what, value) = (escaped(what), escaped(value));
        let _ = writeln!(to, "<div><dt>{what}</dt><dd>{value}</dd></div>");
    }
    to.push_str("</dl>\n</header>\n<nav aria-label=\"Sections\">\n");
    for section in &report.sections {
        let _ = writeln!(
            to,
            "<a href=\"#{}\">{}</a>",
            section.id,
            escaped(&section.title)
        );
    }
    to.push_str("</nav>\n<main>\n");
    if !report.singles.is_empty() {
        to.push_str("<fieldset id=\"singles\" hidden><legend>Single scenarios in the charts</legend></fieldset>\n");
    }
}

fn section(section: &Section, to: &mut String) {
    let _ = writeln!(
        to,
        "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>",
        section.id,
        escaped(&section.title)
    );
    for text in &section.text {
        let _ = writeln!(to, "<p class=\"note\">{}</p>", escaped(text));
    }
    for panel in &section.panels {
        let _ = writeln!(
            to,
            "<figure data-panel=\"{0}\">\n<figcaption><h3 id=\"{0}-chart\">{1}</h3>\n\
             <p id=\"{0}-about\">{2}</p></figcaption>\n</figure>",
            escaped(&panel.id),
            escaped(&panel.title),
            escaped(&panel.about)
        );
    }
    for of in &section.tables {
        table(of, to);
    }
    to.push_str("</section>\n");
}

fn table(table: &TextTable, to: &mut String) {
    let caption = escaped(&table.caption);
    let _ = write!(
        to,
        "<div class=\"scroll\"><table>\n<caption>{caption}</caption>\n<thead><tr>"
    );
    for cell in &table.head {
        let _ = write!(to, "<th scope=\"col\">{}</th>", escaped(cell));
    }
    to.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        to.push_str("<tr>");
        for (place, cell) in row.iter().enumerate() {
            let cell = escaped(cell);
            let _ = match place {
                0 => write!(to, "<th scope=\"row\">{cell}</th>"),
                _ => write!(to, "<td>{cell}</td>"),
            };
        }
        to.push_str("</tr>\n");
    }
    to.push_str("</tbody></table></div>\n");
}

/// The palette as variables of the style sheet.
fn colors() -> String {
    let all = |dark: bool| {
        let mut text = String::new();
        for (number, color) in COLORS.iter().enumerate() {
            let value = if dark { color.dark } else { color.light };
            let _ = write!(text, "--c{number}:{value};");
        }
        text
    };
    format!(
        ":root{{{}}}\n@media screen{{:root[data-theme=dark]{{{}}}}}\n",
        all(false),
        all(true)
    )
}

/// Text that is nothing but text, in an element or in an attribute.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// JSON that no text in it can end: a reader of HTML looks for `<` alone.
fn quoted(data: &Data<'_>) -> String {
    let text = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
    text.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Positions, View};

    fn hostile() -> Report {
        let name = "</script><script>alert(1)</script><img src=x onerror='x()'> & \"q\"";
        let mut section = Section::new("storage", name);
        section.text.push(name.to_owned());
        section.panels.push(Panel {
            id: "storage".to_owned(),
            title: name.to_owned(),
            about: name.to_owned(),
            pick: name.to_owned(),
            x: name.to_owned(),
            at: Positions::Names(vec![name.to_owned()]),
            views: vec![View::scaled(name, name, name, Vec::new())],
        });
        section.tables.push(TextTable {
            caption: name.to_owned(),
            head: vec![name.to_owned()],
            rows: vec![vec![name.to_owned(), name.to_owned()]],
        });
        Report {
            results: std::path::PathBuf::new(),
            name: name.to_owned(),
            about: name.to_owned(),
            footnote: name,
            headline: vec![(name.to_owned(), name.to_owned())],
            sections: vec![section],
            singles: vec![Single {
                scenario: 0,
                name: name.to_owned(),
                shown: true,
            }],
        }
    }

    #[test]
    fn names_are_nothing_but_text() {
        let page = html(&hostile());
        assert!(!page.contains("<img"), "a name became an element");
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script").count(), 2);
        assert!(!page.contains("alert(1)</"), "a name ended its element");
    }

    #[test]
    fn the_page_asks_nothing_of_the_network() {
        let page = html(&hostile());
        for sign in [
            "http:", "https:", "@import", "url(", "src=\"", "fetch(", "import(",
        ] {
            let found = page.match_indices(sign).map(|(at, _)| &page[at..][..40]);
            // The name of SVG is an address nobody visits; parts of the page itself are at hand.
            let own =
                |text: &&str| text.contains("www.w3.org/2000/svg") || text.starts_with("url(#");
            let found: Vec<&str> = found.filter(|text| !own(text)).collect();
            assert_eq!(found, Vec::<&str>::new());
        }
    }
}
