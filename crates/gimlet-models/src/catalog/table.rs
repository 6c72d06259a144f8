//! The table of installed models, for people: aligned, readable without colour, the chosen one marked.

use super::choose::tier_word;
use super::discover::Installed;
use super::families::{Action, Calls, Profile, Tier};

/// Draws the table, each model as `profile` treats it; `chosen` is marked and stands first.
pub fn table(models: &[Installed], profile: impl Fn(&Installed) -> Profile, chosen: Option<&str>) -> String {
    let mut rows: Vec<_> = models.iter().map(|model| (profile(model), model)).collect();
    rows.sort_by_key(|(profile, model)| {
        (Some(model.name.as_str()) != chosen, profile.tier, model.name.clone())
    });
    let mut lines = vec![
        ["", "MODEL", "SIZE", "PARAMS", "QUANT", "CONTEXT", "CALLS", "ACTION", "TIER", "NOTE"]
            .map(String::from),
    ];
    for (profile, model) in rows {
        let unknown = || "–".to_owned();
        let window = Some(profile.window.tokens);
        lines.push([
            if Some(model.name.as_str()) == chosen { "▸" } else { "" }.to_owned(),
            model.name.clone(),
            model.bytes.map_or_else(unknown, bytes),
            model.billions().map_or_else(unknown, parameters),
            model.quantisation.clone().unwrap_or_else(unknown),
            window.map_or_else(unknown, |window| window.to_string()),
            match (profile.tier, profile.calls) {
                (Tier::Unfit, _) => "no",
                (_, Calls::Native) => "native",
                (_, Calls::Text) => "as text",
            }
            .to_owned(),
            match profile.action {
                Action::Tools => "tools",
                Action::Code => "code",
                Action::Guided => "guided",
            }
            .to_owned(),
            tier_word(profile.tier).to_owned(),
            profile.defects.join("; "),
        ]);
    }
    draw(&lines)
}

fn draw(lines: &[[String; 10]]) -> String {
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..10).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let mut row = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            // Numbers line up on the right.
            let padding = " ".repeat(width - cell.chars().count());
            match column {
                2 | 3 | 5 => row.push_str(&format!("{padding}{cell}  ")),
                _ => row.push_str(&format!("{cell}{padding}  ")),
            }
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

fn parameters(billions: f64) -> String {
    if billions < 1.0 { format!("{:.0}M", billions * 1000.0) } else { format!("{billions:.1}B") }
}
