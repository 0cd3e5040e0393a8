use super::*;

fn through(pieces: &[&[u8]]) -> Vec<u8> {
    let (mut lines, mut out) = (Lines::of(3), Vec::new());
    for piece in pieces {
        lines.push(piece, &mut out);
    }
    lines.finish(&mut out);
    out
}

#[test]
fn each_line_gets_its_rank_however_it_arrives() {
    let text = b"one\n\ntwo\n";
    for length in 1..=text.len() {
        let pieces: Vec<_> = text.chunks(length).collect();
        assert_eq!(through(&pieces), b"[3] one\n[3] \n[3] two\n");
    }
}

#[test]
fn a_last_line_without_newline_is_completed() {
    assert_eq!(through(&[b"a\nb"]), b"[3] a\n[3] b\n");
    assert_eq!(through(&[b""]), b"");
}

#[test]
fn bytes_that_are_no_text_pass_through() {
    assert_eq!(through(&[&[0, 0xff, b'\r', b'\n']]), b"[3] \x00\xff\r\n");
}

#[test]
fn nothing_is_held_back_beyond_the_longest_piece() {
    let (mut lines, mut out) = (Lines::of(3), Vec::new());
    for _ in 0..10 * PIECE / 1000 {
        lines.push(&[b'x'; 1000], &mut out);
        assert!(lines.pending.len() <= PIECE);
    }
    lines.finish(&mut out);
    let pieces: Vec<_> = out.split_inclusive(|byte| *byte == b'\n').collect();
    assert!(pieces.iter().all(|piece| piece.starts_with(b"[3] x")));
    let content: usize = pieces.iter().map(|piece| piece.len() - 5).sum();
    assert_eq!(content, 10 * PIECE / 1000 * 1000);
}

#[test]
fn a_line_of_exactly_the_longest_piece_stays_whole() {
    let mut line = vec![b'x'; PIECE];
    line.push(b'\n');
    assert_eq!(through(&[&line]).len(), "[3] ".len() + line.len());
}
