/** Payload types of a peer's offers; they differ from the server's own on purpose. */
export const PEER_TYPES = { H264: 120, VP8: 121, VP9: 122, H265: 123, AV1: 124, OPUS: 125 } as const;
