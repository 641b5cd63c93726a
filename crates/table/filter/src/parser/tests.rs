//! The trees of filters, and the exact messages for texts that are not filters.

use super::*;

/// The tree as text, or the error. A tree must parse back from its text.
fn check(text: &str, expected: &str) {
    let shown = match parse(text) {
        Ok(None) => "everything".to_owned(),
        Ok(Some(expr)) => {
            assert_eq!(parse(&expr.to_string()), Ok(Some(expr.clone())), "{expr}");
            expr.to_string()
        }
        Err(FilterError::NotImplemented) => "not implemented".to_owned(),
        Err(FilterError::NotValid) => "not valid".to_owned(),
        Err(FilterError::Syntax(message)) => message,
    };
    assert_eq!(shown, expected, "{text}");
}

#[test]
fn blank_is_no_filter() {
    check("", "everything");
    check(" \t\n ", "everything");
}

#[test]
fn comparisons() {
    for operator in ["eq", "ne", "gt", "ge", "lt", "le"] {
        check(&format!("A {operator} 1"), &format!("A {operator} 1"));
    }
    check("  A   eq\t'x'\n", "A eq 'x'");
    check("A eq 'o''clock'", "A eq 'o''clock'");
    check("A eq ''", "A eq ''");
    check("A eq -5", "A eq -5");
    check("A eq 5l", "A eq 5L");
    check("A eq 5.0", "A eq 5.0");
    check("A eq 1e3d", "A eq 1000.0");
    check("A ne NaN", "A ne NaN");
    check("A gt -INF", "A gt -INF");
    check("A eq datetime'2021-05-06T07:08:09.1234567Z'", "A eq datetime'2021-05-06T07:08:09.1234567Z'");
    check(
        "A eq guid'0F8FAD5B-d9cb-469f-a165-70867728950e'",
        "A eq guid'0f8fad5b-d9cb-469f-a165-70867728950e'",
    );
    check("A eq X'0a0B'", "A eq X'0a0b'");
    check("A eq binary'ff'", "A eq X'ff'");
    check("été eq 1", "été eq 1");
    check("(A) eq (1)", "A eq 1");
}

#[test]
fn a_literal_on_the_left_mirrors_the_operator() {
    check("'a' eq PartitionKey", "PartitionKey eq 'a'");
    check("1 ne A", "A ne 1");
    check("1 gt A", "A lt 1");
    check("1 ge A", "A le 1");
    check("1 lt A", "A gt 1");
    check("1 le A", "A ge 1");
}

#[test]
fn a_boolean_stands_alone() {
    check("true", "true");
    check("false", "false");
    check("Active", "Active eq true");
    check("not Active", "not (Active eq true)");
    check("not true", "false");
    check("A or true", "A eq true or true");
    check("A eq True", "not implemented"); // `True` names a property
}

#[test]
fn precedence() {
    check("a or b eq 1 and c", "a eq true or (b eq 1 and c eq true)");
    check("(a or b) and c", "(a eq true or b eq true) and c eq true");
    check("(a eq 1)and(b eq 2)", "a eq 1 and b eq 2");
    check("(a eq 1)or(b eq 2)", "a eq 1 or b eq 2");
    check("a and (b and c)", "a eq true and b eq true and c eq true");
    check("((a eq 1))", "a eq 1");
    check("not(a eq 1)", "not (a eq 1)");
    check("not (a eq 1) and b", "not (a eq 1) and b eq true");
    check("not a eq 1", "not (a eq 1)");
    check("not not a eq 1", "a eq 1");
    check("not (a or b)", "not (a eq true or b eq true)");
}

#[test]
fn words_of_the_language_may_name_properties() {
    check("eq eq 1", "eq eq 1");
    check("and and or or or", "(and eq true and or eq true) or or eq true");
    check("datetime eq 1", "datetime eq 1");
    check("X eq X'00'", "X eq X'00'");
}

#[test]
fn operators_are_lower_case() {
    check("A EQ 1", "Syntax error at position 4 in 'A EQ 1'.");
    check("A eq 1 AND B eq 2", "Syntax error at position 10 in 'A eq 1 AND B eq 2'.");
}

#[test]
fn unexpected_tokens() {
    check("aaa bbb ccc", "Syntax error at position 7 in 'aaa bbb ccc'.");
    check("a eq 1)", "Syntax error at position 7 in 'a eq 1)'.");
    check("a = 1", "Syntax error at position 3 in 'a = 1'.");
    check("a eq 12b", "Syntax error at position 8 in 'a eq 12b'.");
    check("a eq '𝄞' b", "Syntax error at position 11 in 'a eq '𝄞' b'.");
    check("a eq foo'x'", "Syntax error at position 11 in 'a eq foo'x''.");
    check("a eq 'x'y'z'", "Syntax error at position 9 in 'a eq 'x'y'z''.");
    check("a eq", "Expression expected at position 4 in 'a eq'.");
    check("()", "Expression expected at position 1 in '()'.");
    check("a and", "Expression expected at position 5 in 'a and'.");
    check("not", "Expression expected at position 3 in 'not'.");
    check("(a eq 1", "')' or operator expected at position 7 in '(a eq 1'.");
    check("(a b", "')' or operator expected at position 3 in '(a b'.");
    check("f(a b)", "')' or ',' expected at position 4 in 'f(a b)'.");
}

#[test]
fn characters_and_strings() {
    check(
        "<class 'filter'>",
        "Syntax error: character '<' is not valid at position 0 in '<class 'filter'>'.",
    );
    check("a > 1", "Syntax error: character '>' is not valid at position 2 in 'a > 1'.");
    check("a b <", "Syntax error at position 3 in 'a b <'."); // the word in front speaks first
    check("a eq 'x", "There is an unterminated string literal at position 7 in 'a eq 'x'.");
    check("a eq X'00", "There is an unterminated literal at position 9 in 'a eq X'00'.");
    check("a eq 1.", "A digit was expected at position 7 in 'a eq 1.'.");
}

#[test]
fn bad_literals() {
    check(
        "binary eq X'binary'",
        "Unrecognized 'Edm.Binary' literal 'X'binary'' at '10' in 'binary eq X'binary''.",
    );
    check("a eq binary'0'", "Unrecognized 'Edm.Binary' literal 'binary'0'' at '5' in 'a eq binary'0''.");
    check(
        "a eq 5454161346626",
        "Unrecognized 'Edm.Int32' literal '5454161346626' at '5' in 'a eq 5454161346626'.",
    );
    check("-2147483649 lt a", "Unrecognized 'Edm.Int32' literal '-2147483649' at '0' in '-2147483649 lt a'.");
    check("a eq 1.5L", "Unrecognized 'Edm.Int64' literal '1.5L' at '5' in 'a eq 1.5L'.");
    check("a eq 1e999", "Unrecognized 'Edm.Double' literal '1e999' at '5' in 'a eq 1e999'.");
    check("é eq guid'x'", "Unrecognized 'Edm.Guid' literal 'guid'x'' at '5' in 'é eq guid'x''.");
    check(
        "'𝄞' eq a or b eq datetime'2021-13-01'",
        "Unrecognized 'Edm.DateTime' literal 'datetime'2021-13-01'' at '18' in \
         ''𝄞' eq a or b eq datetime'2021-13-01''.",
    );
}

#[test]
fn operands_that_are_no_conditions() {
    let binary = |left, right, operator| {
        format!(
            "A binary operator with incompatible types was detected. \
             Found operand types '{left}' and '{right}' for operator kind '{operator}'."
        )
    };
    check("'a' and b", &binary("Edm.String", "Edm.Boolean", "And"));
    check("b and 'a'", &binary("Edm.Boolean", "Edm.String", "And"));
    check("a eq 1 or 5L", &binary("Edm.Boolean", "Edm.Int64", "Or"));
    check("1 or 1.5", &binary("Edm.Int32", "Edm.Double", "Or"));
    check("a and b and (X'00' or c)", &binary("Edm.Binary", "Edm.Boolean", "Or"));
    check("a and 'x' and 1", &binary("Edm.Boolean", "Edm.String", "And"));
    check("'a' and b c", "Syntax error at position 11 in ''a' and b c'."); // text before meaning
    check("1", "The $filter expression must evaluate to a single boolean value.");
    check("('a')", "The $filter expression must evaluate to a single boolean value.");
    check(
        "not 'a'",
        "A unary operator with an incompatible type was detected. \
         Found operand type 'Edm.String' for operator kind 'Not'.",
    );
}

#[test]
fn what_tables_do_not_offer() {
    for text in [
        "a eq b",
        "1 eq 1",
        "'a' eq 'b'",
        "(a eq 1) eq true",
        "a eq 1 eq true",
        "a eq not b",
        "startswith(a,'b')",
        "startswith(a,'b') eq true",
        "not substringof('b',a)",
        "length(a) gt 3",
        "now() gt a",
        "a add 1 eq 2",
        "a eq 1 mul 2",
        "-a eq 1",
        "a/b eq 1",
        "a eq time'10:00'",
        "a eq datetimeoffset'2021-05-06T07:08:09Z'",
    ] {
        check(text, "not implemented");
    }
}

#[test]
fn null_is_no_value() {
    check("a eq null", "not valid");
    check("null ne a", "not valid");
    check("a eq 1 and b eq null", "not valid");
    check("null", "not valid");
}

#[test]
fn depth_is_bounded() {
    let deep = |levels: usize| format!("{}a eq 1{}", "(".repeat(levels), ")".repeat(levels));
    check(&deep(limits::FILTER_DEPTH_MAX), "a eq 1");
    check(&deep(limits::FILTER_DEPTH_MAX + 1), "Recursion depth exceeded allowed limit.");
    for opening in ["(", "not ", "- ", "f(", "f(a,", "a eq (", "a or (b and not ("] {
        check(&opening.repeat(100_000), "Recursion depth exceeded allowed limit.");
    }
    let shallow = vec!["not (a) and not (not b)"; 1_000].join(" and ");
    assert!(parse(&shallow).is_ok());
}

#[test]
fn chains_are_wide_and_not_deep() {
    for word in ["or", "and"] {
        let text = (0..20_000).map(|i| format!("A eq {i}")).collect::<Vec<_>>().join(&format!(" {word} "));
        check(&text, &text);
    }
}
