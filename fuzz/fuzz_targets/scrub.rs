//! Words from outside on their way into the record: nothing that acts is left, and nothing else is touched.
#![no_main]

use libfuzzer_sys::fuzz_target;
use usher::core::scrub::{inert, scrub};

fuzz_target!(|text: &str| {
    let scrubbed = scrub(text);
    assert_eq!(scrub(&scrubbed), scrubbed);

    let broken = inert(text);
    assert_eq!(inert(&broken), broken);
    assert!(!broken.contains("<!") && !broken.contains("-->"));
    assert_eq!(broken.replace('\u{200b}', ""), text.replace('\u{200b}', ""));
});
