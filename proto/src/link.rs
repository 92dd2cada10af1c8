//! One end of a link: credits, arbitration between lanes, and the line itself.
