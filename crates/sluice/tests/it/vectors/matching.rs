//! How what is wanted is compared with what is.
//!
//! An object is met by one that has at least its fields; everything else is
//! met by its equal. An object whose keys begin with `$` asks something else.

use regex::Regex;
use serde_json::{Map, Value};

/// Every way to match that is not equality.
const WAYS: &[&str] =
    &["$is", "$any", "$absent", "$contains", "$match", "$min", "$max", "$length", "$some"];

/// Whether something wanted is written as it can be.
pub(super) fn check(wanted: &Value) -> Result<(), String> {
    match wanted {
        Value::Object(fields) => {
            let ways = fields.keys().filter(|key| key.starts_with('$'));
            for way in ways {
                if !WAYS.contains(&way.as_str()) {
                    return Err(format!("`{way}` is no way to match"));
                }
                if fields.keys().any(|key| !key.starts_with('$')) {
                    return Err(format!("`{way}` stands beside plain fields"));
                }
                let right = match way.as_str() {
                    "$any" | "$absent" => fields[way] == Value::Bool(true),
                    "$contains" => fields[way].is_string(),
                    "$match" => fields[way].as_str().is_some_and(|text| Regex::new(text).is_ok()),
                    "$min" | "$max" | "$length" => fields[way].is_number(),
                    _ => true,
                };
                if !right {
                    return Err(format!("`{way}` cannot be given {}", fields[way]));
                }
            }
            fields.values().try_for_each(check)
        }
        Value::Array(items) => items.iter().try_for_each(check),
        _ => Ok(()),
    }
}

/// Adds to `faults` what differs, each with its place.
pub(super) fn compare(place: &str, wanted: &Value, seen: Option<&Value>, faults: &mut Vec<String>) {
    match (wanted, seen) {
        (Value::Object(ways), seen) if ways.keys().any(|key| key.starts_with('$')) => {
            if !ways.iter().all(|(way, operand)| holds(way, operand, seen)) {
                faults.push(differs(place, wanted, seen));
            }
        }
        (Value::Object(fields), Some(Value::Object(has))) => {
            for (name, wanted) in fields {
                compare(&format!("{place}.{name}"), wanted, has.get(name), faults);
            }
        }
        (Value::Array(items), Some(Value::Array(has))) if items.len() == has.len() => {
            for (at, (wanted, seen)) in items.iter().zip(has).enumerate() {
                compare(&format!("{place}[{at}]"), wanted, Some(seen), faults);
            }
        }
        (Value::Number(wanted_number), Some(Value::Number(number))) => {
            // 1 and 1.0 are one number, however they are written.
            if wanted_number != number && wanted_number.as_f64() != number.as_f64() {
                faults.push(differs(place, wanted, seen));
            }
        }
        (wanted, Some(seen)) if wanted == seen => {}
        (wanted, seen) => faults.push(differs(place, wanted, seen)),
    }
}

/// Whether it is as wanted.
pub(super) fn meets(wanted: &Value, seen: Option<&Value>) -> bool {
    let mut faults = Vec::new();
    compare("", wanted, seen, &mut faults);
    faults.is_empty()
}

fn differs(place: &str, wanted: &Value, seen: Option<&Value>) -> String {
    match seen {
        Some(seen) => format!("{place}: wanted {wanted}, is {seen}"),
        None => format!("{place}: wanted {wanted}, is not there"),
    }
}

fn holds(way: &str, operand: &Value, seen: Option<&Value>) -> bool {
    let Some(seen) = seen else { return way == "$absent" };
    let number = || Some((seen.as_f64()?, operand.as_f64()?));
    match way {
        "$is" => operand == seen,
        "$any" => !seen.is_null(),
        "$contains" => {
            seen.as_str().zip(operand.as_str()).is_some_and(|(text, part)| text.contains(part))
        }
        "$match" => {
            let pattern = operand.as_str().and_then(|text| Regex::new(text).ok());
            seen.as_str().zip(pattern).is_some_and(|(text, pattern)| pattern.is_match(text))
        }
        "$min" => number().is_some_and(|(seen, least)| seen >= least),
        "$max" => number().is_some_and(|(seen, most)| seen <= most),
        "$length" => length(seen) == operand.as_u64(),
        "$some" => {
            seen.as_array().is_some_and(|items| items.iter().any(|one| meets(operand, Some(one))))
        }
        _ => false,
    }
}

fn length(seen: &Value) -> Option<u64> {
    let length = match seen {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(fields) => Map::len(fields),
        _ => return None,
    };
    u64::try_from(length).ok()
}
