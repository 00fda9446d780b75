//! The signature of a webhook delivery.
//!
//! Owns the one way to get at a delivery's bytes: only what carries a valid HMAC of a configured secret becomes
//! [`Verified`], and nothing else is parsed. It must not know what a delivery says.

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;

/// The raw body of a delivery that GitHub signed.
///
/// ```compile_fail
/// let forged = usher::github::signature::Verified { body: bytes::Bytes::new() };
/// ```
#[derive(Debug, Clone)]
pub struct Verified {
    body: Bytes,
}

impl Verified {
    /// The bytes as they came.
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

/// Checks `X-Hub-Signature-256` over the raw bytes, before any decoding (field reports W1, W2), in constant time.
///
/// Two secrets may hold at once, so that a rotation needs no pause.
pub fn verify<'a>(secrets: impl IntoIterator<Item = &'a SecretString>, header: &[u8], body: Bytes) -> Option<Verified> {
    let claimed = hex::decode(header.strip_prefix(b"sha256=")?).ok()?;
    let signed = |secret: &SecretString| {
        let mac = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes());
        mac.is_ok_and(|mac| mac.chain_update(&body).verify_slice(&claimed).is_ok())
    };
    // Every secret is tried, whichever fits: the time tells nothing about which one it was.
    let fits = secrets.into_iter().map(signed).fold(false, |fits, this| fits | this);
    fits.then_some(Verified { body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VECTOR: &[u8] = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn secret(text: &str) -> SecretString {
        SecretString::from(text)
    }

    fn fits(secrets: &[SecretString], header: &[u8], body: &str) -> bool {
        verify(secrets, header, Bytes::copy_from_slice(body.as_bytes())).is_some()
    }

    #[test]
    fn the_test_vector_of_github_fits() {
        // docs.github.com, "Validating webhook deliveries".
        assert!(fits(&[secret("It's a Secret to Everybody")], VECTOR, "Hello, World!"));
    }

    #[test]
    fn either_secret_of_a_rotation_fits_and_no_other() {
        let (new, old) = (secret("new"), secret("It's a Secret to Everybody"));
        assert!(fits(&[new.clone(), old], VECTOR, "Hello, World!"));
        assert!(!fits(&[new], VECTOR, "Hello, World!"));
        assert!(!fits(&[], VECTOR, "Hello, World!"));
    }

    #[test]
    fn a_header_of_another_form_is_refused() {
        let secrets = [secret("It's a Secret to Everybody")];
        for header in
            [&b""[..], b"sha256=", b"sha1=757107ea", b"sha256=zz", b"SHA256=757107ea", &VECTOR[7..], &VECTOR[..70]]
        {
            assert!(!fits(&secrets, header, "Hello, World!"), "{}", String::from_utf8_lossy(header));
        }
    }

    proptest! {
        #[test]
        fn any_flipped_bit_refuses(bit in 0usize..104, in_body: bool) {
            let (mut header, mut body) = (VECTOR.to_vec(), b"Hello, World!".to_vec());
            if in_body {
                body[bit / 8] ^= 1 << (bit % 8);
            } else {
                let digit = header.len() - 1 - bit / 2;
                header[digit] = if header[digit] == b'0' { b'1' } else { b'0' };
            }
            let secrets = [secret("It's a Secret to Everybody")];
            prop_assert!(verify(&secrets, &header, Bytes::from(body)).is_none());
        }
    }
}
