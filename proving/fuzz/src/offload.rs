//! A frame whose checksum or segmentation was left to hardware: no part that is handed on is longer than what came, and a
//! frame that is whole is handed on once or refused.

use finish::finish;

#[allow(dead_code, missing_docs, reason = "the daemon's file, of which this calls one function")]
#[path = "../../../emulation/src/cable/packet_socket/offload.rs"]
mod finish;

/// Octets of the header that describes the frame.
const HEAD: usize = 10;
/// The octets are the frame behind its header, as a packet socket of the kernel receives them.
pub fn check(octets: &[u8]) {
    let (mut room, mut frames, mut total) = (Vec::new(), 0, 0);
    let outcome = finish(octets, &mut room, |frame| {
        assert!(frame.len() <= octets.len(), "a segment is no longer than the whole");
        (frames, total) = (frames + 1, total + frame.len());
    });
    let Some(frame) = octets.get(HEAD..) else {
        return assert!(outcome.is_err(), "no header");
    };
    let is_whole = octets[1] & 0x7f == 0;
    match outcome {
        Ok(()) if is_whole => assert_eq!((frames, total), (1, frame.len())),
        Ok(()) => assert!(total <= frames * frame.len()),
        Err(_) if is_whole => assert_eq!(frames, 0, "a frame that is refused is not handed on"),
        Err(_) => {}
    }
    if octets[..2] == [0, 0] {
        assert_eq!(outcome, Ok(()), "a finished frame is handed on as it is");
    }
}
