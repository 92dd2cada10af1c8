//! `pausebed init [FILE]`: writes a scenario with comments, by three questions or from options.

use crate::exit::{Exit, Failure, Outcome};
use crate::starter::{self, RATES, SCHEMA_FILE, SHAPES, Shape};
use proto::congestion::schemes::{self, Scheme, find};
use proto::technology::Technology;
use proto::units::BitRate;
use scenario::keyfile::problem::did_you_mean;
use std::fs::File;
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Options of `init`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// The file to write; - is standard output.
    #[arg(value_name = "FILE", default_value = "scenario.toml")]
    file: PathBuf,
    /// The technology of the links. What is not given is asked on a terminal; elsewhere it is the first that fits.
    #[arg(long, value_parser = Technology::ALL.map(Technology::name))]
    technology: Option<String>,
    /// The shape of the fabric.
    #[arg(long, value_parser = SHAPES.each_ref().map(|shape| shape.name))]
    shape: Option<String>,
    /// The congestion control scheme.
    #[arg(long, value_parser = schemes::all().iter().map(|scheme| scheme.name).collect::<Vec<_>>())]
    scheme: Option<String>,
    /// The rate of the links, as in "100 Gbps", from 1 Gbps to 1600 Gbps; else what is usual: 8 Gbps on infiniband, 40 Gbps with RoCE, 10 Gbps with
    /// bcn and qcn.
    #[arg(long)]
    rate: Option<BitRate>,
}

/// Runs the command.
pub(super) fn run(options: &Options) -> Outcome {
    let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
    let mut dialogue = Dialogue { answers: io::stdin().lock(), questions: io::stderr() };
    let text = text(options, is_asked.then_some(&mut dialogue))?;
    if options.file == Path::new("-") {
        print!("{text}");
        return Ok(Exit::Good);
    }
    write(&options.file, &text)?;
    let file = options.file.display();
    println!("{file}");
    eprintln!("next: pausebed run {file} --out runs");
    Ok(Exit::Good)
}

/// The text of the file, from the options and, for what they leave open, from answers.
fn text<A: BufRead, Q: Write>(
    options: &Options,
    mut dialogue: Option<&mut Dialogue<A, Q>>,
) -> Result<String, Failure> {
    let mut choose = |given: &Option<String>, what: &str, choices: &[Choice]| match given {
        Some(given) => Ok(given.clone()),
        None => match &mut dialogue {
            Some(dialogue) if choices.len() > 1 => dialogue.ask(what, choices),
            _ => Ok(choices[0].0.to_owned()),
        },
    };
    let asked = options.scheme.as_deref().and_then(find);
    let carries = |technology: &Technology| {
        asked.is_none_or(|scheme| scheme.technologies.contains(technology))
    };
    let technologies: Vec<Choice> = Technology::ALL
        .into_iter()
        .filter(carries)
        .map(|technology| match technology {
            Technology::Infiniband => (technology.name(), "credits, LIDs, forwarding tables"),
            Technology::Ethernet => (technology.name(), "RoCEv2, PFC or PAUSE, MAC addresses"),
        })
        .collect();
    let technology = choose(&options.technology, "technology", &technologies)?;
    let shapes = SHAPES.each_ref().map(|shape| (shape.name, shape.about));
    let shape = choose(&options.shape, "shape", &shapes)?;
    let runs_on =
        |scheme: &&&Scheme| scheme.technologies.iter().any(|one| one.name() == technology);
    let schemes: Vec<Choice> =
        schemes::all().iter().filter(runs_on).map(|scheme| (scheme.name, scheme.about)).collect();
    let scheme = choose(&options.scheme, "scheme", &schemes)?;
    let technology = Technology::ALL.into_iter().find(|one| one.name() == technology);
    let shape: Option<&Shape> = SHAPES.iter().find(|known| known.name == shape);
    let (Some(technology), Some(shape), Some(row)) = (technology, shape, find(&scheme)) else {
        return Err(Failure::usage("a technology, a shape and a scheme are needed"));
    };
    if !row.technologies.contains(&technology) {
        let fits = schemes.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let hint = format!("its signals have no place in frames of {technology}; one of {fits}");
        return Err(Failure::usage(format!(
            "{scheme} does not work on {technology}\n    hint: {hint}"
        )));
    }
    let in_range = |rate: &BitRate| {
        let (least, most) = (BitRate::gbps(*RATES.start()), BitRate::gbps(*RATES.end()));
        (least..=most).contains(rate)
    };
    if !options.rate.as_ref().is_none_or(in_range) {
        let (least, most) = (RATES.start(), RATES.end());
        return Err(Failure::usage(format!("--rate is from \"{least} Gbps\" to \"{most} Gbps\"")));
    }
    starter::text(technology, shape, row, options.rate)
        .map_err(|faults| Failure::usage(format!("no file for this rate: {faults}")))
}

/// A word, and what it means.
type Choice = (&'static str, &'static str);

/// Questions and answers.
struct Dialogue<A, Q> {
    answers: A,
    questions: Q,
}

impl<A: BufRead, Q: Write> Dialogue<A, Q> {
    /// The chosen word: by its number, by itself, or the first by an empty line.
    ///
    /// # Errors
    /// If there is no answer.
    fn ask(&mut self, what: &str, choices: &[Choice]) -> Result<String, Failure> {
        let closed = |error: io::Error| Failure::usage(format!("no answer: {error}"));
        let width = choices.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        writeln!(self.questions, "Which {what}?").map_err(closed)?;
        for (number, (name, about)) in choices.iter().enumerate() {
            let line = format!("  {} {name:width$}  {about}", number + 1);
            writeln!(self.questions, "{line}").map_err(closed)?;
        }
        loop {
            write!(self.questions, "number or name [{}]: ", choices[0].0).map_err(closed)?;
            self.questions.flush().map_err(closed)?;
            let mut answer = String::new();
            if self.answers.read_line(&mut answer).map_err(closed)? == 0 {
                return Err(Failure::usage(
                    "no answer: the options --technology, --shape and --scheme give one",
                ));
            }
            let answer = answer.trim();
            let by_number =
                answer.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
            let chosen = match answer {
                "" => choices.first(),
                _ => by_number.or_else(|| choices.iter().find(|(name, _)| *name == answer)),
            };
            match chosen {
                Some((name, _)) => return Ok((*name).to_owned()),
                None => {
                    let hint = did_you_mean(answer, choices.iter().map(|(name, _)| *name));
                    writeln!(self.questions, "{hint}").map_err(closed)?;
                }
            }
        }
    }
}

/// Writes a new file, and beside it the schema that its first line names.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let mut opened = File::create_new(file).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::bad_file(file)("it is there already; choose another name")
        }
        _ => Failure::cannot_write(file)(error),
    })?;
    opened.write_all(text.as_bytes()).map_err(Failure::cannot_write(file))?;
    let schema = file.with_file_name(SCHEMA_FILE);
    let written = std::fs::write(&schema, format!("{:#}\n", scenario::schema()));
    written.map_err(Failure::cannot_write(&schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: [&str; 3]) -> Options {
        let word = |word: &str| (!word.is_empty()).then(|| word.to_owned());
        let [technology, shape, scheme] = words.map(word);
        Options { file: "-".into(), technology, shape, scheme, rate: None }
    }

    /// The second line of the file that these answers make, and the questions.
    fn asked(words: [&str; 3], answers: &str) -> (Result<String, Failure>, String) {
        let mut dialogue = Dialogue { answers: answers.as_bytes(), questions: Vec::new() };
        let text = text(&options(words), Some(&mut dialogue));
        let second = text.map(|text| text.lines().nth(1).unwrap_or_default().to_owned());
        (second, String::from_utf8(dialogue.questions).expect("questions are text"))
    }

    #[test]
    fn three_questions_are_answered_by_number_name_or_enter() {
        let (line, questions) = asked(["", "", ""], "2\nleaf-spine\n\n");
        assert_eq!(
            line.as_deref(),
            Ok("# Several NICs send to one, on a leaf-spine of ethernet, with none.")
        );
        assert_eq!(questions.matches("Which ").count(), 3, "{questions}");
        assert!(!questions.contains("ib-cca"), "it does not work on Ethernet: {questions}");
    }

    #[test]
    fn what_options_give_or_leave_no_choice_about_is_not_asked() {
        let (line, questions) = asked(["", "", "dcqcn"], "\n");
        assert!(line.is_ok_and(|line| line.contains("star of ethernet, with dcqcn")));
        assert_eq!(questions.matches("Which ").count(), 1, "{questions}");
    }

    #[test]
    fn a_wrong_answer_is_asked_again_and_no_answer_is_an_error() {
        let (line, questions) = asked(["ethernet", "star", ""], "dcqn\n9\nqcn\n");
        assert!(line.is_ok_and(|line| line.ends_with("with qcn.")));
        assert!(questions.contains("did you mean \"dcqcn\"?"), "{questions}");
        assert_eq!(asked(["", "", ""], "").0.map_err(|failure| failure.exit), Err(Exit::Usage));
    }

    #[test]
    fn a_scheme_that_the_technology_cannot_carry_is_refused_with_the_reason() {
        let none: Option<&mut Dialogue<&[u8], Vec<u8>>> = None;
        let refused = text(&options(["infiniband", "star", "dcqcn"]), none);
        let message = refused.expect_err("CE marks need an IP header").message;
        assert!(message.contains("dcqcn does not work on infiniband"), "{message}");
        assert!(message.contains("one of none, ib-cca, rr-cc"), "{message}");
    }

    #[test]
    fn the_schema_stands_beside_the_file_and_no_file_is_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("a.toml");
        let run = || run(&Options { file: file.clone(), ..options(["ethernet", "star", "none"]) });
        assert_eq!(run().map_err(|failure| failure.exit), Ok(Exit::Good));
        let text = std::fs::read_to_string(&file).expect("it is written");
        let named = text.lines().next().and_then(|line| line.strip_prefix("#:schema ./"));
        let schema = folder.path().join(named.expect("the first line names the schema"));
        let schema = std::fs::read_to_string(schema).expect("it is written");
        assert!(schema.contains("\"ccti_increase\""), "keys of schemes are in it");
        assert_eq!(run().map_err(|failure| failure.exit), Err(Exit::Usage));
    }
}
