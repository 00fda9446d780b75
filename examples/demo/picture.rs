//! A screenshot and a voice note, made here: the demo carries no files with it.

/// The screenshot, a character for each block of pixels.
const SCREEN: [&str; 14] = [
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    "brbybgbb wwwwwwwwwwwwwwwwwwwwwwww bbbbbb",
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
    "wwwwrrrrrrrrwwwwwwggggggggwwwwggggggggww",
    "wwwwrrrwwrrrwwwwwwggggggggwwwwggggggggww",
    "wwwwrrrwwrrrwwwwwwggwggwggwwwwggwggwggww",
    "wwwwrrrrrrrrwwwwwwggggggggwwwwggggggggww",
    "wwwwrrrwwrrrwwwwwwgwggggwgwwwwgwggggwgww",
    "wwwwrrrrrrrrwwwwwwggwwwwggwwwwggwwwwggww",
    "wwwwrrrrrrrrwwwwwwggggggggwwwwggggggggww",
    "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
    "wwwwyyyyyyyyyyyyyyyyyyywwwwwwwwwwwwwwwww",
    "wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww",
];
/// What the characters stand for, and their red, green and blue.
const PALETTE: [(char, [u8; 3]); 6] = [
    ('b', [36, 41, 66]),
    ('w', [246, 248, 250]),
    ('r', [215, 58, 73]),
    ('g', [40, 167, 69]),
    ('y', [227, 179, 65]),
    (' ', [209, 213, 218]),
];
/// Pixels along each side of a block; even, because two pixels share a byte.
const BLOCK: usize = 12;
/// What one stored block of a deflate stream can hold (RFC 1951, 3.2.4).
const STORED: usize = 65_535;

/// The screenshot as a PNG: sixteen colours at most, not compressed.
pub(crate) fn png() -> Vec<u8> {
    let (width, height) = (SCREEN[0].len() * BLOCK, SCREEN.len() * BLOCK);
    let header = [&side(width), &side(height), [4, 3, 0, 0, 0].as_slice()].concat();
    let palette = PALETTE.map(|(_, colour)| colour).concat();
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, data) in [(b"IHDR", header), (b"PLTE", palette), (b"IDAT", stored(&pixels())), (b"IEND", Vec::new())] {
        let typed = [kind, data.as_slice()].concat();
        png.extend(side(data.len()));
        png.extend(&typed);
        png.extend(crc32(&typed).to_be_bytes());
    }
    png
}

/// The screenshot for a terminal of 16 million colours, two rows of blocks in a line of half blocks.
pub(crate) fn drawn() -> impl Iterator<Item = String> {
    let half = |(above, below): (char, char)| {
        let ([r, g, b], [red, green, blue]) = (colour(above), colour(below));
        format!("\x1b[38;2;{r};{g};{b};48;2;{red};{green};{blue}m▀")
    };
    SCREEN.chunks(2).map(move |pair| {
        pair[0].chars().zip(pair[1].chars()).map(half).chain(["\x1b[0m".to_owned()]).collect::<String>()
    })
}

/// A tone of one second as a WAV file: 8,000 samples of 8 bits, a squeak that falls.
pub(crate) fn wav() -> Vec<u8> {
    let samples: Vec<u8> =
        (0..8_000_u32).map(|at| if (at * (40 - at / 250) / 400) % 2 == 0 { 96 } else { 160 }).collect();
    let length = 8_000_u32;
    let mut wav = b"RIFF".to_vec();
    wav.extend((36 + length).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    wav.extend([8_000_u32.to_le_bytes(), 8_000_u32.to_le_bytes()].concat());
    wav.extend(b"\x01\0\x08\0data");
    wav.extend(length.to_le_bytes());
    wav.extend(samples);
    wav
}

fn colour(letter: char) -> [u8; 3] {
    PALETTE.iter().find(|(known, _)| *known == letter).map_or([0; 3], |(_, colour)| *colour)
}

/// The rows of pixels, each behind the byte that says it is not filtered.
fn pixels() -> Vec<u8> {
    let number = |letter| PALETTE.iter().position(|(known, _)| *known == letter).unwrap_or(0) as u8;
    let row = |blocks: &str| -> Vec<u8> {
        let pairs = blocks.chars().flat_map(|letter| std::iter::repeat_n(number(letter) * 0x11, BLOCK / 2));
        std::iter::once(0).chain(pairs).collect()
    };
    SCREEN.iter().flat_map(|blocks| row(blocks).repeat(BLOCK)).collect()
}

/// A zlib stream of stored blocks.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = bytes.chunks(STORED).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    stream.extend(adler32(bytes).to_be_bytes());
    stream
}

fn side(length: usize) -> [u8; 4] {
    (length as u32).to_be_bytes()
}

fn crc32(bytes: &[u8]) -> u32 {
    let shift = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shift))
}

fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65_521;
        (a, (a + b) % 65_521)
    });
    b << 16 | a
}
