/** RTP or RTCP that is not what its format says it is, or of a form that is not taken. */
export class RtpError extends Error {
  override readonly name = 'RtpError';
}
