//! Parses a filter by operator precedence with its own stacks, so that a deep text can't overflow the thread's stack.
//!
//! Errors are reported in the service's order: syntax errors first, then errors of types and unsupported operators. So the
//! first error of the second kind is kept and parsing goes on; the tree after that is a placeholder that is not returned.

use model::{EdmType, Value, limits};

use crate::lexer::{Kind, Lexer, Token};
use crate::{Comparison, Expr, FilterError, Operator, literal};

/// Parses a filter that is already percent-decoded. `None` for a blank filter, which selects everything.
pub fn parse(text: &str) -> Result<Option<Expr>, FilterError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let parser = Parser { lexer, token, pending: Vec::new(), operands: Vec::new(), depth: 0, fault: None };
    parser.filter().map(Some)
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    /// The next token.
    token: Token<'a>,
    /// Operators and brackets whose right side is not complete.
    pending: Vec<Pending>,
    /// The operands of the pending operators, last first.
    operands: Vec<Operand>,
    /// How many of the pending enclose the text that follows. The others come before it.
    depth: usize,
    /// The first error that is not a syntax error.
    fault: Option<FilterError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Open,
    Call,
    Or,
    And,
    Not,
    Compare(Operator),
    /// `add` and its kind, and the `/` of a path.
    Arithmetic,
    Minus,
}

/// An operand of an operator.
enum Operand {
    Test(Expr),
    Property(String),
    Literal(Value),
}

/// What comes next after a token in operand position.
enum Next {
    Operand,
    Operator,
}

impl<'a> Parser<'a> {
    fn filter(mut self) -> Result<Expr, FilterError> {
        let mut next = Next::Operand;
        loop {
            next = match next {
                Next::Operand => self.operand()?,
                Next::Operator if self.token.kind == Kind::End && self.bracket().is_none() => break,
                Next::Operator => self.operator()?,
            }
        }
        self.apply_down_to(Strength::Or);
        let whole = self.pop();
        if whole.edm_type() != EdmType::Boolean {
            self.note(FilterError::not_boolean());
        }
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(whole.into_test()),
        }
    }

    fn operand(&mut self) -> Result<Next, FilterError> {
        let token = self.token;
        let operand = match token.kind {
            Kind::Open => return self.enter(Pending::Open),
            Kind::Minus => return self.enter(Pending::Minus),
            Kind::Word if token.text == "not" => return self.enter(Pending::Not),
            Kind::Word => return self.word(),
            Kind::Literal(kind) => literal::parse(kind, token.text)
                .map(Operand::Literal)
                .ok_or_else(|| FilterError::literal(kind, token.text, self.lexer.text(), token.at))?,
            Kind::ForeignLiteral => self.refuse(FilterError::NotImplemented),
            Kind::Close | Kind::Comma | Kind::Slash | Kind::Symbol | Kind::End => {
                return Err(FilterError::expected("Expression", self.lexer.text(), token.at));
            }
        };
        self.operands.push(operand);
        self.advance()?;
        Ok(Next::Operator)
    }

    /// A property, `null`, or the beginning of a function call.
    fn word(&mut self) -> Result<Next, FilterError> {
        let name = self.token.text;
        self.advance()?;
        if self.token.kind == Kind::Open {
            self.enter(Pending::Call)?;
            if self.token.kind != Kind::Close {
                return Ok(Next::Operand);
            }
            self.operands.push(Operand::REFUSED); // no arguments; the call itself is refused when it closes
            return Ok(Next::Operator);
        }
        let operand = match name {
            "null" => self.refuse(FilterError::NotValid),
            _ => Operand::Property(name.to_owned()),
        };
        self.operands.push(operand);
        Ok(Next::Operator)
    }

    fn operator(&mut self) -> Result<Next, FilterError> {
        let operator = match (self.token.kind, self.bracket()) {
            (Kind::Close, Some(bracket)) => {
                self.apply_down_to(Strength::Or);
                self.close(bracket);
                self.advance()?;
                return Ok(Next::Operator);
            }
            (Kind::Comma, Some(Pending::Call)) => {
                self.apply_down_to(Strength::Or);
                self.pop(); // the call will be refused, whatever its arguments
                self.advance()?;
                return Ok(Next::Operand);
            }
            (kind, bracket) => binary(kind, self.token.text).ok_or_else(|| self.misplaced(bracket))?,
        };
        self.apply_down_to(operator.strength());
        self.pending.push(operator);
        self.advance()?;
        Ok(Next::Operand)
    }

    /// The innermost bracket not closed yet.
    fn bracket(&self) -> Option<Pending> {
        self.pending.iter().rev().copied().find(|pending| matches!(pending, Pending::Open | Pending::Call))
    }

    fn misplaced(&self, bracket: Option<Pending>) -> FilterError {
        let (text, token) = (self.lexer.text(), self.token);
        match bracket {
            None => FilterError::unexpected(text, token.end()),
            Some(Pending::Call) => FilterError::expected("')' or ','", text, token.at),
            Some(_) => FilterError::expected("')' or operator", text, token.at),
        }
    }

    /// One level deeper. The depth is bounded because others walk the tree by recursion.
    fn enter(&mut self, pending: Pending) -> Result<Next, FilterError> {
        if self.depth == limits::FILTER_DEPTH_MAX {
            return Err(FilterError::too_deep());
        }
        self.depth += 1;
        self.pending.push(pending);
        self.advance()?;
        Ok(Next::Operand)
    }

    fn close(&mut self, bracket: Pending) {
        self.pending.pop();
        self.depth -= 1;
        if bracket == Pending::Call {
            self.pop();
            let refused = self.refuse(FilterError::NotImplemented);
            self.operands.push(refused);
        }
    }

    /// Applies the pending operators that bind at least this tightly, up to the innermost bracket.
    fn apply_down_to(&mut self, strength: Strength) {
        while let Some(operator) = self.pending.pop_if(|pending| pending.strength() >= strength) {
            let right = self.pop();
            let operand = match operator {
                Pending::Or => self.join("Or", right, Expr::any),
                Pending::And => self.join("And", right, Expr::all),
                Pending::Compare(operator) => self.compare(operator, right),
                Pending::Not => {
                    self.depth -= 1;
                    self.negate(right)
                }
                Pending::Arithmetic => {
                    self.pop();
                    self.refuse(FilterError::NotImplemented)
                }
                Pending::Minus | Pending::Open | Pending::Call => {
                    self.depth -= 1;
                    self.refuse(FilterError::NotImplemented)
                }
            };
            self.operands.push(operand);
        }
    }

    fn join(&mut self, operator: &str, right: Operand, join: fn(Vec<Expr>) -> Expr) -> Operand {
        let left = self.pop();
        let (left_type, right_type) = (left.edm_type(), right.edm_type());
        if left_type != EdmType::Boolean || right_type != EdmType::Boolean {
            self.note(FilterError::binary_operands(operator, left_type, right_type));
        }
        Operand::Test(join(vec![left.into_test(), right.into_test()]))
    }

    fn compare(&mut self, operator: Operator, right: Operand) -> Operand {
        let (property, operator, literal) = match (self.pop(), right) {
            (Operand::Property(property), Operand::Literal(literal)) => (property, operator, literal),
            (Operand::Literal(literal), Operand::Property(property)) => {
                (property, operator.mirrored(), literal)
            }
            _ => return self.refuse(FilterError::NotImplemented),
        };
        Operand::Test(Expr::Compare(Comparison { property, operator, literal }))
    }

    fn negate(&mut self, operand: Operand) -> Operand {
        if operand.edm_type() != EdmType::Boolean {
            self.note(FilterError::not_operand(operand.edm_type()));
        }
        Operand::Test(operand.into_test().negate())
    }

    /// An operator becomes pending after its left side is read and is applied after its right side is read, so there is
    /// always an operand.
    fn pop(&mut self) -> Operand {
        self.operands.pop().expect("an operator is applied once both of its sides are read")
    }

    fn advance(&mut self) -> Result<(), FilterError> {
        self.token = self.lexer.next()?;
        Ok(())
    }

    fn note(&mut self, fault: FilterError) {
        self.fault.get_or_insert(fault);
    }

    fn refuse(&mut self, fault: FilterError) -> Operand {
        self.note(fault);
        Operand::REFUSED
    }
}

/// How tightly operators bind, loosest first. `not` is looser than a comparison: `not A eq B` means `not (A eq B)` (spec:
/// open question 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Bracket,
    Or,
    And,
    Not,
    Compare,
    Arithmetic,
    Minus,
}

impl Pending {
    fn strength(self) -> Strength {
        match self {
            Self::Open | Self::Call => Strength::Bracket,
            Self::Or => Strength::Or,
            Self::And => Strength::And,
            Self::Not => Strength::Not,
            Self::Compare(_) => Strength::Compare,
            Self::Arithmetic => Strength::Arithmetic,
            Self::Minus => Strength::Minus,
        }
    }
}

fn binary(kind: Kind, text: &str) -> Option<Pending> {
    match (kind, text) {
        (Kind::Slash, _) => Some(Pending::Arithmetic),
        (Kind::Word, "or") => Some(Pending::Or),
        (Kind::Word, "and") => Some(Pending::And),
        (Kind::Word, "add" | "sub" | "mul" | "div" | "mod") => Some(Pending::Arithmetic),
        (Kind::Word, word) => Operator::parse(word).map(Pending::Compare),
        _ => None,
    }
}

impl Operand {
    /// Replaces an operand that was already refused. It is Boolean, so its type is not refused again.
    const REFUSED: Self = Self::Test(Expr::Constant(false));

    /// A property has the type that its position requires; an operand alone must be Boolean. System properties have fixed
    /// types.
    fn edm_type(&self) -> EdmType {
        match self {
            Self::Property(name) if name == "PartitionKey" || name == "RowKey" => EdmType::String,
            Self::Property(name) if name == "Timestamp" => EdmType::DateTime,
            Self::Test(_) | Self::Property(_) => EdmType::Boolean,
            Self::Literal(value) => value.edm_type(),
        }
    }

    /// The operand as a condition. A property alone means the same as `eq true`.
    fn into_test(self) -> Expr {
        match self {
            Self::Test(expr) => expr,
            Self::Property(property) => {
                Expr::Compare(Comparison { property, operator: Operator::Eq, literal: Value::Boolean(true) })
            }
            Self::Literal(value) => Expr::Constant(matches!(value, Value::Boolean(true))),
        }
    }
}

#[cfg(test)]
mod tests;
