//! Captions from Slack: any text is read, and what comes out is one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use usher::core::vtt;

fuzz_target!(|text: &str| {
    for captions in [text.to_owned(), format!("WEBVTT\n\n00:01.000 --> 00:02.000\n{text}")] {
        if let Some(words) = vtt::words(&captions) {
            assert_eq!(words.split_whitespace().collect::<Vec<_>>().join(" "), words);
        }
    }
});
