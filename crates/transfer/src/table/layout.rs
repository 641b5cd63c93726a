//! Rows in columns, as wide as the terminal; colours only on a terminal.

use std::io::{self, IsTerminal as _, Write as _};

use crate::queue::fitted;

/// Between two columns.
const GAP: usize = 2;
/// A column is not made narrower than this to fit the terminal.
const NARROW: usize = 6;
/// A column takes no more than this at first, so that one long text does not push out the others.
const WIDE: usize = 60;

/// Standard output.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Of the terminal; `None` if it is none.
    pub width: Option<usize>,
    pub height: Option<usize>,
    colours: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Bold,
    Dim,
    Red,
}

impl Screen {
    pub fn of_stdout() -> Self {
        let size = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            width: size.map(|(width, _)| usize::from(width.0)),
            height: size.map(|(_, height)| usize::from(height.0)),
            colours: size.is_some() && !refused,
        }
    }

    pub fn painted(&self, text: &str, paint: Paint) -> String {
        let code = match paint {
            Paint::Plain => return text.to_owned(),
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Red => "31",
        };
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub fn print(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub text: String,
    /// Numbers are on the right.
    pub is_number: bool,
}

impl Cell {
    pub fn text(text: &str) -> Self {
        Self { text: fitted(text, None), is_number: false }
    }

    pub fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_number: true }
    }
}

/// Rows that are shown together.
#[derive(Debug)]
pub struct Grid {
    names: Vec<String>,
    widths: Vec<usize>,
    /// Columns that did not fit.
    pub left_out: Vec<String>,
}

impl Grid {
    /// Chooses the widths by the rows that are known.
    pub fn new(names: Vec<String>, rows: &[Vec<Cell>], screen: &Screen) -> Self {
        let letters = |text: &str| text.chars().count();
        let widest = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| letters(&cell.text));
            cells.chain([letters(&names[column])]).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..names.len()).map(widest).collect();
        let mut names = names;
        let mut left_out = Vec::new();
        if let Some(screen) = screen.width {
            widths.iter_mut().for_each(|width| *width = (*width).min(WIDE.max(screen / 2)));
            let total =
                |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
            while total(&widths) > screen {
                let can_shrink = widths.iter().any(|width| *width > NARROW);
                if let Some(widest) = widths.iter_mut().max().filter(|_| can_shrink) {
                    *widest -= 1;
                } else if widths.len() > 1 {
                    widths.pop();
                    left_out.extend(names.pop());
                } else {
                    break;
                }
            }
            left_out.reverse();
        }
        Self { names, widths, left_out }
    }

    pub fn head(&self, screen: &Screen) -> String {
        let cells: Vec<Cell> = self.names.iter().map(|name| Cell::text(name)).collect();
        let line = self.line(&cells);
        format!("{}\n", screen.painted(line.trim_end(), Paint::Bold))
    }

    pub fn row(&self, cells: &[Cell]) -> String {
        format!("{}\n", self.line(cells).trim_end())
    }

    fn line(&self, cells: &[Cell]) -> String {
        let mut line = String::new();
        for (index, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            if index > 0 {
                line.push_str(&" ".repeat(GAP));
            }
            let text = fitted(&cell.text, Some(*width));
            let padding = " ".repeat(width.saturating_sub(text.chars().count()));
            let (before, after) =
                if cell.is_number { (padding, String::new()) } else { (String::new(), padding) };
            line.push_str(&before);
            line.push_str(&text);
            line.push_str(&after);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(width: Option<usize>) -> Screen {
        Screen { width, height: None, colours: false }
    }

    fn shown(names: &[&str], rows: &[&[&str]], width: Option<usize>) -> (String, Vec<String>) {
        let rows: Vec<Vec<Cell>> =
            rows.iter().map(|row| row.iter().map(|text| Cell::text(text)).collect()).collect();
        let screen = screen(width);
        let grid = Grid::new(names.iter().map(|name| (*name).to_owned()).collect(), &rows, &screen);
        let mut out = grid.head(&screen);
        rows.iter().for_each(|row| out.push_str(&grid.row(row)));
        (out, grid.left_out)
    }

    #[test]
    fn columns_are_as_wide_as_their_texts() {
        let (out, _) = shown(&["Name", "N"], &[&["a", "1"], &["longer", "2"]], Some(40));
        assert_eq!(out, "Name    N\na       1\nlonger  2\n");
    }

    #[test]
    fn the_widest_columns_give_way_to_the_terminal() {
        let long = "x".repeat(50);
        let (out, left_out) = shown(&["A", "B"], &[&[&long, "short"]], Some(20));
        assert_eq!(out, format!("A              B\n{}…  short\n", "x".repeat(12)));
        assert!(left_out.is_empty() && out.lines().all(|line| line.chars().count() <= 20));
        let (out, _) = shown(&["A", "B"], &[&[&long, "short"]], None);
        assert!(out.contains(&long), "a pipe gets everything");
    }

    #[test]
    fn columns_that_do_not_fit_are_left_out_and_named() {
        let cells = ["123456"; 5];
        let (out, left_out) = shown(&["Aaaaaa", "Bbbbbb", "Cccccc", "Dddddd", "Eeeeee"], &[&cells], Some(22));
        assert_eq!(out, "Aaaaaa  Bbbbbb  Cccccc\n123456  123456  123456\n");
        assert_eq!(left_out, ["Dddddd", "Eeeeee"]);
    }

    #[test]
    fn control_characters_can_not_change_the_terminal() {
        let (out, _) = shown(&["A"], &[&["\x1b[31mred\n"]], Some(80));
        assert_eq!(out, "A\n\\u{1b}[31mred\\n\n");
    }

    #[test]
    fn numbers_are_on_the_right_and_colours_only_where_they_are_wanted() {
        let rows = vec![vec![Cell::number("7")], vec![Cell::number("1234")]];
        let grid = Grid::new(vec!["Count".to_owned()], &rows, &screen(Some(80)));
        assert_eq!(grid.row(&rows[0]), "    7\n");
        let coloured = Screen { colours: true, ..screen(Some(80)) };
        assert_eq!(grid.head(&coloured), "\x1b[1mCount\x1b[0m\n");
        assert_eq!(grid.head(&screen(Some(80))), "Count\n");
    }
}
