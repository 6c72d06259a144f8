//! Answers of a given form. The model is told a schema, and code holds every answer to it: one that does not fit is
//! sent back a few times, and then the agent has failed. Nobody who asked for a form gets something else.

use gimlet_event::event::ActionFormat;
use serde_json::Value;

use crate::arguments::problems;
use crate::parse;

/// How often an answer that does not fit is sent back.
pub const CORRECTIONS: u32 = 2;

/// The form of an agent's answer.
pub struct Form {
    schema: Value,
    validator: jsonschema::Validator,
}

impl Form {
    /// The form a schema describes, or why it describes none.
    pub fn new(schema: Value) -> Result<Self, String> {
        let validator = jsonschema::validator_for(&schema).map_err(|error| error.to_string())?;
        Ok(Form { schema, validator })
    }

    /// The schema.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// What the model is told about it.
    pub fn told(&self, action: ActionFormat) -> String {
        let how = match action {
            ActionFormat::Tools | ActionFormat::Guided => {
                "Your final answer must be JSON and nothing else, of this schema"
            }
            ActionFormat::Code => "The value you give to final_answer must be of this JSON schema",
        };
        format!("{how}:\n{}", self.schema)
    }

    /// The answer as a value of this form, or what is wrong with it. JSON in the text counts, and so does the text
    /// itself where a text is wanted.
    pub fn fit(&self, answer: &str, value: Option<&Value>) -> Result<Value, String> {
        let meant = value.cloned().or_else(|| parse::value_in(answer));
        let text = Value::String(answer.trim().to_owned());
        match meant {
            Some(meant) if self.validator.is_valid(&meant) => Ok(meant),
            Some(_) | None if value.is_none() && self.validator.is_valid(&text) => Ok(text),
            Some(meant) => Err(problems(&self.validator, &meant).join("; ")),
            None => Err("it holds no JSON".into()),
        }
    }
}

/// What the model is told about an answer that does not fit.
pub fn correction(form: &Form, action: ActionFormat, problem: &str) -> String {
    format!("That answer does not have the form that is asked for: {problem}.\n{}", form.told(action))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_fits_as_a_value_as_json_in_text_or_as_text() {
        let form = Form::new(json!({
            "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
        }))
        .unwrap();
        let seven = json!({"n": 7});
        assert_eq!(form.fit("7", Some(&seven)), Ok(seven.clone()));
        assert_eq!(form.fit(r#"{"n": 7}"#, None), Ok(seven.clone()));
        assert_eq!(form.fit("Here:\n```json\n{'n': 7,}\n```\nDone.", None), Ok(seven));
        assert!(form.fit(r#"{"n": "x"}"#, None).unwrap_err().contains("`n`"));
        assert_eq!(form.fit("seven", None).unwrap_err(), "it holds no JSON");
        let text = Form::new(json!({"type": "string"})).unwrap();
        assert_eq!(text.fit(" 7 ", None), Ok(json!("7")));
        assert!(text.fit("7", Some(&json!(7))).is_err(), "a number that code gave is no text");
        assert!(Form::new(json!({"type": "nonsense"})).is_err());
    }
}
