//! Binding a call's arguments to a tool's parameters, with the errors Python itself would give.

use serde_json::Value;

use crate::protocol::ToolShape;

/// A tool's parameters in the order they may be passed: required ones first, each group in the schema's order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Signature {
    /// The tool's name.
    pub(crate) name: String,
    parameters: Vec<Parameter>,
}

#[derive(Debug, Clone, PartialEq)]
struct Parameter {
    name: String,
    need: Need,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Required,
    Optional,
}

impl Signature {
    /// Reads the schema of a tool's arguments.
    pub(crate) fn of(shape: &ToolShape) -> Self {
        let required: Vec<&str> = shape.input["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut parameters: Vec<Parameter> = shape.input["properties"]
            .as_object()
            .map(|properties| {
                properties
                    .keys()
                    .map(|name| Parameter {
                        name: name.clone(),
                        need: if required.contains(&name.as_str()) { Need::Required } else { Need::Optional },
                    })
                    .collect()
            })
            .unwrap_or_default();
        parameters.sort_by_key(|parameter| parameter.need);
        Signature { name: shape.name.clone(), parameters }
    }

    /// `path, start=..., end=...`, as a signature shows it.
    pub(crate) fn shown(&self) -> String {
        let shown: Vec<String> = self
            .parameters
            .iter()
            .map(|parameter| match parameter.need {
                Need::Required => parameter.name.clone(),
                Need::Optional => format!("{}=...", parameter.name),
            })
            .collect();
        format!("{}({})", self.name, shown.join(", "))
    }

    /// Pairs each argument with its parameter, or says what is wrong as Python's `TypeError` would.
    pub(crate) fn bind<T>(
        &self,
        positional: Vec<T>,
        keywords: Vec<(String, T)>,
    ) -> Result<Vec<(String, T)>, String> {
        let name = &self.name;
        if positional.len() > self.parameters.len() {
            return Err(self.too_many(positional.len()));
        }
        let mut bound: Vec<(String, T)> = Vec::new();
        for (parameter, value) in self.parameters.iter().zip(positional) {
            bound.push((parameter.name.clone(), value));
        }
        for (keyword, value) in keywords {
            if !self.parameters.iter().any(|parameter| parameter.name == keyword) {
                return Err(self.unexpected(&keyword));
            }
            if bound.iter().any(|(taken, _)| *taken == keyword) {
                return Err(format!("{name}() got multiple values for argument '{keyword}'"));
            }
            bound.push((keyword, value));
        }
        let missing: Vec<String> = self
            .parameters
            .iter()
            .filter(|parameter| parameter.need == Need::Required)
            .filter(|parameter| !bound.iter().any(|(given, _)| *given == parameter.name))
            .map(|parameter| format!("'{}'", parameter.name))
            .collect();
        if let [rest @ .., last] = missing.as_slice() {
            let listed = match rest {
                [] => last.clone(),
                [one] => format!("{one} and {last}"),
                _ => format!("{}, and {last}", rest.join(", ")),
            };
            let plural = if missing.len() == 1 { "" } else { "s" };
            return Err(format!(
                "{name}() missing {} required positional argument{plural}: {listed}",
                missing.len()
            ));
        }
        Ok(bound)
    }

    fn too_many(&self, given: usize) -> String {
        let most = self.parameters.len();
        let least = self.parameters.iter().filter(|parameter| parameter.need == Need::Required).count();
        let takes = if least == most { most.to_string() } else { format!("from {least} to {most}") };
        let plural = if most == 1 { "" } else { "s" };
        let verb = if given == 1 { "was" } else { "were" };
        format!("{}() takes {takes} positional argument{plural} but {given} {verb} given", self.name)
    }

    fn unexpected(&self, keyword: &str) -> String {
        let near = self
            .parameters
            .iter()
            .map(|parameter| (strsim::damerau_levenshtein(keyword, &parameter.name), &parameter.name))
            .min()
            .filter(|(distance, _)| *distance * 2 <= keyword.len());
        match near {
            Some((_, near)) => {
                format!(
                    "{}() got an unexpected keyword argument '{keyword}'. Did you mean '{near}'?",
                    self.name
                )
            }
            None => format!(
                "{}() got an unexpected keyword argument '{keyword}'; its signature is {}",
                self.name,
                self.shown()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn signature() -> Signature {
        Signature::of(&ToolShape {
            name: "read".into(),
            description: String::new(),
            input: json!({
                "properties": {"start": {}, "path": {}, "end": {}},
                "required": ["path"],
            }),
        })
    }

    fn bind(positional: &[i32], keywords: &[(&str, i32)]) -> Result<Vec<(String, i32)>, String> {
        signature().bind(positional.to_vec(), keywords.iter().map(|(k, v)| (k.to_string(), *v)).collect())
    }

    #[test]
    fn arguments_find_their_names() {
        let named = |pairs: &[(&str, i32)]| Ok(pairs.iter().map(|(k, v)| (k.to_string(), *v)).collect());
        assert_eq!(signature().shown(), "read(path, start=..., end=...)");
        assert_eq!(bind(&[1], &[]), named(&[("path", 1)]));
        assert_eq!(bind(&[1, 2], &[("end", 3)]), named(&[("path", 1), ("start", 2), ("end", 3)]));
        assert_eq!(bind(&[], &[("end", 3), ("path", 1)]), named(&[("end", 3), ("path", 1)]));
    }

    #[test]
    fn errors_read_like_pythons() {
        let error = |positional: &[i32], keywords: &[(&str, i32)]| bind(positional, keywords).unwrap_err();
        assert_eq!(error(&[], &[]), "read() missing 1 required positional argument: 'path'");
        assert_eq!(
            error(&[1, 2, 3, 4], &[]),
            "read() takes from 1 to 3 positional arguments but 4 were given"
        );
        assert_eq!(error(&[1], &[("path", 2)]), "read() got multiple values for argument 'path'");
        assert_eq!(
            error(&[], &[("pth", 2)]),
            "read() got an unexpected keyword argument 'pth'. Did you mean 'path'?"
        );
        assert_eq!(
            error(&[1], &[("colour", 2)]),
            "read() got an unexpected keyword argument 'colour'; its signature is read(path, start=..., end=...)"
        );
    }
}
