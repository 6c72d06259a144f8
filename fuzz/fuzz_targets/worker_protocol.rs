#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    gimlet_fuzz::worker_protocol::run(data);
});
