//! Words from outside on their way into a pane: nothing that acts as a key is left of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use usher::core::pane_text::{Nonce, clean, defuse_mentions, one_line};

fuzz_target!(|text: &str| {
    let cleaned = clean(text);
    assert!(!cleaned.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
    assert_eq!(clean(&cleaned), cleaned);

    let defused = defuse_mentions(&cleaned);
    assert_eq!(defuse_mentions(&defused), defused);

    let line = one_line(text, 40);
    assert!(line.chars().count() <= 40 && !line.contains(char::is_control));

    if let Some(nonce) = Nonce::not_in(text, [[0; 4], [0x11; 4], [0x22; 4]]) {
        assert!(!cleaned.contains(nonce.as_str()));
    }
});
