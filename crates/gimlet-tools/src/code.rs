//! The error words of these tools, stable because hints and people rely on them.

/// No such file.
pub const FILE_NOT_FOUND: &str = "FILE_NOT_FOUND";
/// A folder, device or pipe where a file was expected.
pub const NOT_A_FILE: &str = "NOT_A_FILE";
/// The path leads out of the root.
pub const PATH_OUTSIDE_ROOT: &str = "PATH_OUTSIDE_ROOT";
/// The file holds secrets and is never shown.
pub const SENSITIVE_FILE: &str = "SENSITIVE_FILE";
/// The file is never written.
pub const PROTECTED_FILE: &str = "PROTECTED_FILE";
/// The range does not fit the file.
pub const INVALID_LINE_RANGE: &str = "INVALID_LINE_RANGE";
/// Not text.
pub const BINARY_FILE: &str = "BINARY_FILE";
/// The file could not be read.
pub const READ_FAILED: &str = "READ_FAILED";
/// The text is not in the file.
pub const NOT_FOUND_IN_FILE: &str = "NOT_FOUND_IN_FILE";
/// The glob cannot be understood.
pub const GLOB_FAILED: &str = "GLOB_FAILED";
/// The search broke.
pub const RG_FAILED: &str = "RG_FAILED";
/// Git refused or is not there.
pub const GIT_FAILED: &str = "GIT_FAILED";
/// The diff cannot be understood or does not fit.
pub const INVALID_DIFF: &str = "INVALID_DIFF";
/// Nobody could check the patch, whatever it is like.
pub const PATCH_NOT_CHECKED: &str = "PATCH_NOT_CHECKED";
/// The tests that a patch must pass fail with it.
pub const TESTS_FAILED: &str = "TESTS_FAILED";
/// No patch of that id.
pub const PATCH_NOT_FOUND: &str = "PATCH_NOT_FOUND";
/// The patch was not applied.
pub const PATCH_APPLY_FAILED: &str = "PATCH_APPLY_FAILED";
/// The command took too long and was killed.
pub const CMD_TIMEOUT: &str = "CMD_TIMEOUT";
/// No command can have that permission here, so nobody is asked.
pub const PERMISSION_UNAVAILABLE: &str = "PERMISSION_UNAVAILABLE";
/// The command could not be started.
pub const CMD_FAILED: &str = "CMD_FAILED";
/// Nothing says how this project is tested.
pub const NO_TESTS_FOUND: &str = "NO_TESTS_FOUND";
/// These tools do not know the language.
pub const UNSUPPORTED_LANGUAGE: &str = "UNSUPPORTED_LANGUAGE";
