//! Times as people tell them, where they are.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The day and the time of day.
pub(crate) fn minute(time: Timestamp) -> String {
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The day.
pub(crate) fn day(time: Timestamp) -> String {
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d").to_string()
}
