/** RTP or RTCP that is malformed, or of an unsupported form. */
export class RtpError extends Error {
  override readonly name = 'RtpError';
}
